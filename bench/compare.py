"""``python -m bench.compare``: CPU time per request, ours beside nginx's, HAProxy's, Caddy's and plain aiohttp's.

The load (wrk: one thread, 64 connections) and the origin (nginx) run on core 1, one proxy at a time is loaded on core
0, in turn, several rounds; a proxy's cost is user and system time of its whole process tree divided by the requests
completed, the median of the rounds. Machines drift: only the ratios of one run count. `bench.peers` states what all
proxies have in common, `bench.cases` what is asked of them. Our own routing, limits, metrics and header rules are on.

A run with an error is left out and printed with its case, proxy and reason; the others go on, and the medians are of
the rounds that there are.

The table is also written as JSON and as a picture (``compare.json``, ``compare.png`` in ``bench/output``).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench import cases, compare_picture, h2load, heads, output, typical, wrk
from bench.cases import BODY_BYTES, Case, Load
from bench.http2_load import Http2Load
from bench.lab.ports import free_ports
from bench.loads import LoadRun, read_run
from bench.peers import HOST, LOAD_CORE, PROXY_CORE, SECURE_HOST, SOCKET_HOST, Peer, RunningProxy, Sites, missing
from bench.peers.aiohttp_proxy import Aiohttp
from bench.peers.caddy_proxy import Caddy
from bench.peers.certificates import write_certificates
from bench.peers.frontage_edge import Frontage
from bench.peers.haproxy_proxy import HAProxy
from bench.peers.nginx_proxy import Nginx, nginx
from bench.pinned import LoadFailed, last_line, module, server
from bench.process_tree import cpu_seconds
from common.errors import FrontageError, OperatorError

PEERS: tuple[Peer, ...] = (Nginx(), HAProxy(), Caddy(), Aiohttp(), Frontage())
OURS = Frontage.name
REFERENCE = Nginx.name
MANY_HOSTS = tuple(f"shop-{number}.customer.localhost" for number in range(1000))
_STREAMS = {Load.HTTP2_1: 1, Load.HTTP2_10: 10}
_OWN_STREAMS = {
    Load.HTTP2_COOKIES_1: (1, heads.other_cookies),
    Load.HTTP2_COOKIES_10: (10, heads.other_cookies),
    Load.HTTP2_KINDS_1: (1, heads.other_kinds),
    Load.HTTP2_KINDS_10: (10, heads.other_kinds),
}
_PROGRAMS = {"wrk": "wrk", "h2load": "nghttp2-client", "taskset": "util-linux", "nginx": "nginx-light"}
_WARM_UP_SECONDS = 1.0
_OVERHEAD_SECONDS = 0.3
_SPARE_SECONDS = 20
_PAGE_COLUMNS = 132  # where there is no terminal to ask
_ORIGIN = """
  open_file_cache max=1000 inactive=1h; sendfile on; tcp_nopush on;
  server {{
    listen 127.0.0.1:{port} backlog=4096; listen 127.0.0.1:{secure_port} ssl backlog=4096; root {files};
    ssl_certificate {certificate}; ssl_certificate_key {certificate};
    location = /1k {{ return 200 "{body}"; }}
    {locations}
  }}
"""


_DIFFERENT = """
      add_header ETag "\\"$request_id\\"" always; add_header X-Request-Id $request_id always;
      add_header Set-Cookie "session=$request_id; Path=/; HttpOnly" always;
"""
_POLICIES = "".join(f'add_header X-Policy-{number} "a value of some length that stays"; ' for number in range(21))
_ZIPPED = "add_header Content-Encoding gzip; add_header Vary Accept-Encoding;"
_SECOND_COOKIE = 'add_header Set-Cookie "seen=$request_id; path=/";'


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: microseconds of CPU a request, and the load's result."""

    cpu_us: float
    run: LoadRun


Results = dict[tuple[str, str], list[Measured]]
"""(case's key, peer) -> one a round, less those that failed."""


def main() -> None:
    """Run the comparison and print its table."""
    arguments = _parse()
    # Debian's servers lie where an ordinary user's own PATH does not lead.
    os.environ["PATH"] = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    console = Console(soft_wrap=True, width=None if sys.stdout.isatty() else _PAGE_COLUMNS)
    try:
        chosen, peers = cases.select(arguments.cases), _select_peers(arguments.peers)
        results = asyncio.run(_compare(chosen, peers, console, rounds=arguments.rounds, seconds=arguments.seconds))
        if not any(results.values()):
            raise OperatorError("no run succeeded")
        console.print(_table(results, chosen, peers))
        for line in _resumptions(results, [peer.name for peer in peers]):
            console.print(line)
        _write(results, chosen, peers, arguments, console)
    except (FrontageError, ValueError) as error:
        sys.exit(f"bench.compare: {error}")
    except KeyboardInterrupt:
        sys.exit(1)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.compare", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="runs of each case and proxy; medians count (3)")
    parser.add_argument("--seconds", type=int, default=3, help="length of one run (3)")
    keys = ", ".join(case.key for case in cases.CASES)
    parser.add_argument("--cases", help=f"only these, comma-separated, with wildcards: {keys}")
    parser.add_argument("--peers", help=f"only these, comma-separated: {', '.join(peer.name for peer in PEERS)}")
    return parser.parse_args()


