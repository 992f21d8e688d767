"""``python -m bench.origin_faults``: what visitors see of an origin in trouble, through two workers.

down     the origin refuses connections for a while. Counted: seconds from its return to the last failed request.
silent   the origin's packets are dropped: connections time out. Counted as above.
moved    the origin's name changes to another address under traffic. Counted: seconds until the old one is left alone.
several  one of the origin's two addresses closes connections before any byte, or fails in TLS. Counted: failed GETs,
         and how requests spread over two sound addresses.
posts    the origin closes connections that are idle for a second, behind a round trip of 40 ms. Counted: POSTs that
         fail of those sent at about that time, through us and through nginx.
race     the same without the round trip, and POSTs sent within a few milliseconds of the close.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import socket
import ssl
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench import output
from bench.demo.stage import Stage
from bench.enrolment import EnrolledDomain, enrol, until_applied
from bench.lab.ports import free_ports
from bench.lab.server import NameServer
from bench.lab.slow_link import slow_link
from bench.lab.zone import Zone
from bench.peers import Peer, Sites, missing
from bench.peers.certificates import make_certificate, write_certificates
from bench.peers.frontage_edge import Frontage
from bench.peers.nginx_proxy import Nginx
from bench.private_stage import private_stage
from common.db.address import resolve_dsn
from common.db.applications import update_application
from common.db.session import open_session
from common.errors import FrontageError, OperatorError
from common.secrets import load_keyring

_ORIGIN = "origin.example"
_TTL_SECONDS = 5
_ASKS_PER_SECOND = 50
_PATIENCE_SECONDS = 30.0
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
_IDLE_SECONDS = 1.0
_RACE_IDLE_SECONDS = 0.3
_ONE_WAY_SECONDS = 0.02
_POSTING = 20  # clients at once, each with an origin of its own
_PEERS: tuple[Peer, ...] = (Frontage(EDGE_WORKERS="2"), Nginx())

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Figures = dict[str, float | int | str]


def main() -> None:
    """Run the trials and print their figures."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.origin_faults", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", default=",".join(_TRIALS), help="only these, comma-separated")
    parser.add_argument("--down-seconds", type=float, default=20.0, help="of an outage (20)")
    parser.add_argument("--posts", type=int, default=2_000, help="POSTs behind the round trip (2000)")
    parser.add_argument("--races", type=int, default=300, help="POSTs in the race (300)")
    arguments = parser.parse_args()
    os.environ["PATH"] = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    figures: Figures = {}
    try:
        for trial in arguments.trials.split(","):
            found = asyncio.run(_TRIALS[trial](arguments))
            figures |= found
            for what, figure in found.items():
                print(f"{what:55} {figure:8.1f}" if isinstance(figure, float) else f"{what:55} {figure:>8}", flush=True)
    except FrontageError as error:
        sys.exit(f"bench.origin_faults: {error}")
    print(f"written to {output.write('origin_faults', {'figures': figures})}")


# Outages ---------------------------------------------------------------------------------------------------


async def _try_down(arguments: argparse.Namespace) -> Figures:
    """Measure an origin that refuses connections for a while."""
    port = free_ports(1)[0]
    async with _edge({"down": f"http://127.0.0.1:{port}"}) as edge:
        asking = asyncio.create_task(edge.ask_steadily("down"))
        await asyncio.sleep(arguments.down_seconds)
        async with _origin(_answer_each, port=port):
            back_at = time.monotonic()
            await asyncio.sleep(arguments.down_seconds + 15)
            asking.cancel()
    last = max((at for at, status in edge.seen if status != 200), default=back_at)
    return {f"down {arguments.down_seconds:g} s: last failure after return, s": max(0.0, last - back_at)}


async def _try_silent(arguments: argparse.Namespace) -> Figures:
    """Measure an origin whose backlog is full, so that the kernel drops what asks for more."""
    port = free_ports(1)[0]
    async with _edge({"silent": f"http://127.0.0.1:{port}"}) as edge:
        with _silence(port):
            asking = asyncio.create_task(edge.ask_steadily("silent"))
            await asyncio.sleep(arguments.down_seconds)
        async with _origin(_answer_each, port=port):
            back_at = time.monotonic()
            await asyncio.sleep(arguments.down_seconds + 35)
            asking.cancel()
    last = max((at for at, status in edge.seen if status != 200), default=back_at)
    return {f"silent {arguments.down_seconds:g} s: last failure after return, s": max(0.0, last - back_at)}


