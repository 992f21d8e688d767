"""One question to one server by dnspython, which takes any name and has no cache."""

from __future__ import annotations

import asyncio

import dns.asyncquery
import dns.exception
import dns.flags
import dns.message
import dns.rcode

from common.dns.questions import Outcome
from common.fair_queue import FairQueue
from common.records import RecordType
from common.settings import HostPort

_TRIES_SECONDS = (0.8, 1.6)
_NO_EDNS = (dns.rcode.FORMERR, dns.rcode.NOTIMP)  # servers from before RFC 6891 §7, and RFC 2671 §5.3
_PAYLOAD_BYTES = 1232  # as agreed on the DNS flag day of 2020


class DirectClient:
    """Holds no answer, and at most `most_at_once` sockets, which tenants share evenly."""

    def __init__(self, *, most_at_once: int) -> None:
        self._room = FairQueue(most_at_once)

    async def ask(
        self, server: HostPort, name: str, kind: RecordType, *, recursion: bool, tenant: str = ""
    ) -> dns.message.Message | Outcome:
        """The reply, or how the question ended without one. By TCP where UDP truncates it. It ends within seconds
        from when there is a socket for it."""
        flags = dns.flags.RD if recursion else 0
        try:
            query = dns.message.make_query(name, kind, flags=flags, use_edns=0, payload=_PAYLOAD_BYTES)
        except dns.exception.DNSException:
            return Outcome.NO_NAME  # no zone can have such a name
        for seconds in _TRIES_SECONDS:
            try:
                async with self._room.slot(tenant), asyncio.timeout(2 * seconds):
                    reply = await _exchange(query, server, seconds)
                if reply.rcode() not in _NO_EDNS or query.edns < 0:
                    return reply
                query.use_edns(False)
            except (dns.exception.Timeout, TimeoutError):
                continue
            except (dns.exception.DNSException, OSError, EOFError):
                return Outcome.SERVER_FAILURE  # the server is there, but cannot answer this question
        return Outcome.TIMEOUT


async def _exchange(query: dns.message.Message, server: HostPort, seconds: float) -> dns.message.Message:
    reply, _ = await dns.asyncquery.udp_with_fallback(
        query, server.host, timeout=seconds, port=server.port, ignore_unexpected=True
    )
    return reply
