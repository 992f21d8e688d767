"""Prepared domains: looks whether a domain's challenge is delegated, then whether its DNS leads here yet.

    waiting            asked ever less often the longer ago a person or a program asked for it; a pending domain is
                       enrolled by all the rules of the API
    issuing, prepared  asked about every 40 seconds, by the zones' own servers alone; every tenth time by all that a
                       renewal asks (`monitor.certificates.dns_moved_away`), which sees through a CDN

The certificate in between is an order as any other (`monitor.certificates.issuance`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Final

from common.actors import Actor, acting
from common.db import preparations
from common.db.applications import Application, get_application
from common.db.pool import Database
from common.db.preparations import ClaimedPreparation, Wanted
from common.enrolment import preparing
from common.enrolment.enrolling import Enrolling
from common.enrolment.outcome import EnrolmentCode, EnrolmentRefused
from common.enrolment.preparing import Preparing
from common.enrolment.request import PARTNER, EnrolmentRequest
from common.logs import get_logger
from common.names import parse_enrollable
from monitor.certificates.dns_moved_away import DomainDnsCheck

_log = get_logger("monitor.preparing")

_AWAITED: Final = (EnrolmentCode.NOT_ELIGIBLE, EnrolmentCode.NOT_ASKED)
_ASKED_FRACTION: Final = 1 / 20
_SHORTEST_SECONDS: Final = 2.0
_LONGEST_SECONDS: Final = 300.0
_TURN_SECONDS: Final = (30.0, 45.0)
_THOROUGH_EVERY: Final = 10


class PreparationWork:
    """Performs claimed preparations. Created by `monitor.wiring`, whose runner calls `perform`."""

    def __init__(
        self,
        database: Database,
        preparing: Preparing,
        enrolling: Enrolling,
        dns_check: DomainDnsCheck,
        random: Random,
        on_enrolled: Callable[[], None] = lambda: None,
        on_event: Callable[[], None] = lambda: None,
    ) -> None:
        """Create the work. `on_enrolled` is called after a certificate was ordered, `on_event` after an event."""
        self._database = database
        self._preparing = preparing
        self._enrolling = enrolling
        self._dns_check = dns_check
        self._random = random
        self._on_enrolled = on_enrolled
        self._on_event = on_event

    async def perform(self, claim: ClaimedPreparation) -> None:
        """Do what is due for a domain.

        Raises: `FenceLost`, `DatabaseUnavailable`.
        """
        async with self._database.connection() as connection:
            application = await get_application(connection, claim.application_id)
        if application is None or claim.has_expired:
            await self._expire(claim)
        elif claim.state == "waiting" and claim.awaits_dns:
            await self._enrol_pending(application, claim)
        elif claim.state == "waiting":
            await self._enrol(application, claim)
        else:
            await self._look_for_turn(application, claim)

    async def _enrol(self, application: Application, claim: ClaimedPreparation) -> None:
        wanted = Wanted(claim.domain, claim.product, claim.settings)
        pause = waiting_pause_seconds(claim.asked_seconds)
        next_look = self._turn_pause_seconds()
        record = partial(preparations.record_enrolled, claim=claim, next_look_seconds=next_look)
        look = await self._preparing.enrol(application, wanted, record)
        if look.is_enrolled:
            _log.info("domain is enrolled before its DNS leads here", domain=claim.domain)
            self._on_enrolled()
            return
        reason = None if look.refused is None else look.refused.code.value
        async with self._database.connection() as connection:
            await preparations.record_look(
                connection, claim, is_delegated=look.is_delegated, reason=reason, next_look_seconds=pause
            )

    async def _enrol_pending(self, application: Application, claim: ClaimedPreparation) -> None:
        """Enrol a domain whose DNS leads here by now, as `POST /power` or `POST /ssl` would."""
        request = EnrolmentRequest(claim.product, parse_enrollable(claim.domain), claim.settings)
        record = partial(preparations.finish_pending, claim=claim)
        with acting(Actor("monitor", application.id)):
            outcome = await self._enrolling.enrol(application, request, PARTNER, beside=record)
        if isinstance(outcome, EnrolmentRefused):
            if outcome.code is EnrolmentCode.ENROLLED:  # by a person or a program, meanwhile
                async with self._database.transaction() as connection:
                    await record(connection)
                return
            reason = None if outcome.code in _AWAITED else outcome.code.value
            pause = waiting_pause_seconds(claim.asked_seconds)
            async with self._database.connection() as connection:
                await preparations.record_look(
                    connection, claim, is_delegated=None, reason=reason, next_look_seconds=pause
                )
            return
        _log.info("the DNS of a pending domain leads here", domain=claim.domain)
        self._on_enrolled()

    async def _look_for_turn(self, application: Application, claim: ClaimedPreparation) -> None:
        is_thorough = claim.attempts % _THOROUGH_EVERY == 0
        if is_thorough or await self._dns_check.may_lead_here(claim.domain, application):
            lead = await self._dns_check(claim.domain, application.id)
        else:
            lead = "elsewhere"
        if lead != "here":
            async with self._database.connection() as connection:
                pause = self._turn_pause_seconds()
                await preparations.record_look(
                    connection, claim, is_delegated=None, reason=None, next_look_seconds=pause
                )
            return
        async with self._database.transaction() as connection:
            is_active = await preparations.activate(connection, claim.domain, application.id)
        if is_active:
            _log.info("the DNS of a prepared domain leads here", domain=claim.domain)
            self._on_event()

    async def _expire(self, claim: ClaimedPreparation) -> None:
        async with self._database.transaction() as connection:
            await preparing.end(connection, claim.application_id, claim.domain)
        _log.info("a preparation has expired", domain=claim.domain)

    def _turn_pause_seconds(self) -> float:
        return self._random.uniform(*_TURN_SECONDS)


def waiting_pause_seconds(asked_seconds: float) -> float:
    """Return the pause before a domain's delegation is looked for again."""
    return min(max(asked_seconds * _ASKED_FRACTION, _SHORTEST_SECONDS), _LONGEST_SECONDS)
