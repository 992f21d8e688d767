"""``python -m bench.idle_connections``: memory of 5,000 idle HTTP/2 connections, after requests like a browser's.

In each row, a first group of 16 connections sends the row's requests and is closed. Then the private memory of all
processes of the proxy is read. The connections are opened; each sends its requests, one after another, and then nothing
for ten seconds: the edge forgets what a connection's requests were like after five. Then the memory is read again, and
the difference is divided by the number of connections. Each row has a proxy of its own, since memory that is freed
serves later connections. It takes some nine minutes.

TLS 1.3, ECDSA P-256. No two requests have the same path. The kernel's memory of sockets is not counted: it is the same
for every proxy. nginx is a reference, not the goal, which is 25 KB. Needs Debian's `nginx-light`. The table is also
written as JSON (``idle_connections.json`` in ``bench/output``).
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import resource
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from yarl import URL

from bench import cases, compare, heads, output
from bench.http2_client import client_context
from bench.http2_load import Heads, LoadConnection, connect, encode
from bench.memory import memory_of
from bench.peers import HOST, LOAD_CORE, PROXY_CORE, Peer, RunningProxy, missing
from bench.peers.frontage_edge import Frontage
from bench.peers.nginx_proxy import Nginx
from bench.pinned import LoadFailed
from bench.process_tree import descendants
from common.errors import FrontageError, OperatorError
from common.processes import loop_factory
from edge.proxy.http2_writing import FORGET_SECONDS

CONNECTIONS: Final = 5000
KB: Final = 1024
GOAL_BYTES: Final = 25 * KB
_AT_ONCE: Final = 32  # handshakes
_EARLIER: Final = 16  # connections before the first measurement: what these held, others use
_IDLE_SECONDS: Final = 2 * FORGET_SECONDS  # deadlines are looked at twice a second
_ANSWER_SECONDS: Final = 20
_KEPT_SECONDS: Final = "600"
_SPARE_DESCRIPTORS: Final = 256
_PAGE_COLUMNS: Final = 100


@dataclass(frozen=True, slots=True)
class Row:
    """What each connection sends before it is idle."""

    title: str
    requests: int
    heads: Heads


def _other_paths(host: str, path: str, numbers: Iterable[int]) -> list[bytes]:
    (request,) = heads.same(host, path)
    return [request.replace(path.encode(), heads.other_path(path, number).encode(), 1) for number in numbers]


ROWS: Final = (
    Row("no request", 0, _other_paths),
    Row("one request", 1, _other_paths),
    Row("four, paths differ", 4, _other_paths),
    Row("four, session cookies differ, too", 4, heads.other_cookies),
    Row("14 of a page, of seven kinds", 14, heads.other_kinds),
)

PEERS: Final[Sequence[Peer]] = (
    Nginx(),
    Frontage(EDGE_IDLE_TIMEOUT_SECONDS=_KEPT_SECONDS, EDGE_MAX_CONNECTIONS_PER_ADDRESS="100000"),
)

Found: TypeAlias = "dict[tuple[str, str], float]"
"""Bytes of a connection, by the row's title and the peer's name."""


class IdleConnection(LoadConnection):
    """A connection that stays when all its requests are answered; `idle` is set then."""

    def __init__(self, requests: Iterable[bytes]) -> None:
        super().__init__(requests, streams=1)
        self.idle = asyncio.Event()

    def on_all_answered(self) -> None:
        """Set `idle`."""
        self.idle.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wake who waits for answers."""
        super().connection_lost(exc)
        self.idle.set()


