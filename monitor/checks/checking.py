"""Checking put together: claims due checks, asks the DNS, and writes the outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from random import Random

from common.addresses import AddressPolicy
from common.clock import Clock
from common.db import checks
from common.db.checks import Check
from common.db.pool import Connection, Database
from common.dns.authority import DNS_PORT, Authority
from common.dns.channels import TRY_SECONDS
from common.dns.shared_resolvers import SharedResolvers
from common.host_ports import HostPort
from common.record_checks.record_checker import ROUND_SECONDS, RecordChecker
from monitor.checks.health import CheckHealth
from monitor.checks.outcomes import Finished, Outcomes
from monitor.checks.rate_limit import CheckRateLimit
from monitor.checks.schedule import next_due, next_try
from monitor.checks.transitions import decide
from monitor.claims import POLL_SECONDS, Runner
from monitor.concurrency_shares import ConcurrencyShares

_AT_ONCE = 600
_REFILL = 150
_CHECKS_PER_SECOND = 1000.0  # routine checks of one process: 3.6 million domains an hour


class CheckQueue:
    """The queue of due checks (`common.db.checks`), fair to applications and within this process' rate limit."""

    def __init__(self, rate_limit: CheckRateLimit, shares: ConcurrencyShares) -> None:
        self._rate_limit = rate_limit
        self._shares = shares
        self.extend = checks.extend
        self.next_due_seconds = checks.next_due_seconds

    async def claim(self, connection: Connection, /, *, most: int, lease_seconds: float) -> list[Check]:
        """Claim up to `most` due checks, fewer where the rate limit or an application's share is used up."""
        due = await checks.find_due(connection, most=most, full=self._shares.full(free=most))
        chosen = self._shares.choose(due, free=most, most_routine=self._rate_limit.available())
        if not chosen:
            return []
        claimed = await checks.claim(connection, chosen, lease_seconds=lease_seconds)
        self._rate_limit.take(len(claimed))
        return claimed

    async def postpone(self, connection: Connection, claim: Check, /, *, delay_seconds: float, last_error: str) -> None:
        """Postpone a check that failed; the reason is in the log only."""
        await checks.postpone(connection, claim, delay_seconds=delay_seconds)


class Checking:
    """Checks monitored domains. Created by `monitor.wiring`; owns the resolvers' sockets.

    The monitor's ``__main__`` runs `run` as a task and cancels it.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        random: Random,
        *,
        servers: Sequence[HostPort],
        policy: AddressPolicy,
        interval_seconds: float,
        base_url: str,
        on_events: Callable[[], None],
        authority_port: int = DNS_PORT,
        checks_per_second: float = _CHECKS_PER_SECOND,
        poll_seconds: float = POLL_SECONDS,
        try_seconds: float = TRY_SECONDS,
        round_seconds: float = ROUND_SECONDS,
    ) -> None:
        """Create the checks' parts; `on_events` is called after events were recorded.

        Raises: `OperatorError` for a server that the policy refuses.
        """
        self._interval_seconds = interval_seconds
        self._resolvers = SharedResolvers(servers, policy, try_seconds=try_seconds)
        self._record_checker = RecordChecker(
            self._resolvers,
            Authority(policy, port=authority_port),
            clock,
            interval_seconds=interval_seconds,
            round_seconds=round_seconds,
        )
        self._outcomes = Outcomes(database, base_url, on_events)
        self._health = CheckHealth(database, interval_seconds)
        self._shares = ConcurrencyShares()
        self._runner = Runner(
            database,
            CheckQueue(CheckRateLimit(clock, checks_per_second=checks_per_second), self._shares),
            self._perform,
            concurrency=_AT_ONCE,
            refill=_REFILL,
            random=random,
            poll_seconds=poll_seconds,
        )

    def wake(self) -> None:
        """Search for due checks at once, since a domain may have been added or changed."""
        self._runner.wake()

    @property
    def record_checker(self) -> RecordChecker:
        """Return the record checker, for other work of this process. It works for as long as `run` does."""
        return self._record_checker

    async def run(self) -> None:
        """Check domains until cancelled, then close the resolvers."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._outcomes.run(), name="checks: write outcomes")
                tasks.create_task(self._health.report_periodically(), name="checks: report health")
                tasks.create_task(self._runner.run(), name="checks: runner")
        finally:
            await self._resolvers.close()

    async def _perform(self, check: Check) -> None:
        with self._shares.hold(check.application_id):
            await self._check(check)

    async def _check(self, check: Check) -> None:
        """Check one domain's records and write the outcome."""
        found = await self._record_checker.check(
            check.domain, check.records, tenant=check.application_id, had_long_ttl=check.has_long_ttl
        )
        transition = decide(check, found.verdicts, round_seconds=self._interval_seconds)
        if transition.is_complete:
            due_at = next_due(check.id, check.claimed_at, self._interval_seconds)
        else:
            due_at = next_try(check.id, check.claimed_at, self._interval_seconds, check.attempts)
        self._health.count(found.verdicts)
        await self._outcomes.write(Finished(check, transition, found.evidence, due_at, found.has_long_ttl))
