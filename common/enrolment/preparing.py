"""Prepared domains: enrols a domain before its DNS leads here, and makes it active when it does.

The proof is the delegation of the domain's challenge, which lets a CA validate the domain too: so it has its
certificate, and every edge serves it, before a visitor comes. Until its DNS leads here the domain is inactive.

Rules
    what the request, the application's settings and the database decide is refused at once; what the DNS decides is
        waited for
    a domain that another application holds moves when nothing leads to that one any more, as by an enrolment
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from common.addresses import AddressPolicy
from common.db import certificates, domains, preparations
from common.db.applications import Application
from common.db.domains import Domain
from common.db.pool import Connection
from common.db.preparations import Wanted
from common.enrolment import changes, rules
from common.enrolment.domain_claims import DomainClaims, StandingChanged
from common.enrolment.name_locks import NameLocks
from common.enrolment.outcome import EnrolmentCode, EnrolmentRefused, RefusedInside
from common.enrolment.ownership import OwnershipVerdict
from common.enrolment.redirects import closes_loop
from common.enrolment.request import PREPARATION, EnrolmentRequest
from common.names import parse_enrollable

Beside: TypeAlias = Callable[[Connection], Awaitable[None]]
"""Writes what is stored together with an enrolment, before it."""

_ENROLLING = (OwnershipVerdict.ENROL, OwnershipVerdict.MOVE)


@dataclass(frozen=True, slots=True)
class PreparationLook:
    """What became of an attempt to enrol a prepared domain.

    `is_delegated`: None where that could not be asked. `refused`: why the domain waits although it is delegated.
    """

    is_delegated: bool | None
    refused: EnrolmentRefused | None = None

    @property
    def is_enrolled(self) -> bool:
        """Return whether the domain is enrolled now."""
        return bool(self.is_delegated) and self.refused is None


@dataclass(frozen=True, slots=True)
class Preparing:
    """Prepares domains. One instance per process; each call brings its application."""

    claims: DomainClaims
    addresses: AddressPolicy
    name_locks: NameLocks = field(default_factory=NameLocks)

    async def check(self, application: Application, request: EnrolmentRequest) -> EnrolmentRefused | None:
        """Refuse what is refused without a question to the DNS. Raises: `DatabaseUnavailable`."""
        async with self.claims.database.connection() as connection:
            own = await _find_own(connection, application.id, request.name.text)
        if _is_served(own):
            return EnrolmentRefused(EnrolmentCode.ENROLLED)
        refused = rules.check_settings(request, application, own, PREPARATION, self.addresses)
        return refused or await self.claims.refuse_outright(application, request.name)

    async def enrol(self, application: Application, wanted: Wanted, beside: Beside) -> PreparationLook:
        """Enrol the domain, if its challenge is delegated to the application and the application may have it.

        Raises: `DatabaseUnavailable`, and what `beside` raises.
        """
        name = parse_enrollable(wanted.domain)
        assessment, delegate = await self.claims.assess_delegated(application, name)
        if delegate.application_id != application.id:
            return PreparationLook(False if delegate.is_known else None)
        if assessment.verdict not in _ENROLLING:
            return PreparationLook(True, EnrolmentRefused(EnrolmentCode(assessment.verdict.value)))
        redirects = wanted.settings.redirect_to is not None
        try:
            with suppress(StandingChanged):
                async with (
                    self.name_locks.hold(name.text),
                    self.claims.claimed(application, name, assessment.evidence, redirects) as connection,
                ):
                    await beside(connection)
                    await _write(connection, application, wanted)
                    return PreparationLook(True)
        except RefusedInside as error:
            return PreparationLook(True, error.refused)
        return PreparationLook(True, EnrolmentRefused(EnrolmentCode.HELD_UNKNOWN))


async def _write(connection: Connection, application: Application, wanted: Wanted) -> None:
    """Enrol the domain as inactive, unless it is active already. Raises: `RefusedInside`."""
    own = await _find_own(connection, application.id, wanted.domain)
    if _is_served(own):
        raise RefusedInside(EnrolmentRefused(EnrolmentCode.ENROLLED))
    redirect_to = wanted.settings.redirect_to
    if redirect_to is not None and await closes_loop(connection, wanted.domain, redirect_to):
        raise RefusedInside(EnrolmentRefused(EnrolmentCode.LOOP))
    await changes.prepare(connection, application.id, wanted)


async def request(
    connection: Connection, application_id: str, wanted: Wanted, *, awaits_dns: bool, most_waiting: int
) -> bool:
    """Request the preparation of a domain, anew where it is prepared, under the lock that enrolments hold.

    Raises: `TooManyWaiting`; `RefusedInside` where the application has enrolled it meanwhile: that is newer.
    """
    await certificates.lock_domain(connection, wanted.domain)
    if _is_served(await _find_own(connection, application_id, wanted.domain)):
        raise RefusedInside(EnrolmentRefused(EnrolmentCode.ENROLLED))
    return await preparations.request(
        connection, application_id, wanted, awaits_dns=awaits_dns, most_waiting=most_waiting
    )


async def request_new(
    connection: Connection, application_id: str, wanted: Wanted, *, keeps_enrolled: bool, most_waiting: int
) -> bool:
    """Request the preparation of a domain that the application has not prepared; one that it has stays as it is.

    So does one that it has enrolled, and whose DNS leads here; with `keeps_enrolled` wherever its DNS leads: its
    settings are not to change.
    Both are decided under the domain's lock, which enrolments hold, in the transaction that stores. Return whether it
    was stored.

    Raises: `TooManyWaiting`.
    """
    await certificates.lock_domain(connection, wanted.domain)
    own = await _find_own(connection, application_id, wanted.domain)
    if _is_served(own) or (keeps_enrolled and any(not each.is_prepared for each in own)):
        return False
    return await preparations.request(connection, application_id, wanted, if_new=True, most_waiting=most_waiting)


async def end(connection: Connection, application_id: str, domain: str) -> preparations.State | None:
    """End the preparation with all that it has enrolled, unless the domain is active; return its state, if any."""
    found = await preparations.lock(connection, domain, application_id)
    if found in ("issuing", "prepared"):
        for product in ("power", "secure"):
            await changes.remove(connection, domain, product, application_id)
    if found not in (None, "active"):
        await preparations.delete(connection, domain, application_id)
    return found


async def _find_own(connection: Connection, application_id: str, name: str) -> list[Domain]:
    return [each for each in await domains.find(connection, name) if each.application_id == application_id]


def _is_served(own: Sequence[Domain]) -> bool:
    """Return whether the application has enrolled the name, and its DNS leads here."""
    return any(each.departed_at is None for each in own)
