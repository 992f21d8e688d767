"""An origin that costs next to nothing: echoes the messages of a WebSocket, and answers anything else with 1 KB.

``python -m bench.quick_origin PORT``: on loopback. It trusts its clients to be well-behaved proxies: one request a
packet, no bodies, frames of less than 126 bytes. For benchmarks only; the lab's origin is the careful one.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import sys
from typing import cast

from common.processes import loop_factory

BODY = b"x" * 1024
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_HEADER_BYTES = 2 + 4  # opcode, length, mask


class QuickOrigin(asyncio.Protocol):
    """One connection of the origin."""

    def __init__(self) -> None:
        self._received = b""
        self._is_socket = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer each request, or echo the messages once the connection is a WebSocket."""
        self._received += data
        if self._is_socket:
            self._echo()
            return
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head, self._received = self._received[:end], self._received[end + 4 :]
            if b"\nsec-websocket-key:" in (lower := head.lower()):
                key_at = lower.index(b"\nsec-websocket-key:") + 19
                self._upgrade(head[key_at:].partition(b"\r\n")[0].strip())
                return
            self._transport.write(_ANSWER)

    def _upgrade(self, key: bytes) -> None:
        accept = base64.b64encode(hashlib.sha1(key + _GUID).digest())  # RFC 6455 §4.2.2 names SHA-1
        self._is_socket = True
        self._transport.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: %b\r\n\r\n" % accept
        )

    def _echo(self) -> None:
        frames = self._received
        while len(frames) >= _HEADER_BYTES and len(frames) >= (size := (frames[1] & 0x7F) + _HEADER_BYTES):
            self._echo_frame(frames[:size])
            frames = frames[size:]
        self._received = frames

    def _echo_frame(self, frame: bytes) -> None:
        payload = frame[_HEADER_BYTES:]
        mask = (frame[2:_HEADER_BYTES] * (len(payload) // 4 + 1))[: len(payload)]
        clear = int.from_bytes(payload, "big") ^ int.from_bytes(mask, "big")
        self._transport.write(bytes((frame[0], len(payload))) + clear.to_bytes(len(payload), "big"))
        if frame[0] & 0x0F == 8:
            self._transport.close()


async def serve(port: int) -> None:
    """Serve on `port` until cancelled."""
    server = await asyncio.get_running_loop().create_server(QuickOrigin, "127.0.0.1", port, backlog=4096)
    async with server:
        await server.serve_forever()


def main() -> None:
    """Run the origin until it is ended."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(serve(int(sys.argv[1])))


if __name__ == "__main__":
    main()
