"""A zone's own name servers: found as a resolver finds them, and asked directly.

The search begins at the nearest ancestor whose NS records a resolver knows and follows referrals from there, so a
resolver that hides a delegation only makes it longer. What a reply is worth is decided by `common.dns.replies`.
Each address comes from outside: it is checked against the address policy, and is the very address that is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from typing import TypeAlias

from common.addresses import AddressPolicy
from common.dns.delegations import Delegation
from common.dns.direct import DirectClient
from common.dns.questions import Answer, Outcome
from common.dns.replies import Referral, ServerReply, is_below, read_authoritative
from common.errors import AddressRefused
from common.host_ports import HostPort
from common.records import RecordType

DNS_PORT = 53
MOST_SERVERS = 4  # of a zone that are asked

_MOST_AT_ONCE = 256  # each is a socket
_MOST_NAMES = 6
_MOST_REFERRALS = 8

Resolve: TypeAlias = Callable[[str, RecordType], Awaitable[Answer]]
"""A resolver's answer about a name; without values where no resolver knows any."""


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """A server of the zone, and its answer."""

    server: HostPort
    answer: Answer


AskServer: TypeAlias = Callable[[HostPort, str, RecordType], Awaitable[ServerReply]]
"""A question to one server."""


class Authority:
    """Finds the name servers of zones and asks them. A process makes one.

    Holds no answer, and at most `_MOST_AT_ONCE` sockets. `port` is another than 53 only in tests and benchmarks.
    """

    def __init__(self, policy: AddressPolicy, *, port: int = DNS_PORT) -> None:
        self._policy = policy
        self._port = port
        self._client = DirectClient(most_at_once=_MOST_AT_ONCE)

    async def ask_zone(
        self,
        name: str,
        kind: RecordType,
        resolve: Resolve,
        ask: AskServer | None = None,
        *,
        grace_seconds: float | None = None,
        most_servers: int = MOST_SERVERS,
        at_once: int = MOST_SERVERS,
        delegation: Delegation | None = None,
    ) -> list[ServerAnswer]:
        """Ask the servers of the zone that `name` is in; return also those that could not be asked.

        `ask` may keep back questions in place of `ask_server`. With `grace_seconds`, servers that take so much
        longer than the first useful reply count as not asked, and only `at_once` servers are asked at first:
        the next ones when those have no useful reply within that time. With `delegation`, the search begins
        there: with that of the zone above an apex, the servers are asked that know the delegation of the apex.
        Empty if no server can be found.
        """
        ask = ask or self.ask_server
        if delegation is None:
            delegation = await self.find_nearest(name, resolve, most_servers=most_servers)
        zone, servers = delegation.zone, delegation.servers
        answers: list[ServerAnswer] = []
        for _ in range(_MOST_REFERRALS):
            servers = servers[:most_servers]
            questions = [partial(ask, server, name, kind) for server in servers]
            replies = await _gather(questions, grace_seconds, at_once)
            answers = [ServerAnswer(server, reply.answer) for server, reply in zip(servers, replies, strict=False)]
            referral = next((reply.referral for reply in replies if is_below(reply.referral, zone)), None)
            if referral is None or any(each.answer.outcome.is_known for each in answers):
                break
            zone = referral.zone
            servers, _ = await self._addresses(referral, resolve, most_servers)
        return answers

    async def ask_server(self, server: HostPort, name: str, kind: RecordType, *, tenant: str = "") -> ServerReply:
        """Ask one server without recursion; it ends within seconds.

        Tenants share the sockets evenly.
        """
        reply = await self._client.ask(server, name, kind, recursion=False, tenant=tenant)
        if isinstance(reply, Outcome):
            return ServerReply(Answer(reply))
        if answer := reply.read(kind):
            return ServerReply(answer)
        message = reply.parse()
        return read_authoritative(message, name, kind) if message else ServerReply(Answer(Outcome.SERVER_FAILURE))

    async def find_nearest(self, name: str, resolve: Resolve, *, most_servers: int = MOST_SERVERS) -> Delegation:
        """Find the nearest zone at or above `name` whose name servers a resolver knows.

        Returns at least `most_servers` of its servers, if it has them.
        """
        labels = name.split(".")
        for start in range(len(labels)):
            zone = ".".join(labels[start:])
            found = await resolve(zone, "NS")
            if found.values:
                servers, seconds = await self._addresses(Referral(zone, found.values, ()), resolve, most_servers)
                return Delegation(zone, servers, min(found.ttl_seconds, seconds))
        return Delegation("", ())

    async def _addresses(
        self, referral: Referral, resolve: Resolve, most_servers: int
    ) -> tuple[tuple[HostPort, ...], int]:
        """Find the addresses of so many servers, or of a few more, and the seconds for which they hold."""
        found = self._allowed(referral.glue)
        seconds = [0] if found else []
        names = [] if referral.glue else list(referral.names[:_MOST_NAMES])
        while names and len(found) < most_servers:
            asked, names = names[:most_servers], names[most_servers:]
            answers = await asyncio.gather(*(_resolve_address(name, resolve) for name in asked))
            found |= self._allowed(answer.values[0] for answer in answers if answer.values)
            seconds += [answer.ttl_seconds for answer in answers if answer.values]
        return tuple(found)[:MOST_SERVERS], min(seconds, default=0)

    def _allowed(self, addresses: Iterable[str]) -> dict[HostPort, None]:
        """Return the addresses that may be asked, each once, in their order."""
        return dict.fromkeys(HostPort(address, self._port) for address in addresses if self._may_ask(address))

    def _may_ask(self, address: str) -> bool:
        try:
            self._policy.check(ip_address(address), self._port)
        except (AddressRefused, ValueError):
            return False
        return True


async def _resolve_address(name: str, resolve: Resolve) -> Answer:
    answer = await resolve(name, "A")
    return answer if answer.values else await resolve(name, "AAAA")


async def _gather(
    questions: Sequence[Callable[[], Awaitable[ServerReply]]], grace_seconds: float | None, at_once: int
) -> list[ServerReply]:
    """Return the replies of the questions that were asked, the first ones, in order.

    A question that is given up is a time-out.
    """
    if len(questions) == 1:
        return [await questions[0]()]
    if grace_seconds is None or not questions:
        return await asyncio.gather(*(ask() for ask in questions))
    tasks: list[asyncio.Future[ServerReply]] = []
    try:
        has_useful = False
        while not has_useful and len(tasks) < len(questions):
            tasks += [asyncio.ensure_future(ask()) for ask in questions[len(tasks) : len(tasks) + at_once]]
            are_all = len(tasks) == len(questions)
            has_useful = await _has_useful(tasks, None if are_all else grace_seconds)
        if not all(task.done() for task in tasks):
            await asyncio.wait(tasks, timeout=grace_seconds)
        return [task.result() if task.done() else ServerReply(Answer(Outcome.TIMEOUT)) for task in tasks]
    finally:
        for task in tasks:
            task.cancel()


async def _has_useful(tasks: Sequence[asyncio.Future[ServerReply]], within_seconds: float | None) -> bool:
    """Wait for a useful reply, or for all of them, and no longer than `within_seconds`."""
    waiting: set[asyncio.Future[ServerReply]] = set(tasks)
    with suppress(TimeoutError):
        async with asyncio.timeout(within_seconds):
            while waiting and not any(map(_is_useful, set(tasks) - waiting)):
                _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    return any(_is_useful(task) for task in tasks if task.done())


def _is_useful(task: asyncio.Future[ServerReply]) -> bool:
    reply = task.result()
    return reply.answer.outcome.is_known or reply.referral is not None
