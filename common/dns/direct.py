"""One question to one server, by our own sockets: any name, and no cache."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial

import dns.exception
import dns.message

from common.dns import wire
from common.dns.question_sockets import Encode, QuestionSockets
from common.dns.questions import Answer, Outcome
from common.fair_queue import FairQueue
from common.host_ports import HostPort
from common.records import RecordType

_TRIES_SECONDS = (0.8, 1.6)


@dataclass(frozen=True, slots=True)
class DirectReply:
    """A server's reply, not yet read beyond its head, and the query as it was sent."""

    message: bytes
    query: bytes

    def read(self, kind: RecordType) -> Answer | None:
        """Read the reply as `wire.read_reply` does."""
        return wire.read_reply(self.message, self.query, kind)

    def parse(self) -> dns.message.Message | None:
        """Parse the reply with dnspython, or return None for what is no DNS message."""
        try:
            return dns.message.from_wire(self.message)
        except dns.exception.DNSException:
            return None


class DirectClient:
    """Asks servers by our own sockets, and holds no answer.

    It has at most `most_at_once` questions open, which tenants share evenly; so it has no more sockets than that.
    """

    def __init__(self, *, most_at_once: int) -> None:
        self._room = FairQueue(most_at_once)
        self._sockets = QuestionSockets()

    async def ask(
        self, server: HostPort, name: str, kind: RecordType, *, recursion: bool, tenant: str = ""
    ) -> DirectReply | Outcome:
        """Ask one server, by TCP where UDP truncates the reply.

        Returns the reply, or how the question ended without one. It ends within seconds from when there is room
        for it.
        """
        edns = True
        for seconds in _TRIES_SECONDS:
            encode = partial(wire.encode_query, name, kind, recursion=recursion, edns=edns)
            try:
                async with self._room.slot(tenant):
                    reply = await self._exchange(server, encode, seconds)
            except TimeoutError:
                continue
            except dns.exception.DNSException:
                return Outcome.NO_NAME  # no zone can have such a name
            except (OSError, EOFError):
                return Outcome.SERVER_FAILURE  # the server is there, but cannot answer this question
            if not edns or not wire.lacks_edns(reply.message):
                return reply
            edns = False
        return Outcome.TIMEOUT

    async def _exchange(self, server: HostPort, encode: Encode, seconds: float) -> DirectReply:
        """Send a query and wait for its reply.

        Raises: `TimeoutError`, `OSError`, `EOFError`, `dns.exception.DNSException`.
        """
        async with asyncio.timeout(seconds):
            query, message = await self._sockets.ask(server, encode)
        if wire.is_truncated(message):
            async with asyncio.timeout(seconds):
                message = await _exchange_by_tcp(server, query)
        return DirectReply(message, query)


async def _exchange_by_tcp(server: HostPort, query: bytes) -> bytes:
    """Send a query by TCP and read its reply.

    Raises: `OSError`, `EOFError`.
    """
    reader, writer = await asyncio.open_connection(server.host, server.port)
    try:
        writer.write(len(query).to_bytes(2) + query)
        message = await reader.readexactly(int.from_bytes(await reader.readexactly(2)))
    finally:
        writer.close()
    if not wire.is_reply(message, query):
        raise ConnectionError("the reply is to another question")
    return message
