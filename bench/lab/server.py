"""The lab's name server: carries questions to a `Zone` and its answers back, over UDP and TCP on one port.

With an `UpdateKey` it also takes updates that the key has signed (`bench.lab.updates`), over TCP.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator
from typing import Self, cast

import dns.exception
import dns.flags
import dns.message

from bench.lab.updates import UpdateKey, answer_update, is_update
from bench.lab.zone import Zone

_SMALLEST_UDP_PAYLOAD = 512
_ATTEMPTS_AT_ONE_PORT = 20
_TCP_IDLE_SECONDS = 30


class NameServer:
    """Created and closed by `serve`; `zone` may be changed at any time."""

    def __init__(self, zone: Zone, key: UpdateKey | None = None) -> None:
        self.zone = zone
        self.key = key
        self.host = ""
        self.port = 0

    @property
    def address(self) -> str:
        """``host:port``, as FRONTAGE_DNS_SERVERS takes it."""
        return f"{self.host}:{self.port}"

    @classmethod
    @contextlib.asynccontextmanager
    async def serve(
        cls, zone: Zone, host: str = "127.0.0.1", port: int = 0, *, key: UpdateKey | None = None
    ) -> AsyncIterator[Self]:
        server = cls(zone, key)
        transport, tcp = await server._listen(host, port)
        try:
            yield server
        finally:
            transport.close()
            tcp.close()
            await tcp.wait_closed()

    async def _listen(self, host: str, port: int) -> tuple[asyncio.DatagramTransport, asyncio.Server]:
        """Both protocols on one port; a free one may be free for one of them only, then another is tried."""
        loop = asyncio.get_running_loop()
        for attempt in range(_ATTEMPTS_AT_ONE_PORT):
            transport, _ = await loop.create_datagram_endpoint(lambda: _Datagrams(self.zone), (host, port))
            self.host, self.port = transport.get_extra_info("sockname")[:2]
            try:
                return transport, await asyncio.start_server(self._converse, host, self.port)
            except OSError:
                transport.close()
                if port or attempt == _ATTEMPTS_AT_ONE_PORT - 1:
                    raise
        raise AssertionError("unreachable")

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                async with asyncio.timeout(_TCP_IDLE_SECONDS):
                    (size,) = struct.unpack("!H", await reader.readexactly(2))
                    question = await reader.readexactly(size)
                if (answer := self._answer(question)) is None:
                    continue
                writer.write(struct.pack("!H", len(answer)) + answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, TimeoutError, ConnectionError):
            pass
        finally:
            writer.close()

    def _answer(self, question: bytes) -> bytes | None:
        if self.key is None or not is_update(question):
            return _answer(self.zone, question, most_bytes=65535)
        return answer_update(self.zone, question, self.key)


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, zone: Zone) -> None:
        self._zone = zone

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)  # a selector's is not registered as one

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if (answer := _answer(self._zone, data, most_bytes=None)) is not None:
            self._transport.sendto(answer, addr)


def _answer(zone: Zone, question: bytes, *, most_bytes: int | None) -> bytes | None:
    """`most_bytes` None: what the question's EDNS payload allows, and TC when the answer is longer."""
    try:
        query = dns.message.from_wire(question)
    except dns.exception.DNSException:
        return None
    if query.flags & dns.flags.QR:
        return None  # never answer an answer
    response = zone.answer(query)
    if response is None:
        return None
    if most_bytes is None:
        most_bytes = max(_SMALLEST_UDP_PAYLOAD, query.payload)
    try:
        return response.to_wire(max_size=most_bytes)
    except dns.exception.TooBig:
        truncated = dns.message.make_response(query, recursion_available=True)
        truncated.flags |= dns.flags.TC
        return truncated.to_wire()
