"""What zones' own name servers answer, as one answer: for questions where a resolver's cache must not decide.

Rules
    only authoritative answers count; one from a cache never does
    records at one server of the zone outweigh "absent" from another (a change reaches secondaries one by one), and
        the answer is then `is_disputed`
    "absent" needs a server's explicit answer; if none could be asked, the outcome is SERVER_FAILURE or TIMEOUT
    a task has a deadline and a bounded number of questions to zones' servers, `MOST_QUESTIONS` unless it asks for
        more, whatever referrals and chains lead to; a server that has timed out is not asked again
    a zone's servers are looked for once a task. With an apex given, the search for names below it begins at its
        servers, which refer further down; and those of the zone above, a public suffix, may be a few minutes old, as in
        a resolver's cache
    where no server of a zone can be found, as in a private network, a configured resolver may stand in that is itself
        authoritative, if it answers the same twice
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection, Sequence
from functools import partial

from common.dns.asked_once import AskedOnce
from common.dns.authority import MOST_SERVERS, Authority, Resolve
from common.dns.delegations import Delegation, Delegations
from common.dns.questions import Answer, Chain, Outcome, follow_chain
from common.dns.replies import ServerReply
from common.host_ports import HostPort
from common.records import RecordType

MOST_QUESTIONS = 64

_GRACE_SECONDS = 0.3  # for a zone's other servers, after the first has answered
_ZONE_SECONDS = 2.0  # for a zone whose servers do not answer; room for a lost datagram


class Authoritative:
    """Asks zones' own name servers. Created by `Pass`, for one task.

    Mutable state: the answers so far, the questions left, and the servers that have timed out.
    """

    def __init__(
        self,
        authority: Authority,
        resolve: Resolve,
        *,
        ends_at: float,
        tenant: str = "",
        most_questions: int = MOST_QUESTIONS,
        servers_at_once: int = MOST_SERVERS,
        stand_ins: Sequence[HostPort] = (),
        apex: str | None = None,
        suffixes: Delegations | None = None,
    ) -> None:
        """Prepare to ask until `ends_at`, in the loop's time.

        `resolve` finds name servers and their addresses. `servers_at_once`: so many servers of a zone are asked
        at first; the others where those do not answer soon. `stand_ins`: configured resolvers that may be
        authoritative themselves. `apex`: of the zone that the task is about. `suffixes`: the process' memory of
        public suffixes.
        """
        self._authority = authority
        self._resolve = resolve
        self._ends_at = ends_at
        self._tenant = tenant
        self._stand_ins = stand_ins
        self._apex = apex
        self._suffixes = suffixes
        self._asked: AskedOnce[Answer] = AskedOnce()
        self._found: AskedOnce[Delegation] = AskedOnce()
        self._questions_left = most_questions
        self._servers_at_once = servers_at_once
        self._silent: set[HostPort] = set()

    def ask(self, name: str, kind: RecordType) -> Awaitable[Answer]:
        """Ask the zone about `name` itself: no CNAME is followed."""
        return self._ask_once(name, kind, from_parent=False)

    def ask_parent(self, name: str) -> Awaitable[Answer]:
        """Ask for the delegation of `name`: the NS records that the servers of the zone above have.

        NO_NAME: they know no such name; NO_DATA: it is no zone of its own.
        """
        return self._ask_once(name, "NS", from_parent=True)

    async def follow(self, name: str, goals: Collection[str]) -> Chain:
        """Follow CNAMEs from `name`, through whatever zones, to one of `goals`, or to their end."""
        return await follow_chain(self.ask, name, goals)

    def _ask_once(self, name: str, kind: RecordType, *, from_parent: bool) -> Awaitable[Answer]:
        ask = partial(self._ask, name, kind, from_parent=from_parent)
        return self._asked.ask((name, kind, from_parent), ask)

    def close(self) -> None:
        """End what is still being asked."""
        self._asked.close()
        self._found.close()

    async def _ask(self, name: str, kind: RecordType, *, from_parent: bool) -> Answer:
        now = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(min(now + _ZONE_SECONDS, self._ends_at)):
                found = await self._authority.ask_zone(
                    name,
                    kind,
                    self._resolve,
                    self._ask_server,
                    grace_seconds=_GRACE_SECONDS,
                    at_once=self._servers_at_once,
                    delegation=await self._nearest(name.partition(".")[2] if from_parent else name),
                )
                if not found and self._stand_ins:
                    return await self._ask_stand_ins(name, kind)
        except TimeoutError:
            return Answer(Outcome.TIMEOUT)
        return combine([each.answer for each in found])

    async def _nearest(self, name: str) -> Delegation:
        """Return the delegation at which the search for the zone of `name` begins."""
        is_within = self._apex is not None and (name == self._apex or name.endswith(f".{self._apex}"))
        begin = self._apex if is_within and self._apex is not None else name
        return await self._found.ask(begin, partial(self._find_nearest, begin))

    async def _find_nearest(self, name: str) -> Delegation:
        now = asyncio.get_running_loop().time()
        suffixes = self._suffixes if self._apex is not None and self._apex.endswith(f".{name}") else None
        if suffixes is not None and (known := suffixes.find(name, name, now)) is not None:
            return known
        found = await self._authority.find_nearest(name, self._resolve)
        if suffixes is not None and found.zone == name:
            suffixes.remember(found, now)
        return found

    async def _ask_stand_ins(self, name: str, kind: RecordType) -> Answer:
        """Return the answer of the first resolver that has the zone itself and answers the same twice."""
        for server in self._stand_ins:
            first, second = [(await self._ask_server(server, name, kind)).answer for _ in range(2)]
            combined = combine([first, second])  # servers rotate the records of a set
            if combined.outcome.is_known and first.outcome == second.outcome and not combined.is_disputed:
                return first
        return Answer(Outcome.TIMEOUT)

    async def _ask_server(self, server: HostPort, name: str, kind: RecordType) -> ServerReply:
        if server in self._silent or not self._questions_left:
            return ServerReply(Answer(Outcome.TIMEOUT))
        self._questions_left -= 1
        reply = await self._authority.ask_server(server, name, kind, tenant=self._tenant)
        if reply.answer.outcome is Outcome.TIMEOUT:
            self._silent.add(server)
        return reply


def combine(answers: Sequence[Answer]) -> Answer:
    """Combine the answers of a zone's servers into one, by the rules above."""
    known = [answer for answer in answers if answer.outcome.is_known]
    if not known:
        has_failed = any(answer.outcome is Outcome.SERVER_FAILURE for answer in answers)
        return Answer(Outcome.SERVER_FAILURE if has_failed else Outcome.TIMEOUT)
    if len(known) == 1:
        return known[0]
    is_disputed = len({(answer.outcome, frozenset(answer.values), frozenset(answer.aliases)) for answer in known}) > 1
    values = tuple(dict.fromkeys(value for answer in known for value in answer.values))
    aliases = tuple(dict.fromkeys(alias for answer in known for alias in answer.aliases))
    has_name = any(answer.outcome is not Outcome.NO_NAME for answer in known)
    outcome = Outcome.RECORDS if values else Outcome.NO_DATA if has_name else Outcome.NO_NAME
    return Answer(outcome, values, is_disputed, max(answer.ttl_seconds for answer in known), aliases)
