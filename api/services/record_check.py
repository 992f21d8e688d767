"""Record check: whether records that were just set are in the DNS yet. Writes nothing.

The verdicts are those of the monitor's checks (`common.record_checks`). Where the zone's own servers have the record, a
resolver's answer without it is an old one from its cache; its TTL tells when that ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from common.addresses import AddressPolicy
from common.clock import Clock
from common.dns.authority import DNS_PORT, Authority
from common.dns.evidence import Statement
from common.dns.questions import Outcome
from common.dns.shared_resolvers import SharedResolvers
from common.host_ports import HostPort, parse_host_port
from common.record_checks.record_checker import RecordChecker
from common.record_checks.verdicts import RecordVerdict, judge_answer
from common.records import Record, owner_name
from common.settings import Settings

_WITHIN_SECONDS = 6.0
_ABSENCE_SECONDS = 1.5


class RecordStatus(StrEnum):
    """Whether a record is in the DNS."""

    PROPAGATED = "propagated"
    MISSING = "missing"
    UNKNOWN = "unknown"


_STATUSES = {
    RecordVerdict.PRESENT: RecordStatus.PROPAGATED,
    RecordVerdict.MISSING: RecordStatus.MISSING,
    RecordVerdict.UNKNOWN: RecordStatus.UNKNOWN,
}


@dataclass(frozen=True, slots=True)
class CheckedRecord:
    """A record, and what was asked about it.

    `statements`: what each side answered about the record's name and type, in time's order. `cached_until`: when
    the last of the asked resolvers forgets an answer without the record; None if none has such an answer.
    """

    record: Record
    status: RecordStatus
    statements: tuple[Statement, ...]
    cached_until: datetime | None


class RecordCheckService:
    """Checks records that were just set. One instance per process; its creator closes it."""

    def __init__(
        self, settings: Settings, policy: AddressPolicy, clock: Clock, *, authority_port: int = DNS_PORT
    ) -> None:
        """Make the service. Raises: `OperatorError` for a name server that the policy refuses."""
        self._resolvers = SharedResolvers(settings.dns_servers, policy)
        self._checker = RecordChecker(
            self._resolvers,
            Authority(policy, port=authority_port),
            clock,
            interval_seconds=settings.check_interval_seconds,
        )

    async def check(self, application_id: str, apex: str, records: Sequence[Record]) -> list[CheckedRecord]:
        """Check the records, in their order. Records without an answer in time are unknown."""
        found = await self._checker.check(apex, records, tenant=application_id, within_seconds=_WITHIN_SECONDS)
        return list(
            await asyncio.gather(
                *(
                    self._describe(apex, record, verdict, found.statements)
                    for record, verdict in zip(records, found.verdicts, strict=True)
                )
            )
        )

    async def close(self) -> None:
        """Close the connections to name servers."""
        await self._resolvers.close()

    async def _describe(
        self, apex: str, record: Record, verdict: RecordVerdict, statements: Iterable[Statement]
    ) -> CheckedRecord:
        question = (owner_name(record, apex), record.type)
        own = [each for each in statements if each.question == question]
        timed = await asyncio.gather(*(self._with_ttl(each) for each in _latest(own)))
        return CheckedRecord(record, _STATUSES[verdict], tuple(timed), _cached_until(record, timed))

    async def _with_ttl(self, statement: Statement) -> Statement:
        """Add for how long a resolver remembers that there is no record, which c-ares does not show."""
        answer = statement.answer
        if (
            statement.role != "resolver"
            or answer.outcome not in (Outcome.NO_DATA, Outcome.NO_NAME)
            or answer.ttl_seconds
        ):
            return statement
        name, kind = statement.question
        server: HostPort = parse_host_port(statement.server)
        try:
            async with asyncio.timeout(_ABSENCE_SECONDS):
                again = await self._resolvers.ask_directly(server, name, kind, owner=name)
        except TimeoutError:
            return statement
        same = again.outcome is answer.outcome
        return replace(statement, answer=replace(answer, ttl_seconds=again.ttl_seconds)) if same else statement


def _latest(statements: Sequence[Statement]) -> list[Statement]:
    """Return the last answer of each server: the checker asks some of them more than once."""
    by_server = {(each.role, each.server): each for each in statements}
    return sorted(by_server.values(), key=lambda each: each.at)


def _cached_until(record: Record, statements: Iterable[Statement]) -> datetime | None:
    old = [
        each.at + timedelta(seconds=each.answer.ttl_seconds)
        for each in statements
        if each.role == "resolver"
        and each.answer.ttl_seconds
        and judge_answer(record, each.answer) is RecordVerdict.MISSING
    ]
    return max(old, default=None)