def _select_peers(names: str | None) -> list[Peer]:
    """Return the proxies with these comma-separated names, or all without any.

    Raises: ValueError.
    """
    if not names:
        return list(PEERS)
    wanted = {name.strip().lower() for name in names.split(",")}
    if unknown := wanted - {peer.name.lower() for peer in PEERS}:
        raise ValueError(f"no peer {', '.join(sorted(unknown))}: there are {', '.join(peer.name for peer in PEERS)}")
    return [peer for peer in PEERS if peer.name.lower() in wanted]


# Measuring -------------------------------------------------------------------------------------------------


async def _compare(
    chosen: Sequence[Case], peers: Sequence[Peer], console: Console, *, rounds: int, seconds: int
) -> Results:
    _require(peers)
    os.sched_setaffinity(0, {LOAD_CORE})  # and whatever we start, unless it is pinned to the proxy's
    steps = rounds * len(chosen) * len(peers)
    minutes = steps * (seconds + _WARM_UP_SECONDS + _OVERHEAD_SECONDS) / 60
    console.print(
        f"{len(chosen)} cases × {len(peers)} proxies × {rounds} rounds of {seconds} s: about {minutes:.0f} minutes"
    )
    results: Results = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="frontage-compare-", ignore_cleanup_errors=True) as name:
        async with contextlib.AsyncExitStack() as stack:
            with Progress(console=console, transient=True) as progress:
                task = progress.add_task("starting", total=steps)
                sites = await stack.enter_async_context(origins(Path(name)))
                started = [(peer.name, await _start(stack, peer, sites, chosen, Path(name))) for peer in peers]
                loads = _Loads(Path(name))
                for _ in range(rounds):
                    for case in chosen:
                        for peer_name, serving in started:
                            progress.update(task, description=f"{peer_name}: {case.title}")
                            with _left_out(f"{case.key} through {peer_name}", console):
                                results[case.key, peer_name].append(
                                    await _measure(loads, case, serving[case.logs], seconds)
                                )
                            progress.advance(task)
    return results


async def _start(
    stack: contextlib.AsyncExitStack, peer: Peer, sites: Sites, chosen: Sequence[Case], directory: Path
) -> dict[bool, RunningProxy]:
    """Start the peer, by whether it writes a log; what no case needs is not started."""
    running = {}
    for logs in sorted({case.logs for case in chosen}):
        log = directory / f"{peer.name}.log" if logs else None
        running[logs] = await stack.enter_async_context(peer.serve(replace(sites, log=log)))
    return running


@contextlib.contextmanager
def _left_out(what: str, console: Console) -> Iterator[None]:
    """Print a run that fails within the block, so that the next one follows."""
    try:
        yield
    except LoadFailed as error:
        console.print(f"left out: {what}: {error}", markup=False)


def _require(peers: Sequence[Peer]) -> None:
    """Require the programs and cores of the comparison.

    Raises: `OperatorError`.
    """
    programs = dict(_PROGRAMS)
    for peer in peers:
        programs |= peer.needs
    if packages := missing(programs):
        names = " ".join(packages)
        raise OperatorError(f"programs are missing: on Debian and Ubuntu, as root, `apt-get install {names}`")
    if not {PROXY_CORE, LOAD_CORE} <= os.sched_getaffinity(0):
        raise OperatorError("two cores are needed: one for the proxy alone, one for everything else")


@contextlib.asynccontextmanager
async def origins(directory: Path) -> AsyncIterator[Sites]:
    """Run the origins for the block: nginx for HTTP, our own for WebSockets."""
    files, certificates = await asyncio.to_thread(_lay_out, directory)
    port, secure_port, socket_port = free_ports(3)
    servers = _ORIGIN.format(
        port=port,
        secure_port=secure_port,
        certificate=certificates / f"{SECURE_HOST}.pem",
        files=files,
        body="x" * BODY_BYTES[cases.KB],
        locations="".join(_locations()) + typical.nginx_locations(),
    )
    argv = module("bench.quick_origin", str(socket_port))
    async with (
        nginx(servers, core=LOAD_CORE, port=port),
        server(argv, core=LOAD_CORE, log=directory / "quick_origin.log", port=socket_port),
    ):
        origins = {HOST: port, SECURE_HOST: secure_port, SOCKET_HOST: socket_port} | dict.fromkeys(MANY_HOSTS, port)
        yield Sites(origins, certificates)


