"""Looking: one check carried through, from a domain's records to their verdicts.

The resolvers are asked first, one after the other until one can answer. What one of them does not find, it is asked
no more: the zone's own servers are, and the other resolvers (the rules are in `verdicts`). A server asked by us that
has authority of its own (AA) may stand in for name servers that cannot be found, if it repeats itself. Nothing here
outlives its check.

Records are looked at some at a time, and in all checks together no more at once than one core can follow
(`common.fair_queue`): all at once, everything would be late, and nothing finished in time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from common.clock import Clock
from common.dns import Answer, Outcome
from common.fair_queue import FairQueue
from common.records import Record, RecordType, normal_name, owner_name
from common.settings import HostPort
from monitor.checks import evidence
from monitor.checks.authority import Authority, Reply
from monitor.checks.evidence import Role, Statement, Subject
from monitor.checks.resolvers import Resolvers
from monitor.checks.verdicts import Verdict, confirm, judge, judge_flattened

_ROUND_SECONDS = 20.0  # for the records looked at together, once it is their turn
_REPEATS = 2
_MOST_QUESTIONS = 32  # to zones' own servers at once: other domains want to ask theirs
_AT_ONCE = 50  # records of one domain; more questions in one moment than a socket holds would be lost
_MOST_AT_ONCE = 500  # records of all domains: at 5,000 a second, the next ones wait 0.1 s
_FIRST_SECONDS = 0.5  # later than that no answers come that are worth making others wait
_MOST_DOUBTED = 300  # … and of those that the first resolver did not find, which take several questions
_DOUBTS_SECONDS = 1.5
_ADDRESS_TYPES: tuple[RecordType, ...] = ("A", "AAAA")

Ask = Callable[[str, RecordType], Awaitable[Answer]]
"""A question to one speaker."""


@dataclass(frozen=True, slots=True)
class Findings:
    """`verdicts` in the order of the records; `evidence` as JSON."""

    verdicts: list[Verdict]
    evidence: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class _Queues:
    """For the first question about each record, and for records in doubt: dead servers hold up only the latter."""

    first: FairQueue
    doubts: FairQueue


class Looking:
    """Made by `Checking`; `look` may run any number of times at once."""

    def __init__(self, resolvers: Resolvers, authority: Authority, clock: Clock) -> None:
        self._resolvers = resolvers
        self._authority = authority
        self._clock = clock
        self._queues = _Queues(
            first=FairQueue(_MOST_AT_ONCE, longest_hold_seconds=_FIRST_SECONDS),
            doubts=FairQueue(_MOST_DOUBTED, longest_hold_seconds=_DOUBTS_SECONDS),
        )

    async def look(self, domain: str, records: Sequence[Record], *, tenant: str | None = None) -> Findings:
        """Whatever has no verdict in time is unknown. `domain` is the apex that hosts are relative to. Tenants
        share the capacity evenly, however many domains each has; without one, the domain is its own tenant."""
        look = _Look(self._resolvers, self._authority, self._clock, self._queues, tenant or domain, domain, records)
        with suppress(TimeoutError):
            await look.run()
        return look.findings()


class _Look:
    """One check. Mutable state: what was asked, by speaker and question, what was said, which of the zones' own
    servers stayed silent, and the verdicts so far."""

    def __init__(
        self,
        resolvers: Resolvers,
        authority: Authority,
        clock: Clock,
        queues: _Queues,
        tenant: str,
        domain: str,
        records: Sequence[Record],
    ) -> None:
        self._resolvers = resolvers
        self._authority = authority
        self._clock = clock
        self._queues = queues
        self._tenant = tenant
        self._apex = normal_name(domain)
        self._records = records
        self._subjects: list[Subject] = [(owner_name(record, domain), record.type) for record in records]
        self._verdicts = [Verdict.UNKNOWN] * len(records)
        self._servers = resolvers.servers()
        self._asked: dict[tuple[HostPort, str, RecordType], asyncio.Task[Answer]] = {}
        self._consulted: dict[Subject, asyncio.Task[list[HostPort]]] = {}
        self._heard: dict[tuple[HostPort, str, RecordType], Answer] = {}
        self._said: list[Statement] = []
        self._room = asyncio.Semaphore(_MOST_QUESTIONS)
        self._silent: set[HostPort] = set()

    async def run(self) -> None:
        """Raises: TimeoutError when some had no verdict in time."""
        try:
            await self._run()
        finally:
            for task in (*self._asked.values(), *self._consulted.values()):
                task.cancel()

    async def _run(self) -> None:
        for first in range(0, len(self._records), _AT_ONCE):
            await self._look_at(range(first, min(first + _AT_ONCE, len(self._records))))

    async def _look_at(self, numbers: range) -> None:
        """Raises: TimeoutError."""
        async with self._queues.first.slot(self._tenant, len(numbers)), asyncio.timeout(_ROUND_SECONDS):
            doubted = await self._ask_first(numbers)
        if doubted:
            async with self._queues.doubts.slot(self._tenant, len(doubted)), asyncio.timeout(_ROUND_SECONDS):
                await asyncio.gather(*map(self._settle, doubted))

    async def _ask_first(self, numbers: range) -> list[int]:
        """What the first resolver finds is present. Returns what it does not find, or cannot be asked about."""
        server, doubted = self._servers[0], []
        for number in numbers:
            self._begin(server, *self._subjects[number])
        for number in numbers:
            answer = await self._begin(server, *self._subjects[number])
            if judge(self._records[number], answer) is Verdict.PRESENT:
                self._verdicts[number] = Verdict.PRESENT
            else:
                doubted.append(number)
        return doubted

    def findings(self) -> Findings:
        doubted = {
            subject
            for subject, verdict in zip(self._subjects, self._verdicts, strict=True)
            if verdict is not Verdict.PRESENT
        }
        return Findings(self._verdicts, evidence.as_json(self._said, doubted))

    async def _settle(self, number: int) -> None:
        """The verdict of a record that the first resolver did not find, or could not be asked about."""
        record, subject = self._records[number], self._subjects[number]
        for server in self._servers:
            verdict = await self._look(record, subject, partial(self._ask_resolver, server))
            if verdict is Verdict.MISSING:
                verdict = await self._confirm(record, subject, server)
            if verdict is not Verdict.UNKNOWN or self._outcome(server, subject).is_known:
                self._verdicts[number] = verdict
                return

    async def _confirm(self, record: Record, subject: Subject, first: HostPort) -> Verdict:
        others = [server for server in self._servers if server != first]
        second, authorities = await asyncio.gather(
            asyncio.gather(*(self._look(record, subject, partial(self._ask_resolver, server)) for server in others)),
            self._ask_zone(record, subject),
        )
        if all(verdict is Verdict.UNKNOWN for verdict in authorities):
            authorities = await asyncio.gather(*(self._ask_stand_in(record, subject, each) for each in self._servers))
        verdict = confirm(authorities, second)
        if verdict is Verdict.MISSING and all(each is Verdict.UNKNOWN for each in authorities):
            return await self._insist(record, subject)
        return verdict

    async def _insist(self, record: Record, subject: Subject) -> Verdict:
        """Resolvers that agree, without any better word, are asked again: one that answers at random, as they do when
        they are overloaded or on the move, does not say the same every time."""
        for _ in range(_REPEATS):
            looks = (self._look(record, subject, partial(self._ask_fresh, server)) for server in self._servers)
            said = set(await asyncio.gather(*looks)) - {Verdict.UNKNOWN}
            if said != {Verdict.MISSING}:
                return Verdict.UNKNOWN
        return Verdict.MISSING

    async def _ask_zone(self, record: Record, subject: Subject) -> list[Verdict]:
        servers = await self._consult(subject)
        return await asyncio.gather(
            *(self._look(record, subject, partial(self._ask_authority, server)) for server in servers)
        )

    async def _ask_stand_in(self, record: Record, subject: Subject, server: HostPort) -> Verdict:
        """A server of ours may have authority itself, as in a network of one's own. It has to say so twice."""
        said = {await self._look(record, subject, partial(self._ask_authority, server)) for _ in range(_REPEATS)}
        return said.pop() if len(said) == 1 else Verdict.UNKNOWN

    async def _look(self, record: Record, subject: Subject, ask: Ask) -> Verdict:
        """What one speaker says of a record; of an apex that cannot have its CNAME, in a question or two more."""
        answer = await ask(*subject)
        verdict = judge(record, answer)
        is_flattened = record.type == "CNAME" and subject[0] == self._apex and not answer.values
        if verdict is not Verdict.MISSING or not is_flattened:
            return verdict
        here = [await ask(self._apex, kind) for kind in _ADDRESS_TYPES]
        there = [await self._find(normal_name(record.value), kind) for kind in _ADDRESS_TYPES]
        return judge_flattened(here, there)

    # Questions ------------------------------------------------------------------------------------------

    async def _ask_resolver(self, server: HostPort, name: str, kind: RecordType) -> Answer:
        return await self._begin(server, name, kind)

    def _begin(self, server: HostPort, name: str, kind: RecordType, *, may_share: bool = False) -> asyncio.Task[Answer]:
        """Each question once a check, of each server."""
        key = (server, name, kind)
        if key not in self._asked:
            asking = self._ask_fresh(*key, may_share=may_share)
            self._asked[key] = asyncio.create_task(asking, name="checks: ask a resolver")
        return self._asked[key]

    async def _ask_fresh(self, server: HostPort, name: str, kind: RecordType, *, may_share: bool = False) -> Answer:
        """Whatever was said before."""
        answer = await self._resolvers.ask(server, name, kind, owner=name, may_share=may_share)
        self._note("resolver", server, (name, kind), answer)
        return answer

    async def _find(self, name: str, kind: RecordType) -> Answer:
        """What the first resolver that knows says `name` leads to, aliases followed."""
        answer = Answer(Outcome.TIMEOUT)
        for server in self._servers:
            answer = await self._resolvers.ask(server, name, kind, owner=None)
            self._note("resolver", server, (name, kind), answer)
            if answer.outcome.is_known:
                break
        return answer

    async def _resolve(self, name: str, kind: RecordType) -> tuple[str, ...]:
        for server in self._servers:
            answer = await self._begin(server, name, kind, may_share=True)
            if answer.values:
                return answer.values
        return ()

    async def _consult(self, subject: Subject) -> list[HostPort]:
        """The zone's servers, their answers kept for `_ask_authority`."""
        if subject not in self._consulted:
            self._consulted[subject] = asyncio.create_task(self._consult_fresh(subject), name="checks: consult")
        return await self._consulted[subject]

    async def _consult_fresh(self, subject: Subject) -> list[HostPort]:
        heard = await self._authority.consult(*subject, self._resolve, self._ask_server)
        for each in heard:
            self._heard[each.server, *subject] = each.answer
            self._note("authority", each.server, subject, each.answer)
        return [each.server for each in heard]

    async def _ask_authority(self, server: HostPort, name: str, kind: RecordType) -> Answer:
        if (server, name, kind) in self._heard:
            return self._heard[server, name, kind]
        reply = await self._ask_server(server, name, kind)
        self._note("authority", server, (name, kind), reply.answer)
        return reply.answer

    async def _ask_server(self, server: HostPort, name: str, kind: RecordType) -> Reply:
        """One that has stayed silent is not waited for again: a domain of many records whose servers are gone would
        never come to its end, and keep others from asking theirs."""
        async with self._room:
            if server in self._silent:
                return Reply(Answer(Outcome.TIMEOUT))
            reply = await self._authority.ask(server, name, kind)
        if reply.answer.outcome is Outcome.TIMEOUT:
            self._silent.add(server)
        return reply

    def _outcome(self, server: HostPort, subject: Subject) -> Outcome:
        """How the server's own question about it ended, which has been asked."""
        return self._asked[server, *subject].result().outcome

    def _note(self, role: Role, server: HostPort, subject: Subject, answer: Answer) -> None:
        self._said.append(Statement(self._clock.now(), role, str(server), subject, answer))