@contextlib.contextmanager
def _silence(port: int) -> Iterator[None]:
    with socket.socket() as listener, contextlib.ExitStack() as stack:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(0)
        for _ in range(4):
            filling = stack.enter_context(socket.socket())
            filling.setblocking(False)
            filling.connect_ex(("127.0.0.1", port))
        yield


# DNS and addresses -----------------------------------------------------------------------------------------


async def _try_moved(_: argparse.Namespace) -> Figures:
    """Measure an origin whose name changes to another address."""
    port = free_ports(1)[0]
    zone = Zone(is_authoritative=False)
    zone.add(_ORIGIN, "A", "127.0.0.2", ttl_seconds=_TTL_SECONDS)
    asked: list[float] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            asked.append(time.monotonic())
            writer.write(_ANSWER)

    async with (
        _origin(note, "127.0.0.2", port),
        _origin(_answer_each, "127.0.0.3", port),
        NameServer.serve(zone) as server,
        _edge({"moved": f"http://{_ORIGIN}:{port}"}, dns=server.address) as edge,
    ):
        asking = asyncio.create_task(edge.ask_steadily("moved"))
        await asyncio.sleep(12)
        zone.replace(_ORIGIN, "A", "127.0.0.3", ttl_seconds=_TTL_SECONDS)
        moved_at = time.monotonic()
        await asyncio.sleep(45)
        asking.cancel()
    failed = sum(status != 200 for _, status in edge.seen)
    return {
        f"moved, TTL {_TTL_SECONDS} s: old address used for, s (45: to the end)": max(0.0, asked[-1] - moved_at),
        "moved: failed requests": failed,
    }


async def _try_several(_: argparse.Namespace) -> Figures:
    figures: Figures = {}
    for name, first in (("closes", _close), ("fails in TLS", _close)):
        scheme = "https" if "TLS" in name else "http"
        figures |= await _try_two(f"one of two {name}", scheme, first)
    return figures | await _try_two("two sound", "http", None)


async def _try_two(title: str, scheme: str, first: Serve | None) -> Figures:
    port = free_ports(1)[0]
    zone = Zone(is_authoritative=False)
    for address in ("127.0.0.2", "127.0.0.3"):
        zone.add(_ORIGIN, "A", address)
    served: Counter[str] = Counter()

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            served[writer.get_extra_info("sockname")[0]] += 1
            await asyncio.sleep(0.05)
            writer.write(_ANSWER)

    with tempfile.TemporaryDirectory() as directory:
        context = _server_context(Path(directory)) if scheme == "https" else None
        async with (
            _origin(first or count, "127.0.0.2", port),
            _origin(count, "127.0.0.3", port, context),
            NameServer.serve(zone) as server,
            _edge({"several": f"{scheme}://{_ORIGIN}:{port}"}, dns=server.address) as edge,
        ):
            await asyncio.gather(*(edge.ask("several") for _ in range(40)))
            for _ in range(60):
                await edge.ask("several")
    figures: Figures = {f"{title}: failed GETs of {len(edge.seen)}": sum(status != 200 for _, status in edge.seen)}
    if first is None:
        figures[f"{title}: requests to the first, the second"] = f"{served['127.0.0.2']}, {served['127.0.0.3']}"
    return figures