def _locations() -> Iterator[str]:
    """Yield the locations of responses that differ, but for those of the typical mix."""
    body = "x" * BODY_BYTES[cases.KB]
    for path, answer in {
        cases.DIFFERENT: f'return 200 "{body}";',
        cases.NOT_MODIFIED: "return 304;",
        cases.MISSING: f'return 404 "{body}";',
        cases.REDIRECT: "return 302 /from/$request_id;",
        cases.TWO_COOKIES: f'{_SECOND_COOKIE} return 200 "{body}";',
        cases.MANY_FIELDS: f'{_POLICIES} return 200 "{body}";',
        cases.GZIP: f'{_ZIPPED} return 200 "{body}";',
        **dict.fromkeys(cases.SIZED_BYTES, "etag off;"),  # a file
    }.items():
        yield f"location = {path} {{ {_DIFFERENT} {answer} }}\n"


def _lay_out(directory: Path) -> tuple[Path, Path]:
    """Write what the origins answer with, and the hosts' certificates; return both directories."""
    directory.chmod(0o755)  # nginx' worker is another user when we are root
    files, certificates = directory / "files", directory / "certificates"
    for path, size in (dict(heads.read_page().files) | BODY_BYTES | cases.SIZED_BYTES).items():
        file = files / path.removeprefix("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x" * size)
    certificates.mkdir()
    write_certificates(certificates, (HOST, SECURE_HOST, SOCKET_HOST, *MANY_HOSTS))
    (directory / "hosts").write_text("\n".join(MANY_HOSTS))
    return files, certificates


async def _measure(loads: _Loads, case: Case, serving: RunningProxy, seconds: int) -> Measured:
    """Measure one run of a case through one proxy."""
    port = serving.https_port if case.scheme == cases.HTTPS else serving.http_port
    with contextlib.suppress(LoadFailed):  # on a busy machine no answer may be complete as early as that
        await loads.run(case, port, _WARM_UP_SECONDS)
    before = cpu_seconds(serving.pid)
    run = await loads.run(case, port, seconds)
    return Measured((cpu_seconds(serving.pid) - before) / run.requests * 1e6, run)


def _host(case: Case) -> str:
    return SECURE_HOST if case.is_origin_secure else HOST


class _Loads:
    """Runs the load of each case; `directory` has the file of hosts, and what a load prepares for its runs."""

    def __init__(self, directory: Path) -> None:
        self._hosts = directory / "hosts"
        self._page = heads.page(HOST, heads.read_page())
        self._typical = typical.requests(SECURE_HOST)
        self._http2 = Http2Load(directory)

    async def run(self, case: Case, port: int, seconds: float) -> LoadRun:
        """Load the proxy at `port` as the case says.

        Raises: `LoadFailed`.
        """
        if case.load is Load.SOCKET:
            return await self._own("socket", f"{case.scheme}://{SOCKET_HOST}:{port}/socket", seconds)
        if case.load in (Load.HEAD, Load.NEW, Load.RETURNING):
            return await self._own(case.load.name.lower(), f"{case.scheme}://{HOST}:{port}{case.path}", seconds)
        if case.load is Load.MANY and case.scheme == cases.HTTPS:
            return await self._own("domains", f"https://{HOST}:{port}{case.path}", seconds)
        url = f"{case.scheme}://{_host(case)}:{port}{case.path}"
        if case.load in _STREAMS:
            return await h2load.run(url, streams=_STREAMS[case.load], seconds=seconds, core=LOAD_CORE)
        if case.load in _OWN_STREAMS:
            streams, requests = _OWN_STREAMS[case.load]
            return await self._http2.run(url, requests, streams=streams, seconds=seconds, core=LOAD_CORE)
        is_refused = case.path == cases.MISSING
        return await wrk.run(url, self._requests(case), seconds=seconds, core=LOAD_CORE, is_refused=is_refused)

    def _requests(self, case: Case) -> list[bytes]:
        match case.load:
            case Load.VARIED:
                return heads.varied(_host(case), case.path)
            case Load.SIZES:
                return heads.of_paths(HOST, list(cases.SIZED_BYTES))
            case Load.LONG_COOKIES:
                return heads.long_cookies(HOST, case.path)
            case Load.SHORT:
                return heads.ending(heads.varied(HOST, case.path))
            case Load.TYPICAL:
                return self._typical
            case Load.POST:
                return heads.posts(HOST, case.path)
            case Load.HOST_LAST:
                return heads.host_last(heads.same(HOST, case.path))
            case Load.HOST_LAST_VARIED:
                return heads.host_last(heads.varied(HOST, case.path))
            case Load.PAGE:
                return self._page
            case Load.MANY:
                return heads.round_robin(MANY_HOSTS, case.path)
            case _:
                return heads.same(HOST, case.path)

    async def _own(self, load: str, url: str, seconds: float) -> LoadRun:
        argv = module("bench.load_client", load, url, "--seconds", str(seconds), "--hosts", str(self._hosts))
        return read_run(f"{load} on {url}", await last_line(argv, core=LOAD_CORE, seconds=seconds + _SPARE_SECONDS))


