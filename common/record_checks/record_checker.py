"""Checks records: from a domain's records to their verdicts, by questions to resolvers and to the zone's own servers.

The resolvers are asked first, one after the other until one can answer. A record that it does not find is confirmed:
by the zone's own servers and the other resolvers (the rules are in `verdicts`). A configured resolver that is itself
authoritative (AA) may stand in for name servers that cannot be found, if it answers the same twice. Nothing here
outlives its check.

A resolver's answer is at most as old as the record's original TTL, which it does not show: it shows what is left of
it. An answer with more left than the check interval would hide a loss from the next check; so it is confirmed by a
server of the zone, and so are all of the domain's at the check after one where a TTL was that long (`has_long_ttl`):
by then less may be left of the very same answer. So a lost record is found by the next check, whatever its TTL.

Records are checked in groups, and in all checks together at most as many at once as one core can follow
(`common.fair_queue`): if all were asked at once, every answer would be late, and no check would end in time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from common.clock import Clock
from common.dns import evidence
from common.dns.authority import MOST_SERVERS, Authority, Resolve
from common.dns.delegations import Delegation, Delegations
from common.dns.evidence import Role, Statement
from common.dns.questions import Answer, Ask, Outcome, Question
from common.dns.replies import ServerReply
from common.dns.shared_resolvers import SharedResolvers
from common.fair_queue import FairQueue
from common.host_ports import HostPort
from common.record_checks.verdicts import RecordVerdict, confirm, confirm_present, judge_answer, judge_flattened
from common.records import Record, RecordType, normal_name, owner_name

ROUND_SECONDS = 20.0  # for the records looked at together, once it is their turn
_REPEATS = 2
_MOST_QUESTIONS = 32  # to zones' own servers at once, of one domain: others need to ask theirs
_AT_ONCE = 50  # records of one domain; more questions in one moment than a socket holds would be lost
_MOST_AT_ONCE = 500  # records of all domains: at 5,000 a second, the next ones wait 0.1 s
_FIRST_SECONDS = 0.5  # a slot held for longer no longer keeps others waiting
_MOST_DOUBTED = 300  # of the records that the first resolver did not find: each takes several questions
_DOUBTS_SECONDS = 1.5
_ADDRESS_TYPES: tuple[RecordType, ...] = ("A", "AAAA")


@dataclass(frozen=True, slots=True)
class CheckFindings:
    """What a check found out.

    `verdicts` in the order of the records; `evidence` as JSON, a part of the `statements`, which are all of them.
    `has_long_ttl`: a record's TTL is longer than the check interval.
    """

    verdicts: list[RecordVerdict]
    evidence: list[dict[str, Any]]
    has_long_ttl: bool = False
    statements: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True)
class _Queues:
    """The queues of all checks: for the first question about each record, and for records in doubt.

    Servers that do not answer hold up only the latter.
    """

    first: FairQueue
    doubts: FairQueue


class RecordChecker:
    """Checks records. A process makes one; `check` may run any number of times at once."""

    def __init__(
        self,
        resolvers: SharedResolvers,
        authority: Authority,
        clock: Clock,
        *,
        interval_seconds: float,
        round_seconds: float = ROUND_SECONDS,
    ) -> None:
        self._resolvers = resolvers
        self._authority = authority
        self._clock = clock
        self._interval_seconds = interval_seconds
        self._round_seconds = round_seconds
        self._queues = _Queues(
            first=FairQueue(_MOST_AT_ONCE, longest_hold_seconds=_FIRST_SECONDS),
            doubts=FairQueue(_MOST_DOUBTED, longest_hold_seconds=_DOUBTS_SECONDS),
        )
        self._delegations = Delegations(longest_seconds=interval_seconds)

    async def check(
        self,
        domain: str,
        records: Sequence[Record],
        *,
        tenant: str | None = None,
        had_long_ttl: bool = False,
        within_seconds: float | None = None,
    ) -> CheckFindings:
        """Check the records of a domain; those without an answer before the deadline are reported as unknown.

        `domain` is the apex that hosts are relative to. Tenants share the capacity evenly, however many domains
        each has; by default a domain is its own tenant. `had_long_ttl` is the last check's
        `CheckFindings.has_long_ttl`. `within_seconds`: a deadline sooner than that of each group of records.
        """
        run = CheckRun(
            self._resolvers,
            self._authority,
            self._clock,
            self._queues,
            self._delegations,
            tenant or domain,
            domain,
            records,
            trusted_ttl_seconds=-1.0 if had_long_ttl else self._interval_seconds,
            long_ttl_seconds=self._interval_seconds,
            round_seconds=self._round_seconds,
        )
        with suppress(TimeoutError):
            async with asyncio.timeout(within_seconds):
                await run.run()
        return run.findings()


class CheckRun:
    """One check of a domain's records. Made by `RecordChecker.check`.

    Mutable state: what was asked, by server and question; the answers; which of the zones' own servers timed out;
    and the verdicts so far.
    """

    def __init__(
        self,
        resolvers: SharedResolvers,
        authority: Authority,
        clock: Clock,
        queues: _Queues,
        delegations: Delegations,
        tenant: str,
        domain: str,
        records: Sequence[Record],
        *,
        trusted_ttl_seconds: float,
        long_ttl_seconds: float,
        round_seconds: float,
    ) -> None:
        """Prepare a check; a resolver's "present" is believed up to `trusted_ttl_seconds`."""
        self._resolvers = resolvers
        self._authority = authority
        self._clock = clock
        self._queues = queues
        self._delegations = delegations
        self._tenant = tenant
        self._apex = normal_name(domain)
        self._records = records
        self._questions: list[Question] = [(owner_name(record, domain), record.type) for record in records]
        self._verdicts = [RecordVerdict.UNKNOWN] * len(records)
        self._servers = resolvers.servers()
        self._asked: dict[tuple[HostPort, str, RecordType], asyncio.Task[Answer]] = {}
        self._zone_servers: dict[tuple[Question, HostPort | None, int], asyncio.Task[list[HostPort]]] = {}
        self._zone_answers: dict[tuple[HostPort, str, RecordType], Answer] = {}
        self._statements: list[Statement] = []
        self._room = asyncio.Semaphore(_MOST_QUESTIONS)
        self._trusted_ttl_seconds = trusted_ttl_seconds
        self._long_ttl_seconds = long_ttl_seconds
        self._round_seconds = round_seconds
        self._has_long_ttl = False
        self._silent: set[HostPort] = set()

    async def run(self) -> None:
        """Find the verdict of every record.

        Raises: TimeoutError when some records have no verdict in time.
        """
        try:
            await self._run()
        finally:
            for task in (*self._asked.values(), *self._zone_servers.values()):
                task.cancel()

    async def _run(self) -> None:
        for first in range(0, len(self._records), _AT_ONCE):
            await self._check_group(range(first, min(first + _AT_ONCE, len(self._records))))

    async def _check_group(self, numbers: range) -> None:
        """Find the verdicts of some of the records.

        Raises: TimeoutError.
        """
        async with self._queues.first.slot(self._tenant, len(numbers)), asyncio.timeout(self._round_seconds):
            doubted = await self._ask_first(numbers)
        if doubted:
            async with self._queues.doubts.slot(self._tenant, len(doubted)), asyncio.timeout(self._round_seconds):
                await asyncio.gather(*map(self._decide_doubted, doubted))

    async def _ask_first(self, numbers: range) -> list[int]:
        """Mark the records that the first resolver finds as present; return the others.

        Also returned are those for which its answer may be too old.
        """
        server, doubted = self._servers[0], []
        for number in numbers:
            self._ask_once(server, *self._questions[number])
        for number in numbers:
            answer = await self._ask_once(server, *self._questions[number])
            self._has_long_ttl |= answer.ttl_seconds > self._long_ttl_seconds
            is_fresh = answer.ttl_seconds <= self._trusted_ttl_seconds
            if is_fresh and judge_answer(self._records[number], answer) is RecordVerdict.PRESENT:
                self._verdicts[number] = RecordVerdict.PRESENT
            else:
                doubted.append(number)
        return doubted

    def findings(self) -> CheckFindings:
        """Return what the check has found so far."""
        doubted = {
            question
            for question, verdict in zip(self._questions, self._verdicts, strict=True)
            if verdict is not RecordVerdict.PRESENT
        }
        return CheckFindings(
            self._verdicts,
            evidence.as_json(self._statements, doubted),
            self._has_long_ttl,
            tuple(self._statements),
        )

    async def _decide_doubted(self, number: int) -> None:
        """Find the verdict of a record that the first resolver does not decide.

        It did not find the record, gave no answer about it, or may have had it for too long.
        """
        record, question = self._records[number], self._questions[number]
        for server in self._servers:
            verdict = await self._judge(record, question, partial(self._ask_resolver, server))
            if verdict is RecordVerdict.MISSING:
                verdict = await self._confirm(record, question, server)
            elif verdict is RecordVerdict.PRESENT and self._may_be_old(server, question):
                verdict = await self._confirm_present(record, question)
            if verdict is not RecordVerdict.UNKNOWN or self._outcome(server, question).is_known:
                self._verdicts[number] = verdict
                return

    def _may_be_old(self, server: HostPort, question: Question) -> bool:
        """Return whether a cache may hold this server's answer about a record for longer than the check interval."""
        name, kind = question
        kinds = (kind, *_ADDRESS_TYPES) if (name, kind) == (self._apex, "CNAME") else (kind,)
        asked = [self._asked.get((server, name, each)) for each in kinds]
        return any(task and task.done() and task.result().ttl_seconds > self._trusted_ttl_seconds for task in asked)

    async def _confirm_present(self, record: Record, question: Question) -> RecordVerdict:
        """Ask one server of the zone; if it does not find the record, ask all of them, twice.

        They are asked as any resolver finds them: of a zone on the move, resolvers may know different ones.
        """
        if RecordVerdict.PRESENT in await self._ask_zone(record, question, most_servers=1):
            return RecordVerdict.PRESENT
        verdict = confirm_present(await self._ask_zone(record, question))
        if verdict is RecordVerdict.MISSING:
            again = await asyncio.gather(*(self._ask_zone(record, question, by=server) for server in self._servers))
            return confirm([RecordVerdict.MISSING, *chain.from_iterable(again)], ())
        return verdict

    async def _confirm(self, record: Record, question: Question, first: HostPort) -> RecordVerdict:
        """Decide whether a record that a resolver did not find is missing."""
        others = [server for server in self._servers if server != first]
        second, authorities = await asyncio.gather(
            asyncio.gather(*(self._judge(record, question, partial(self._ask_resolver, server)) for server in others)),
            self._ask_zone(record, question),
        )
        for number, server in enumerate(others):
            if second[number] is RecordVerdict.PRESENT and self._may_be_old(server, question):
                by_its_zone = await self._ask_zone(record, question, by=server)
                if any(verdict is not RecordVerdict.UNKNOWN for verdict in by_its_zone):
                    second[number] = RecordVerdict.UNKNOWN  # servers of the zone, as it finds them, replace its cache
                    authorities += by_its_zone
        if all(verdict is RecordVerdict.UNKNOWN for verdict in authorities):
            authorities = await asyncio.gather(*(self._ask_stand_in(record, question, each) for each in self._servers))
        verdict = confirm(authorities, second)
        if verdict is RecordVerdict.MISSING and all(each is RecordVerdict.UNKNOWN for each in authorities):
            return await self._confirm_by_repetition(record, question)
        return verdict

    async def _confirm_by_repetition(self, record: Record, question: Question) -> RecordVerdict:
        """Ask resolvers that agree again, where no authoritative server answers.

        A resolver that answers at random, as overloaded or restarting ones do, does not answer the same every
        time.
        """
        for _ in range(_REPEATS):
            verdicts = (self._judge(record, question, partial(self._ask_fresh, server)) for server in self._servers)
            given = set(await asyncio.gather(*verdicts)) - {RecordVerdict.UNKNOWN}
            if given != {RecordVerdict.MISSING}:
                return RecordVerdict.UNKNOWN
        return RecordVerdict.MISSING

    async def _ask_zone(
        self, record: Record, question: Question, *, by: HostPort | None = None, most_servers: int = MOST_SERVERS
    ) -> list[RecordVerdict]:
        """Return the verdicts of the zone's own servers, as the resolver `by` finds them, or the first that can."""
        servers = await self._zone(question, by, most_servers)
        if len(servers) == 1:
            return [await self._judge(record, question, partial(self._ask_authority, servers[0]))]
        return await asyncio.gather(
            *(self._judge(record, question, partial(self._ask_authority, server)) for server in servers)
        )

    async def _ask_stand_in(self, record: Record, question: Question, server: HostPort) -> RecordVerdict:
        """Return the verdict of a resolver that is itself authoritative, as in a private network.

        It must answer the same twice.
        """
        given = {await self._judge(record, question, partial(self._ask_authority, server)) for _ in range(_REPEATS)}
        return given.pop() if len(given) == 1 else RecordVerdict.UNKNOWN

    async def _judge(self, record: Record, question: Question, ask: Ask) -> RecordVerdict:
        """Return the verdict by one server's answer.

        For the CNAME of an apex, which cannot have one, its addresses decide.
        """
        answer = await ask(*question)
        verdict = judge_answer(record, answer)
        is_flattened = record.type == "CNAME" and question[0] == self._apex and not answer.values
        if verdict is not RecordVerdict.MISSING or not is_flattened:
            return verdict
        here = [await ask(self._apex, kind) for kind in _ADDRESS_TYPES]
        there = [await self._find(normal_name(record.value), kind) for kind in _ADDRESS_TYPES]
        return judge_flattened(here, there)

    # Questions ------------------------------------------------------------------------------------------

    async def _ask_resolver(self, server: HostPort, name: str, kind: RecordType) -> Answer:
        return await self._ask_once(server, name, kind)

    def _ask_once(
        self, server: HostPort, name: str, kind: RecordType, *, may_share: bool = False
    ) -> asyncio.Task[Answer]:
        """Ask a server, or return the task that already does: each question is asked once a check."""
        key = (server, name, kind)
        if key not in self._asked:
            asking = self._ask_fresh(*key, may_share=may_share)
            self._asked[key] = asyncio.create_task(asking, name="checks: ask a resolver")
        return self._asked[key]

    async def _ask_fresh(self, server: HostPort, name: str, kind: RecordType, *, may_share: bool = False) -> Answer:
        """Ask even where an answer is there already."""
        answer = await self._resolvers.ask(server, name, kind, owner=name, may_share=may_share)
        self._record_statement("resolver", server, (name, kind), answer)
        return answer

    async def _find(self, name: str, kind: RecordType) -> Answer:
        """Return the answer of the first resolver that has one, CNAMEs followed."""
        answer = Answer(Outcome.TIMEOUT)
        for server in self._servers:
            answer = await self._resolvers.ask(server, name, kind, owner=None)
            self._record_statement("resolver", server, (name, kind), answer)
            if answer.outcome.is_known:
                break
        return answer

    async def _resolve(self, servers: Sequence[HostPort], name: str, kind: RecordType) -> Answer:
        answer = Answer(Outcome.TIMEOUT)
        for server in servers:
            answer = await self._ask_once(server, name, kind, may_share=True)
            if answer.values:
                break
        return answer

    async def _zone(self, question: Question, by: HostPort | None, most_servers: int) -> list[HostPort]:
        """Return the zone's servers; their answers are kept for `_ask_authority`."""
        key = (question, by, most_servers)
        if key not in self._zone_servers:
            self._zone_servers[key] = asyncio.create_task(self._find_zone(*key), name="checks: ask the zone")
        return await self._zone_servers[key]

    async def _find_zone(self, question: Question, by: HostPort | None, most_servers: int) -> list[HostPort]:
        resolve = partial(self._resolve, [by] if by else self._servers)
        delegation = await self._find_delegation(question[0], resolve) if most_servers == 1 else None
        answers = await self._authority.ask_zone(
            *question, resolve, self._ask_server, most_servers=most_servers, delegation=delegation
        )
        for each in answers:
            self._has_long_ttl |= each.answer.ttl_seconds > self._long_ttl_seconds
            self._zone_answers[each.server, *question] = each.answer
            self._record_statement("authority", each.server, question, each.answer)
        return [each.server for each in answers]

    async def _find_delegation(self, name: str, resolve: Resolve) -> Delegation:
        """Find a delegation, perhaps a remembered one.

        It is for a question whose answer counts only if the record is there.
        """
        now = asyncio.get_running_loop().time()
        known = self._delegations.find(name, self._apex, now)
        if known is None:
            known = await self._authority.find_nearest(name, resolve, most_servers=1)
            self._delegations.remember(known, now)
        return known

    async def _ask_authority(self, server: HostPort, name: str, kind: RecordType) -> Answer:
        if (server, name, kind) in self._zone_answers:
            return self._zone_answers[server, name, kind]
        reply = await self._ask_server(server, name, kind)
        self._record_statement("authority", server, (name, kind), reply.answer)
        return reply.answer

    async def _ask_server(self, server: HostPort, name: str, kind: RecordType) -> ServerReply:
        """Ask a zone's server, unless it has timed out before.

        Otherwise a domain with many records and dead servers would not be checked in time, and would keep other
        domains waiting.
        """
        async with self._room:
            if server in self._silent:
                return ServerReply(Answer(Outcome.TIMEOUT))
            reply = await self._authority.ask_server(server, name, kind)
        if reply.answer.outcome is Outcome.TIMEOUT:
            self._silent.add(server)
        return reply

    def _outcome(self, server: HostPort, question: Question) -> Outcome:
        """Return how this question to this server ended; it must have been asked."""
        return self._asked[server, *question].result().outcome

    def _record_statement(self, role: Role, server: HostPort, question: Question, answer: Answer) -> None:
        self._statements.append(Statement(self._clock.now(), role, str(server), question, answer))
