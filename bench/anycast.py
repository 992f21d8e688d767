"""``python -m bench.anycast``: edges behind an anycast address, as the handbook configures it, restarted and lost.

It takes the configurations from the page "Several machines" and runs them as they stand: a router and two edges with
BIRD, in network namespaces of the run's own, and a visitor behind the router. Each edge is restarted under the
visitor's requests, with flows kept by the router and without; then an edge's machine is cut off. It counts what failed.
Needs root, and Debian's `bird2`, `nftables`, `iproute2`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import aiohttp
from aiohttp import web

from bench import output
from bench.certificate_world import RoleProcess
from bench.cluster.network import Machine, enter_namespaces, run_command
from bench.enrolment import EnrolledDomain, enrol
from bench.lab.serving import serving
from bench.peers.certificates import make_certificate
from bench.private_stage import private_stage
from common.db.address import resolve_dsn
from common.errors import OperatorError
from common.processes import spawn
from common.secrets import load_keyring
from common.settings import PREFIX

ADDRESS, DOMAIN = "192.0.2.10", "shop.customer.example"
PROGRAMS = ("bird", "birdc", "curl", "ip", "nft", "unshare", "nsenter")
_ROUTER = "10.0.0.1"
_EDGES = ("10.0.0.21", "10.0.0.22")
_VISITOR, _VISITORS_ROUTER = "198.51.100.2", "198.51.100.1"
_WITHIN_SECONDS = 60.0
_PIECES, _PAUSE_SECONDS = 20, 0.1  # of a slow response
_PATH = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


def missing_programs() -> list[str]:
    """Return the names of the programs that a run needs and this machine lacks."""
    return [name for name in PROGRAMS if shutil.which(name, path=_PATH["PATH"]) is None]


def main() -> None:
    """Run, and print what failed; exit with 1 if a request failed while the router kept flows."""
    parser = argparse.ArgumentParser(prog="python -m bench.anycast", description=__doc__)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--visit", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.visit:
        asyncio.run(_visit())
        return
    if missing := missing_programs():
        sys.exit(f"bench.anycast: not installed: {', '.join(missing)}")
    if not arguments.inside:
        enter_namespaces([], module="bench.anycast")
        sys.exit("bench.anycast: needs root, and network namespaces")
    try:
        counts = asyncio.run(_run())
    except OperatorError as error:
        sys.exit(f"bench.anycast: {error}")
    for what, (requests, failures) in counts.items():
        print(f"{what:44} {requests:7,} requests, {failures} failed")
    print(f"written to {output.write('anycast', counts)}")
    sys.exit(0 if counts[_KEPT][1] == 0 else 1)


_KEPT, _LOOSE, _LOST = (
    "both edges restarted, flows kept",
    "both edges restarted, flows not kept",
    "an edge's machine cut off",
)


# The network ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Edge:
    machine: Machine
    process: RoleProcess


def page_blocks(language: str) -> list[str]:
    """Return the page's blocks of that language."""
    page = (resources.files("api") / "handbook" / "several-machines.md").read_text("utf-8")
    section = page.partition("### An anycast address")[2].partition("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


def _join(name: str, address: str, gateway: str, bridge: str) -> Machine:
    """Add a machine with one address on a bridge."""
    machine = Machine(name, address, ("nsenter", f"--net=/run/netns/{name}", "--"))
    run_command("ip", "netns", "add", name)
    run_command("ip", "link", "add", f"v-{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
    run_command("ip", "link", "set", f"v-{name}", "master", bridge, "up")
    run_command("ip", "-n", name, "address", "add", f"{address}/24", "dev", "eth0")
    for device in ("lo", "eth0"):
        run_command("ip", "-n", name, "link", "set", device, "up")
    run_command("ip", "-n", name, "route", "add", "default", "via", gateway)
    return machine


def _lay_network() -> tuple[list[Machine], Machine]:
    """Make this namespace the router; return the edges' machines and the visitor's."""
    Path("/run/netns").mkdir(parents=True, exist_ok=True)
    run_command("mount", "-t", "tmpfs", "none", "/run/netns")
    run_command("ip", "link", "set", "lo", "up")
    for bridge, address in (("edges", _ROUTER), ("visitors", _VISITORS_ROUTER)):
        run_command("ip", "link", "add", bridge, "type", "bridge")
        run_command("ip", "address", "add", f"{address}/24", "dev", bridge)
        run_command("ip", "link", "set", bridge, "up")
    machines = [_join(f"edge{number}", address, _ROUTER, "edges") for number, address in enumerate(_EDGES, 1)]
    for machine in machines:
        run_command(*machine.within, "ip", "address", "add", f"{ADDRESS}/32", "dev", "lo")
    return machines, _join("visitor", _VISITOR, _VISITORS_ROUTER, "visitors")


def _start_bird(stack: AsyncExitStack, directory: Path, name: str, text: str, within: Sequence[str] = ()) -> Path:
    """Start a BIRD with that configuration; return its control socket."""
    configuration, control = directory / f"{name}.conf", directory / f"{name}.ctl"
    configuration.write_text(text)
    with (directory / f"{name}.log").open("ab") as log:
        command = [
            *within,
            "bird",
            "-f",
            "-c",
            str(configuration),
            "-s",
            str(control),
            "-P",
            str(directory / f"{name}.pid"),
        ]
        stack.callback(spawn(command, env=_PATH, stdout=log, stderr=log).kill)
    return control


def _set_up_routing(stack: AsyncExitStack, directory: Path, machines: Sequence[Machine]) -> None:
    """Run what the page shows, on the router and on each edge."""
    router, edge = page_blocks("bird")
    check, ways = page_blocks("sh")
    subprocess.run(["sh", "-ec", ways], check=True, env=_PATH)
    _start_bird(stack, directory, "router", router)
    for machine in machines:
        text = edge.replace(_EDGES[0], machine.address)
        control = _start_bird(stack, directory, machine.name, text, machine.within)
        script = check.replace("birdc ", f"birdc -s {control} ")
        stack.callback(spawn([*machine.within, "sh", "-c", script], env=_PATH).kill)


def _keep_flows(*, is_kept: bool) -> None:
    """Have the router keep the flows of connections, or not."""
    if is_kept:
        run_command("nft", "-f", "-", given=page_blocks("nft")[0])
    else:
        run_command("nft", "delete", "table", "inet", "flows")


def _ways() -> int:
    """Return how many ways to the anycast address the router knows."""
    shown = subprocess.run(
        ["ip", "route", "show", ADDRESS], capture_output=True, text=True, check=True, env=_PATH
    ).stdout
    return shown.count("via ")


async def _until_ways(count: int) -> None:
    try:
        async with asyncio.timeout(_WITHIN_SECONDS):
            while _ways() != count:  # noqa: ASYNC110 - the kernel's routes
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise OperatorError(f"{_ways()} ways to {ADDRESS} after {_WITHIN_SECONDS:g} seconds, not {count}") from None


# The run -------------------------------------------------------------------------------------------------


async def _run() -> dict[str, tuple[int, int]]:
    machines, visitor = _lay_network()
    counts: dict[str, tuple[int, int]] = {}
    with tempfile.TemporaryDirectory(prefix="frontage-anycast-") as name:
        directory = Path(name)
        async with AsyncExitStack() as stack:
            edges = await stack.enter_async_context(_running_edges(directory, machines))
            _set_up_routing(stack, directory, machines)
            await _until_ways(len(edges))
            for what, is_kept in ((_KEPT, True), (_LOOSE, False)):
                _keep_flows(is_kept=is_kept)
                async with _visiting(visitor, counts, what):
                    for edge in edges:
                        await _restart(edge)
            async with _visiting(visitor, counts, _LOST):
                await asyncio.sleep(_PIECES * _PAUSE_SECONDS)
                run_command("ip", "link", "set", f"v-{edges[0].machine.name}", "down")
                await _until_ways(1)
    return counts


async def _restart(edge: _Edge) -> None:
    stopping = asyncio.create_task(edge.process.stop())
    await _until_ways(1)
    await stopping
    await edge.process.start()
    await _until_ways(2)


@asynccontextmanager
async def _running_edges(directory: Path, machines: Sequence[Machine]) -> AsyncIterator[list[_Edge]]:
    """Run an edge on each machine, beside a whole installation on the router, whose Postgres they follow."""
    async with AsyncExitStack() as stack:
        origin = await stack.enter_async_context(serving(_origin(), _ROUTER, 0))
        stage = await stack.enter_async_context(private_stage(ALLOW_PRIVATE_ADDRESSES="127.0.0.0/8,10.0.0.0/8"))
        key, chain = make_certificate(DOMAIN)
        dsn = resolve_dsn(stage.settings)
        domain = EnrolledDomain(DOMAIN, stage.application_id, f"http://{origin}/", chain, key)
        await enrol(dsn, load_keyring(stage.settings.key_file), [domain])
        edges = []
        for machine in machines:
            state = directory / f"{machine.name}.state"
            state.mkdir()
            settings = {
                "DATABASE_URL": dsn,
                "MASTER_KEY_FILE": str(stage.settings.key_file),
                "STATE_DIR": str(state),
                "ALLOW_PRIVATE_ADDRESSES": "10.0.0.0/8",
                "EDGE_HTTP": "0.0.0.0:80",
                "EDGE_HTTPS": "0.0.0.0:443",
                "EDGE_HTTPS_REDIRECT": "off",
                "EDGE_WORKERS": "1",
                "EDGE_SHUTDOWN_DELAY_SECONDS": "5",
            }
            environ = _PATH | {PREFIX + key: value for key, value in settings.items()}
            process = RoleProcess("edge", environ, directory / f"{machine.name}.edge.log", machine.within)
            stack.push_async_callback(process.kill)
            await process.start()
            edges.append(_Edge(machine, process))
        yield edges


def _origin() -> web.Application:
    """Return an application that answers at once, and with many small pieces at ``/slow``."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path != "/slow":
            return web.Response(text="ok")
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(_PIECES):
            await response.write(b".")
            await asyncio.sleep(_PAUSE_SECONDS)
        await response.write(b"ok")
        return response

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    return app


# The visitor ---------------------------------------------------------------------------------------------


@asynccontextmanager
async def _visiting(visitor: Machine, counts: dict[str, tuple[int, int]], what: str) -> AsyncIterator[None]:
    """Have the visitor ask all through the block, and count."""
    command = [*visitor.within, sys.executable, "-m", "bench.anycast", "--visit"]
    process = await asyncio.create_subprocess_exec(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    await process.stdout.readline()
    try:
        yield
    finally:
        process.stdin.close()
        said = json.loads(await process.stdout.readline())
        await process.wait()
    for failure in said["failures"]:
        print(f"  {what}: {failure}")
    counts[what] = said["requests"], len(said["failures"])


async def _visit() -> None:
    """Ask for small and slow answers, on kept connections and on new ones, until standard input ends."""
    requests, failures, ended, began = 0, list[str](), asyncio.Event(), time.monotonic()

    async def ask(path: str, *, is_kept: bool) -> None:
        nonlocal requests
        connector = aiohttp.TCPConnector(force_close=not is_kept)
        timeout = aiohttp.ClientTimeout(total=20.0)
        async with aiohttp.ClientSession(f"http://{ADDRESS}", connector=connector, timeout=timeout) as session:
            while not ended.is_set():
                requests += 1
                try:
                    async with session.get(path, headers={"Host": DOMAIN}) as answer:
                        if answer.status != 200 or not (await answer.text()).endswith("ok"):
                            raise aiohttp.ClientError(f"status {answer.status}")
                except (aiohttp.ClientError, TimeoutError) as error:
                    failures.append(
                        f"{time.monotonic() - began:.2f} s {path} {'kept' if is_kept else 'new'}: {error!r}"
                    )
                await asyncio.sleep(0.02)

    print("begun", flush=True)
    async with asyncio.TaskGroup() as tasks:
        for path, is_kept, count in (("/", True, 4), ("/", False, 4), ("/slow", True, 4), ("/slow", False, 4)):
            for _ in range(count):
                tasks.create_task(ask(path, is_kept=is_kept))
        await asyncio.to_thread(sys.stdin.read)
        ended.set()
    print(json.dumps({"requests": requests, "failures": failures}), flush=True)


if __name__ == "__main__":
    main()