# Showing ---------------------------------------------------------------------------------------------------


def costs_of(results: Results, case: Case, peers: Sequence[str]) -> dict[str, float]:
    """Return the median costs of a case by peer, without the peers whose runs all failed."""
    measured = {name: results[case.key, name] for name in peers if results.get((case.key, name))}
    return {name: statistics.median(run.cpu_us for run in runs) for name, runs in measured.items()}


def _table(results: Results, chosen: Sequence[Case], peers: Sequence[Peer]) -> Table:
    names = [peer.name for peer in peers]
    table = Table(
        box=box.SIMPLE_HEAD, title=f"CPU time per request, µs (user and system, median; × is the ratio to {REFERENCE})"
    )
    table.add_column("case")
    for name in names:
        table.add_column(name, justify="right", style="bold" if name == OURS else None)
    for title in ("goal", "ours", ""):
        table.add_column(title, justify="left" if title == "goal" else "right")
    for case in chosen:
        costs = costs_of(results, case, names)
        cells = [_cell(costs, name) for name in names]
        table.add_row(case.title, *cells, *_verdict_cells(case, costs))
    return table


def _resumptions(results: Results, names: Sequence[str]) -> Iterator[str]:
    """Describe what resuming a session saves, where both cases were measured."""
    for name in names:
        whole, returning = results.get(("https-new", name)), results.get(("https-returning", name))
        if whole and returning:
            costs = [statistics.median(each.cpu_us for each in measured) for measured in (returning, whole)]
            runs = [each.run for each in returning]
            share = sum(run.resumed for run in runs) / sum(run.requests for run in runs)
            yield f"{name}: {share:.0%} of returning connections resumed, at {costs[0] / costs[1]:.2f} × a new one"


def _cell(costs: dict[str, float], name: str) -> str:
    if name not in costs:
        return "failed"
    cost = f"{costs[name]:.1f}" if costs[name] < 100 else f"{costs[name]:.0f}"
    if REFERENCE not in costs or name == REFERENCE:
        return cost
    return f"{cost} [dim]{costs[name] / costs[REFERENCE]:5.2f}×[/]"


def _verdict_cells(case: Case, costs: dict[str, float]) -> tuple[str, str, str]:
    verdict = cases.judge(case, costs, OURS)
    if verdict is None:
        return (str(case.bar) if case.bar else "–", "", "")
    return str(case.bar), f"{verdict.ratio:.2f}×", "[green]met[/]" if verdict.is_met else "[red]missed[/]"


def _write(
    results: Results, chosen: Sequence[Case], peers: Sequence[Peer], arguments: argparse.Namespace, console: Console
) -> None:
    names = [peer.name for peer in peers]
    figures = [_figures(results, case, names) for case in chosen]
    path = output.write("compare", {"rounds": arguments.rounds, "seconds": arguments.seconds, "cases": figures})
    console.print(f"written to {path}")
    picture = path.with_suffix(".png")
    panels = [
        compare_picture.Panel(case.title, costs, case.bar)
        for case in chosen
        if (costs := costs_of(results, case, names))
    ]
    if compare_picture.draw(picture, panels, ours=OURS):
        console.print(f"drawn to {picture}")
    else:
        console.print("not drawn: `pip install matplotlib`, or Frontage with its extra `bench`")


def _figures(results: Results, case: Case, names: Sequence[str]) -> dict[str, Any]:
    costs = costs_of(results, case, names)
    verdict = cases.judge(case, costs, OURS)
    return {
        "case": case.key,
        "title": case.title,
        "load": case.load.value,
        "cpu_us_per_request": costs,
        "goal": str(case.bar) if case.bar else None,
        "ratio": verdict and verdict.ratio,
        "met": verdict and verdict.is_met,
        "runs": {
            name: [{"cpu_us": each.cpu_us} | asdict(each.run) for each in results.get((case.key, name), ())]
            for name in names
        },
    }


if __name__ == "__main__":
    main()