async def _close(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.read(1)


def _server_context(directory: Path) -> ssl.SSLContext:
    path = directory / "origin.pem"
    path.write_text("".join(make_certificate(_ORIGIN)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


# POSTs -----------------------------------------------------------------------------------------------------


async def _try_posts(arguments: argparse.Namespace) -> Figures:
    return await _post_to_each("posts at 40 ms", _IDLE_SECONDS, _ONE_WAY_SECONDS, 0.65, arguments.posts)


async def _try_race(arguments: argparse.Namespace) -> Figures:
    return await _post_to_each("posts in the race", _RACE_IDLE_SECONDS, 0.0, 0.005, arguments.races)


async def _post_to_each(title: str, idle: float, one_way: float, spread: float, posts: int) -> Figures:
    needs: dict[str, str] = {}
    for peer in _PEERS:
        needs |= peer.needs
    if packages := missing(needs):
        raise OperatorError(f"programs are missing: on Debian, as root, `apt-get install {' '.join(packages)}`")
    figures: Figures = {}
    for peer in _PEERS:
        failed = await _post_through(peer, idle, one_way, spread, posts)
        figures[f"{title}, {peer.name}: failed of {posts}"] = failed
    return figures


async def _post_through(peer: Peer, idle: float, one_way: float, spread: float, posts: int) -> int:
    hosts = [f"shop{number}.customer.localhost" for number in range(_POSTING)]

    async def close_idle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            async with asyncio.timeout(idle):
                head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(4)
            assert head.startswith(b"POST")
            writer.write(_ANSWER)

    async with contextlib.AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="frontage-origins-")))
        os.chmod(directory, 0o755)  # nginx' worker is another user when we are root
        write_certificates(directory, hosts)
        ports = {}
        for host in hosts:
            port = await stack.enter_async_context(_origin(close_idle))
            ports[host] = await stack.enter_async_context(slow_link(port, one_way)) if one_way else port
        serving = await stack.enter_async_context(peer.serve(Sites(ports, directory)))

        async def post(host: str, count: int) -> int:
            chance, wrong = random.Random(host), 0
            for _ in range(count):
                wrong += await _ask(serving.http_port, host, b"POST", b"body") != 200
                await asyncio.sleep(idle + chance.uniform(-spread, spread))
            return wrong

        return sum(await asyncio.gather(*(post(host, posts // len(hosts)) for host in hosts)))


# Peers -----------------------------------------------------------------------------------------------------


class _Edge:
    """An edge of two workers. `seen`: when each request ended, and its status (0: none)."""

    def __init__(self, http_port: int) -> None:
        self._http_port = http_port
        self.seen: list[tuple[float, int]] = []

    async def ask(self, name: str) -> None:
        """Send a request on a connection of its own, and record its status."""
        status = await _ask(self._http_port, _host(name), b"GET")
        self.seen.append((time.monotonic(), status))

    async def ask_steadily(self, name: str) -> None:
        """Send requests until cancelled, each on a connection of its own, so that both workers get some."""
        async with asyncio.TaskGroup() as asking:
            while True:
                asking.create_task(self.ask(name))
                await asyncio.sleep(1 / _ASKS_PER_SECOND)


async def _ask(port: int, host: str, method: bytes, body: bytes = b"") -> int:
    """Send a request, and return its status; 0 where the connection ended instead."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    length = b"Content-Length: %d\r\n" % len(body) if body else b""
    writer.write(b"%b / HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n%b\r\n%b" % (method, host.encode(), length, body))
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            return int((await reader.readuntil(b"\r\n\r\n")).split()[1])
    except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
        return 0
    finally:
        writer.close()


def _host(name: str) -> str:
    return f"{name}.customer.localhost"


@contextlib.asynccontextmanager
async def _edge(origins: dict[str, str], *, dns: str = "") -> AsyncIterator[_Edge]:
    """Run an edge with these domains for the block.

    `origins`: the URL of each name's origin. `dns` is the name server the edge asks.
    """
    settings = {"EDGE_WORKERS": "2", "EDGE_HTTPS_REDIRECT": "off"} | ({"DNS_SERVERS": dns} if dns else {})
    async with private_stage(**settings) as stage:
        await _trust_any_certificate(stage)
        enrolled = await enrol(
            resolve_dsn(stage.settings), load_keyring(stage.settings.key_file), _enrolments(stage, origins)
        )
        await until_applied(stage.settings.edge_admin, enrolled.version)
        yield _Edge(stage.settings.edge_http.port)


async def _trust_any_certificate(stage: Stage) -> None:
    connection = await open_session(resolve_dsn(stage.settings), "frontage bench")
    try:
        async with connection.transaction():
            await update_application(connection, stage.application_id, origin_verify=False)
    finally:
        connection.terminate()


def _enrolments(stage: Stage, origins: dict[str, str]) -> Sequence[EnrolledDomain]:
    enrolments = []
    for name, url in origins.items():
        key, chain = make_certificate(_host(name))
        enrolments.append(EnrolledDomain(_host(name), stage.application_id, url, chain, key))
    return enrolments


@contextlib.asynccontextmanager
async def _origin(
    serve: Serve, host: str = "127.0.0.1", port: int = 0, context: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """Run an origin for the block, and yield its port. Each of its connections is served by `serve`."""
    writers: set[asyncio.StreamWriter] = set()

    async def run(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.add(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            await serve(reader, writer)
        writers.discard(writer)
        writer.close()

    server = await asyncio.start_server(run, host, port, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()


async def _answer_each(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(_ANSWER)


_TRIALS: dict[str, Callable[[argparse.Namespace], Coroutine[Any, Any, Figures]]] = {
    "down": _try_down,
    "silent": _try_silent,
    "moved": _try_moved,
    "several": _try_several,
    "posts": _try_posts,
    "race": _try_race,
}


if __name__ == "__main__":
    main()
