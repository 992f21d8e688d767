"""The lab's name server: carries questions to a `Zone` and its answers back, over UDP and TCP on one port.

With an `UpdateKey` it also takes updates that the key has signed (`bench.lab.updates`), over TCP. Questions about a
zone in `delegations` are passed on to that zone's own server, as a resolver does; a CNAME that leads out of it is
followed in the lab's zone.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Mapping
from typing import Self, cast

import dns.asyncquery
import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode

from bench.lab.updates import UpdateKey, answer_update, is_update
from bench.lab.zone import Zone
from common.host_ports import HostPort

_SMALLEST_UDP_PAYLOAD = 512
_ATTEMPTS_AT_ONE_PORT = 20
_TCP_IDLE_SECONDS = 30
_DELEGATED_SECONDS = 2.0


class NameServer:
    """The lab's name server. Created and closed by `serve`; `zone` may be changed at any time."""

    def __init__(
        self, zone: Zone, key: UpdateKey | None = None, delegations: Mapping[str, HostPort] | None = None
    ) -> None:
        self.zone = zone
        self.key = key
        self.host = ""
        self.port = 0
        self._delegations = {dns.name.from_text(apex): server for apex, server in (delegations or {}).items()}

    @property
    def address(self) -> str:
        """Return ``host:port``, as FRONTAGE_DNS_SERVERS takes it."""
        return f"{self.host}:{self.port}"

    @classmethod
    @contextlib.asynccontextmanager
    async def serve(
        cls,
        zone: Zone,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        key: UpdateKey | None = None,
        delegations: Mapping[str, HostPort] | None = None,
    ) -> AsyncIterator[Self]:
        """Serve within the block. `delegations`: the server of each zone that is not the lab's own, by apex."""
        server = cls(zone, key, delegations)
        transport, tcp = await server._listen(host, port)
        try:
            yield server
        finally:
            transport.close()
            tcp.close()
            await tcp.wait_closed()

    async def _listen(self, host: str, port: int) -> tuple[asyncio.DatagramTransport, asyncio.Server]:
        """Listen by both protocols on one port; a free one may be free for one of them only, then another is tried."""
        loop = asyncio.get_running_loop()
        for attempt in range(_ATTEMPTS_AT_ONE_PORT):
            transport, _ = await loop.create_datagram_endpoint(lambda: _Datagrams(self), (host, port))
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
                if (answer := await self._converse_about(question)) is None:
                    continue
                writer.write(struct.pack("!H", len(answer)) + answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, TimeoutError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _converse_about(self, question: bytes) -> bytes | None:
        if self.key is not None and is_update(question):
            return answer_update(self.zone, question, self.key)
        query = _parse_question(question)
        if query is None:
            return None
        if (server := self.delegated(query)) is not None:
            return _rendered(query, await self.pass_on(query, server), most_bytes=65535)
        return _rendered(query, self.zone.answer(query), most_bytes=65535)

    def delegated(self, query: dns.message.Message) -> HostPort | None:
        """Return the server of the zone that a question is about; None where that is the lab's own."""
        if not self._delegations or len(query.question) != 1:
            return None
        name = query.question[0].name
        return next((server for apex, server in self._delegations.items() if name.is_subdomain(apex)), None)

    async def pass_on(self, query: dns.message.Message, server: HostPort) -> dns.message.Message:
        """Return the answer of a zone's own server; SERVFAIL when there is none."""
        response = dns.message.make_response(query, recursion_available=True)
        question = dns.message.make_query(query.question[0].name, query.question[0].rdtype)
        try:
            reply, _ = await dns.asyncquery.udp_with_fallback(
                question, server.host, _DELEGATED_SECONDS, port=server.port, ignore_unexpected=True
            )
        except (dns.exception.DNSException, OSError):
            response.set_rcode(dns.rcode.SERVFAIL)
            return response
        response.flags |= dns.flags.AA
        response.set_rcode(reply.rcode())
        response.answer, response.authority = reply.answer, reply.authority
        return self.zone.follow_on(response)


class _Datagrams(asyncio.DatagramProtocol):
    """Answers by UDP. Mutable state: the questions that are being passed on."""

    def __init__(self, server: NameServer) -> None:
        self._server = server
        self._passed_on: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)  # a selector's is not registered as one

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if (query := _parse_question(data)) is None:
            return
        if (server := self._server.delegated(query)) is not None:
            task = asyncio.create_task(self._pass_on(query, server, addr), name="lab DNS: delegated zone")
            self._passed_on.add(task)
            task.add_done_callback(self._passed_on.discard)
        else:
            self._send(query, self._server.zone.answer(query), addr)

    async def _pass_on(self, query: dns.message.Message, server: HostPort, addr: tuple[str, int]) -> None:
        self._send(query, await self._server.pass_on(query, server), addr)

    def _send(self, query: dns.message.Message, response: dns.message.Message | None, addr: tuple[str, int]) -> None:
        answer = _rendered(query, response, most_bytes=max(_SMALLEST_UDP_PAYLOAD, query.payload))
        if answer is not None and not self._transport.is_closing():
            self._transport.sendto(answer, addr)


def _parse_question(wire: bytes) -> dns.message.Message | None:
    """Return the question, None for what cannot be read, and for answers: those are never answered."""
    try:
        query = dns.message.from_wire(wire)
    except dns.exception.DNSException:
        return None
    return None if query.flags & dns.flags.QR else query


def _rendered(query: dns.message.Message, response: dns.message.Message | None, *, most_bytes: int) -> bytes | None:
    """Return the answer's bytes, with TC in place of an answer that is longer."""
    if response is None:
        return None
    try:
        return response.to_wire(max_size=most_bytes)
    except dns.exception.TooBig:
        truncated = dns.message.make_response(query, recursion_available=True)
        truncated.flags |= dns.flags.TC
        return truncated.to_wire()
