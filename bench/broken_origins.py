"""``python -m bench.broken_origins``: what clients see of origins that break HTTP, through us, nginx and HAProxy.

bodies  the origin answers HEAD with the body it describes, and sends a body behind 304, at once or up to 1.5 s later.
        Counted: GETs in between that got anything but their own response.
hidden  the same behind a 204 that announces nothing. The first bytes cannot be distinguished from a response.
closes  the origin closes each connection behind its response without announcing it. Counted: PUTs of 1 KB that got an
        error. One client sends them one after the other, on one connection.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

from bench import output
from bench.peers import HOST, Peer, Sites, missing
from bench.peers.certificates import write_certificates
from bench.peers.frontage_edge import Frontage
from bench.peers.haproxy_proxy import HAProxy
from bench.peers.nginx_proxy import Nginx
from common.errors import FrontageError, OperatorError

_PEERS: tuple[Peer, ...] = (Frontage(), Nginx(), HAProxy())
_CLIENTS = 8
_DELAYS_SECONDS = (0.0, 0.0, 0.001, 0.02, 1.5)
_PATIENCE_SECONDS = 30.0
_FORGED = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"
_RIGHT = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nright"
_ANNOUNCED = {
    b"HEAD": b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(_FORGED),
    b"OPTIONS": b"HTTP/1.1 304 Not Modified\r\nContent-Length: %d\r\n\r\n" % len(_FORGED),
}
_HIDDEN = dict.fromkeys(_ANNOUNCED, b"HTTP/1.1 204 No Content\r\n\r\n")
_TRIALS = ("bodies", "hidden", "closes")
_BODY = bytes(1024)

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def main() -> None:
    """Run the bench and print how many responses were wrong, by proxy and trial."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.broken_origins", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=4_929, help="of each trial, to each peer (4929)")
    arguments = parser.parse_args()
    os.environ["PATH"] = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    try:
        results = asyncio.run(_try_all(arguments.requests))
    except FrontageError as error:
        sys.exit(f"bench.broken_origins: {error}")
    print(f"{'wrong of ' + str(arguments.requests):20}", *(f"{trial:>8}" for trial in _TRIALS))
    for name, wrong in results.items():
        print(f"{name:20}", *(f"{wrong[trial]:8}" for trial in _TRIALS))
    print(f"written to {output.write('broken_origins', {'requests': arguments.requests, 'wrong': results})}")


async def _try_all(requests: int) -> dict[str, dict[str, int]]:
    """Return the number of wrong responses, by proxy and trial.

    Raises: `OperatorError` when programs are missing.
    """
    needs: dict[str, str] = {}
    for peer in _PEERS:
        needs |= peer.needs
    if packages := missing(needs):
        raise OperatorError(f"programs are missing: on Debian, as root, `apt-get install {' '.join(packages)}`")
    results: dict[str, dict[str, int]] = {}
    serve: Mapping[str, Serve] = {
        "bodies": partial(_send_forbidden_bodies, _ANNOUNCED),
        "hidden": partial(_send_forbidden_bodies, _HIDDEN),
        "closes": _close_each,
    }
    with tempfile.TemporaryDirectory(prefix="frontage-origins-") as name:
        os.chmod(name, 0o755)  # nginx' worker is another user when we are root
        write_certificates(Path(name), (HOST,))
        for peer in _PEERS:
            wrong = results[peer.name] = {}
            for trial in _TRIALS:
                async with _origin(serve[trial]) as port, peer.serve(Sites({HOST: port}, Path(name))) as serving:
                    ask = _try_closes if trial == "closes" else _try_bodies
                    wrong[trial] = await ask(serving.http_port, requests)
    return results


# Clients ---------------------------------------------------------------------------------------------------


async def _try_bodies(port: int, requests: int) -> int:
    """Return how many GETs of several clients at once got a wrong response; every second request is one."""

    async def run() -> int:
        wrong, client = 0, _Client(port)
        for each in range(requests // _CLIENTS // 2):
            await client.ask(b"OPTIONS" if each % 3 == 0 else b"HEAD")
            wrong += await client.ask(b"GET") != (200, b"right")
        client.close()
        return wrong

    return sum(await asyncio.gather(*(run() for _ in range(_CLIENTS))))


async def _try_closes(port: int, requests: int) -> int:
    """Return how many PUTs of one client got a wrong response."""
    wrong, client = 0, _Client(port)
    for _ in range(requests):
        wrong += await client.ask(b"PUT", _BODY) != (200, b"right")
    client.close()
    return wrong


class _Client:
    """One keep-alive connection, opened anew when the proxy ends it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: bytes, body: bytes = b"") -> tuple[int, bytes]:
        """Send a request, and return status and body; (0, b"") where the connection ended instead."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        length = b"Content-Length: %d\r\n" % len(body) if body else b""
        writer.write(b"%b / HTTP/1.1\r\nHost: %b\r\n%b\r\n%b" % (method, HOST.encode(), length, body))
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                status = int(head.split()[1])
                size = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or b"0")
                answer = b"" if method == b"HEAD" or status in (204, 304) else await reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            self.close()
            return 0, b""
        if b"\r\nconnection: close" in head:
            self.close()
        return status, answer

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


# Origins ---------------------------------------------------------------------------------------------------


async def _send_forbidden_bodies(
    heads: Mapping[bytes, bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answer requests, with bodies behind responses that must not have one, some of them late."""
    late: set[asyncio.Task[None]] = set()

    async def send_late(seconds: float) -> None:
        await asyncio.sleep(seconds)
        writer.write(_FORGED)

    chance = random.Random(writer.get_extra_info("peername")[1])
    while True:
        method = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 1)[0]
        head = heads.get(method)
        writer.write(head or _RIGHT)
        if head is not None:
            task = asyncio.create_task(send_late(chance.choice(_DELAYS_SECONDS)))
            late.add(task)
            task.add_done_callback(late.discard)


async def _close_each(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one request, then let the connection close."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    await reader.readexactly(int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or b"0"))
    writer.write(_RIGHT)


@contextlib.asynccontextmanager
async def _origin(serve: Serve) -> AsyncIterator[int]:
    """Run an origin for the block, and yield its port. Each of its connections is served by `serve`."""

    async def run(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await serve(reader, writer)
        writer.close()

    server = await asyncio.start_server(run, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


if __name__ == "__main__":
    main()
