"""What zones' own name servers answer, as one answer: for questions where a resolver's cache must not decide.

Rules
    only authoritative answers count; one from a cache never does
    records at one server of the zone outweigh "absent" from another (a change reaches secondaries one by one), and
        the answer is then `is_disputed`
    "absent" needs a server's explicit answer; if none could be asked, the outcome is SERVER_FAILURE or TIMEOUT
    a task has a deadline and at most `MOST_QUESTIONS` questions to zones' servers, whatever referrals and chains
        lead to; a server that has timed out is not asked again
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from common.dns.authority import Authority, Resolve
from common.dns.questions import Answer, Chain, Outcome, Question, follow_chain
from common.dns.replies import Reply
from common.records import RecordType
from common.settings import HostPort

MOST_QUESTIONS = 64

_GRACE_SECONDS = 0.3  # for a zone's other servers, after the first has answered
_ZONE_SECONDS = 2.0  # for a zone whose servers do not answer; room for a lost datagram


class Authoritative:
    """Created by `Pass`, for one task. Mutable state: the answers so far, the questions left, and the servers that
    have timed out."""

    def __init__(self, authority: Authority, resolve: Resolve, *, ends_at: float) -> None:
        """`ends_at` in the loop's time. `resolve` finds name servers and their addresses."""
        self._authority = authority
        self._resolve = resolve
        self._ends_at = ends_at
        self._answers: dict[Question, Answer] = {}
        self._questions_left = MOST_QUESTIONS
        self._silent: set[HostPort] = set()

    async def ask(self, name: str, kind: RecordType) -> Answer:
        """The zone's answer about `name` itself: no CNAME is followed."""
        question = (name, kind)
        if question not in self._answers:
            self._answers[question] = await self._ask(name, kind)
        return self._answers[question]

    async def follow(self, name: str, goals: Collection[str]) -> Chain:
        """Follow CNAMEs from `name`, through whatever zones, to one of `goals`, or to their end."""
        return await follow_chain(self.ask, name, goals)

    async def _ask(self, name: str, kind: RecordType) -> Answer:
        now = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(min(now + _ZONE_SECONDS, self._ends_at)):
                found = await self._authority.ask_zone(
                    name, kind, self._resolve, self._ask_server, grace_seconds=_GRACE_SECONDS
                )
        except TimeoutError:
            return Answer(Outcome.TIMEOUT)
        return combine([each.answer for each in found])

    async def _ask_server(self, server: HostPort, name: str, kind: RecordType) -> Reply:
        if server in self._silent or not self._questions_left:
            return Reply(Answer(Outcome.TIMEOUT))
        self._questions_left -= 1
        reply = await self._authority.ask_server(server, name, kind)
        if reply.answer.outcome is Outcome.TIMEOUT:
            self._silent.add(server)
        return reply


def combine(answers: Sequence[Answer]) -> Answer:
    """One answer from those of a zone's servers, by the rules above."""
    known = [answer for answer in answers if answer.outcome.is_known]
    if not known:
        has_failed = any(answer.outcome is Outcome.SERVER_FAILURE for answer in answers)
        return Answer(Outcome.SERVER_FAILURE if has_failed else Outcome.TIMEOUT)
    is_disputed = len({(answer.outcome, frozenset(answer.values)) for answer in known}) > 1
    values = dict.fromkeys(value for answer in known for value in answer.values)
    if values:
        return Answer(Outcome.RECORDS, tuple(values), is_disputed)
    has_name = any(answer.outcome is Outcome.NO_DATA for answer in known)
    return Answer(Outcome.NO_DATA if has_name else Outcome.NO_NAME, is_disputed=is_disputed)
