"""``python -m bench.slow_uploads``: a visitor's GET beside ten slow uploads to an origin with two workers.

Each of the origin's workers serves one connection at a time, from its first byte to the response, as synchronous
application servers do. Ten clients send 200 KB each in small pieces over several seconds; a second after the first
piece a visitor asks for a page. Ours twice, with uploads streamed (the default) and buffered
(``app set --buffer-uploads``); nginx buffers by default; HAProxy streams.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from bench import output
from bench.peers import HOST, Peer, Sites, missing
from bench.peers.certificates import write_certificates
from bench.peers.frontage_edge import Frontage
from bench.peers.haproxy_proxy import HAProxy
from bench.peers.nginx_proxy import Nginx
from common.errors import FrontageError, OperatorError

_WORKERS = 2
_UPLOADS = 10
_UPLOAD_BYTES = 200_000
_PIECES = 40
_HEAD_START_SECONDS = 1.0
_PATIENCE_SECONDS = 120.0
_RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
_PEERS: tuple[tuple[str, Peer], ...] = (
    ("Frontage, streamed", Frontage()),
    ("Frontage, buffered", Frontage(buffer_uploads_bytes=1 << 20)),
    ("nginx", Nginx()),
    ("HAProxy", HAProxy()),
)


@dataclass(frozen=True, slots=True)
class Waited:
    """Seconds. `uploads`: from the first piece to the last response."""

    visitor: float
    uploads: float


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.slow_uploads", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=4.0, help="that each upload takes to send (4)")
    arguments = parser.parse_args()
    os.environ["PATH"] = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    try:
        results = asyncio.run(_measure_all(arguments.seconds))
    except FrontageError as error:
        sys.exit(f"bench.slow_uploads: {error}")
    print(f"{'seconds':20} {'visitor':>8} {'uploads':>8}")
    for name, waited in results.items():
        print(f"{name:20} {waited.visitor:8.3f} {waited.uploads:8.2f}")
    figures = {name: {"visitor": waited.visitor, "uploads": waited.uploads} for name, waited in results.items()}
    print(f"written to {output.write('slow_uploads', {'upload_seconds': arguments.seconds, 'waited': figures})}")


async def _measure_all(seconds: float) -> dict[str, Waited]:
    """Raises: `OperatorError`."""
    needs: dict[str, str] = {}
    for _, peer in _PEERS:
        needs |= peer.needs
    if packages := missing(needs):
        raise OperatorError(f"programs are missing: on Debian, as root, `apt-get install {' '.join(packages)}`")
    results = {}
    with tempfile.TemporaryDirectory(prefix="frontage-uploads-") as name:
        directory = Path(name)
        os.chmod(directory, 0o755)  # nginx' worker is another user when we are root
        write_certificates(directory, (HOST,))
        for title, peer in _PEERS:
            async with _origin() as port, peer.serve(Sites({HOST: port}, directory)) as serving:
                results[title] = await _measure(serving.http_port, seconds)
    return results


async def _measure(port: int, seconds: float) -> Waited:
    begun_at = time.perf_counter()
    async with asyncio.timeout(_PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        uploads = [group.create_task(_upload(port, seconds)) for _ in range(_UPLOADS)]
        await asyncio.sleep(_HEAD_START_SECONDS)
        asked_at = time.perf_counter()
        await _ask(port, b"GET / HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n\r\n" % HOST.encode())
        visitor = time.perf_counter() - asked_at
        await asyncio.gather(*uploads)
    return Waited(visitor, time.perf_counter() - begun_at)


async def _upload(port: int, seconds: float) -> None:
    head = b"POST / HTTP/1.1\r\nHost: %b\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
    pieces = [bytes(_UPLOAD_BYTES // _PIECES)] * _PIECES
    await _ask(port, head % (HOST.encode(), _UPLOAD_BYTES), *pieces, pause_seconds=seconds / _PIECES)


async def _ask(port: int, *pieces: bytes, pause_seconds: float = 0.0) -> None:
    """Raises: `OperatorError` for any response but 200."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause_seconds)
        line = await reader.readline()
        if b" 200 " not in line:
            raise OperatorError(f"answered {line!r}")
    finally:
        writer.close()


@contextlib.asynccontextmanager
async def _origin() -> AsyncIterator[int]:
    """Its port. Connections wait until one of its workers is free."""
    free = asyncio.Semaphore(_WORKERS)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with free:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
                await reader.readexactly(int(length or b"0"))
                writer.write(_RESPONSE)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


if __name__ == "__main__":
    main()