def main() -> None:
    """Run the bench and print its table."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.idle_connections",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--connections", type=int, default=CONNECTIONS, help=f"of each row ({CONNECTIONS:,})")
    arguments = parser.parse_args()
    # Debian's servers lie where an ordinary user's own PATH does not lead.
    os.environ["PATH"] = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    console = Console(soft_wrap=True, width=None if sys.stdout.isatty() else _PAGE_COLUMNS)
    try:
        _require(arguments.connections)
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            found = runner.run(_measure(console, arguments.connections))
    except FrontageError as error:
        sys.exit(f"bench.idle_connections: {error}")
    except KeyboardInterrupt:
        sys.exit(1)
    console.print(_table(found, arguments.connections))
    rows = [
        {"row": row.title, "bytes_per_connection": {peer.name: found[row.title, peer.name] for peer in PEERS}}
        for row in ROWS
    ]
    path = output.write("idle_connections", {"connections": arguments.connections, "goal": GOAL_BYTES, "rows": rows})
    console.print(f"written to {path}")


def _require(connections: int) -> None:
    if not {PROXY_CORE, LOAD_CORE} <= os.sched_getaffinity(0):
        raise OperatorError("two cores are needed: one for the proxy, one for everything else")
    if packages := missing(Nginx.needs):
        raise OperatorError(f"programs are missing: on Debian, as root, `apt-get install {' '.join(packages)}`")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most < connections + _SPARE_DESCRIPTORS:
        raise OperatorError(f"{connections} connections are more than this user's {most} descriptors: `ulimit -Hn`")
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


# Measuring -------------------------------------------------------------------------------------------------


async def _measure(console: Console, connections: int) -> Found:
    """Return the bytes of a connection, by row and peer."""
    os.sched_setaffinity(0, {LOAD_CORE})  # and whatever we start, unless it is pinned to the proxy's
    found: Found = {}
    with tempfile.TemporaryDirectory(prefix="frontage-idle-", ignore_cleanup_errors=True) as name:
        async with compare.origins(Path(name)) as sites:
            with Progress(console=console, transient=True) as progress:
                task = progress.add_task("starting", total=len(ROWS) * len(PEERS))
                for row, peer in itertools.product(ROWS, PEERS):
                    progress.update(task, description=f"{peer.name}: {row.title}")
                    async with peer.serve(sites) as proxy:
                        found[row.title, peer.name] = await _bytes_each(proxy, row, connections)
                    progress.advance(task)
    return found


async def _bytes_each(proxy: RunningProxy, row: Row, connections: int) -> float:
    """Return what a proxy holds for each of so many idle connections."""
    url = URL(f"https://{HOST}:{proxy.https_port}{cases.DIFFERENT}")
    earlier = await _idle_connections(url, row, _EARLIER)
    for connection in earlier:
        connection.abort()
    await asyncio.sleep(1)
    before = _private_bytes(proxy)
    idle = await _idle_connections(url, row, connections)
    await asyncio.sleep(_IDLE_SECONDS)
    held = _private_bytes(proxy) - before
    if lost := sum(connection.closed.is_set() for connection in idle):
        raise LoadFailed(f"the proxy closed {lost} idle connections")
    for connection in idle:
        connection.abort()
    return held / connections


async def _idle_connections(url: URL, row: Row, count: int) -> list[IdleConnection]:
    """Return so many connections whose requests are answered."""
    requests = await asyncio.to_thread(encode, row.heads, url, count, row.requests)
    context, at_once = client_context(), asyncio.Semaphore(_AT_ONCE)

    async def open_one(encoded: Sequence[bytes]) -> IdleConnection:
        connection = IdleConnection(encoded)
        async with at_once:
            await connect(url, context, connection)
            async with asyncio.timeout(_ANSWER_SECONDS):
                await connection.idle.wait()
        if connection.failure is not None or connection.answered != row.requests:
            raise LoadFailed(connection.failure or "a connection ended early")
        return connection

    return await asyncio.gather(*map(open_one, requests))


def _private_bytes(proxy: RunningProxy) -> int:
    return sum(memory_of(pid).private_bytes for pid in descendants(proxy.pid))


# Showing ---------------------------------------------------------------------------------------------------


def _table(found: Found, connections: int) -> Table:
    table = Table(title=f"Memory of an idle HTTP/2 connection, KB (of {connections:,})", title_justify="left")
    table.add_column("before it was idle")
    for peer in PEERS:
        table.add_column(peer.name, justify="right")
    table.add_column("goal", justify="right")
    for row in ROWS:
        costs = [round(found[row.title, peer.name] / KB, 1) for peer in PEERS]  # as printed, and judged
        verdict = "[green]met[/]" if costs[-1] <= GOAL_BYTES / KB else "[red]missed[/]"
        table.add_row(row.title, *(f"{cost:.1f}" for cost in costs), f"≤ {GOAL_BYTES // KB} {verdict}")
    return table


if __name__ == "__main__":
    main()
