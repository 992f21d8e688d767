"""The enrolment of one name: the order in which its rules are asked, and the transaction that stores it.

Rules
    what the request and the application's settings decide comes first, then what the application has of the name, then
        the DNS, then the origin: nothing is asked for a name that is refused anyway
    no transaction is open while the DNS or an origin is asked; what was true before is checked again under the name's
        lock, and asked again where another application has got the name meanwhile
    a refusal inside the transaction undoes all that was written in it
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from common.actors import earlier_request_ids
from common.addresses import AddressPolicy
from common.db import audit, domains, preparations
from common.db.applications import Application
from common.db.domains import AlreadyEnrolled, Domain, EnrolledTooOften
from common.db.pool import Connection
from common.enrolment import changes, rules
from common.enrolment.domain_claims import Assessment, DomainClaims, StandingChanged
from common.enrolment.name_locks import NameLocks
from common.enrolment.origins import AskOrigin, Unreachable
from common.enrolment.outcome import Enrolled, EnrolmentCode, EnrolmentOutcome, EnrolmentRefused, RefusedInside
from common.enrolment.ownership import OwnershipClaim
from common.enrolment.redirects import closes_loop
from common.enrolment.request import EnrolmentPolicy, EnrolmentRequest, cname_target_of
from common.names import DomainName

_MOST_TRIES = 3

Beside: TypeAlias = Callable[[Connection], Awaitable[None]]
"""Writes what is stored together with an enrolment, before it; what it raises ends the transaction."""


@dataclass(frozen=True, slots=True)
class Enrolling:
    """Enrols names. One instance per process; each call brings its application."""

    claims: DomainClaims
    addresses: AddressPolicy
    ask_origin: AskOrigin
    name_locks: NameLocks = field(default_factory=NameLocks)

    async def enrol(
        self,
        application: Application,
        request: EnrolmentRequest,
        policy: EnrolmentPolicy,
        *,
        beside: Beside | None = None,
    ) -> EnrolmentOutcome:
        """Give the name to the application, if it may have it; take it from its holder where it moves.

        Raises: `DatabaseUnavailable`, and what `beside` raises.
        """
        if await self._is_done(application, request):
            return Enrolled("unchanged")
        own = await self._check(application, request, policy)
        if isinstance(own, EnrolmentRefused):
            return own
        target = cname_target_of(application, request.product)
        for _ in range(_MOST_TRIES):
            assessment = await self.claims.assess(application, request.name, target)
            refused = rules.judge(assessment) or await self._check_origin(application, request, own)
            if refused is not None:
                return refused
            with suppress(StandingChanged):
                return await self._store(application, request, policy, assessment, beside)
        return EnrolmentRefused(EnrolmentCode.HELD_UNKNOWN)

    async def check(
        self, application: Application, request: EnrolmentRequest, policy: EnrolmentPolicy
    ) -> EnrolmentRefused | None:
        """Refuse what is refused without a question to the DNS or an origin. Raises: `DatabaseUnavailable`."""
        if await self._is_done(application, request):
            return None
        checked = await self._check(application, request, policy)
        return checked if isinstance(checked, EnrolmentRefused) else None

    async def _is_done(self, application: Application, request: EnrolmentRequest) -> bool:
        """Return whether an earlier attempt at the same request of a partner enrolled the name, and lost its answer."""
        if not earlier_request_ids():
            return False  # without a connection
        async with self.claims.database.connection() as connection:
            found = await audit.find_earlier(connection, f"{request.product}.enrol", request.name.text)
        return found is not None and found.application_id == application.id

    async def _check(
        self, application: Application, request: EnrolmentRequest, policy: EnrolmentPolicy
    ) -> list[Domain] | EnrolmentRefused:
        """Return what the application has of the name, or a refusal."""
        async with self.claims.database.connection() as connection:
            own = await _find_own(connection, application, request)
        is_kept = bool(own) and policy.if_enrolled == "keep"  # then none of the settings is stored
        refused = None if is_kept else rules.check_settings(request, application, own, policy, self.addresses)
        return refused or rules.check_enrolled(request, own, policy) or own

    async def _check_origin(
        self, application: Application, request: EnrolmentRequest, own: list[Domain]
    ) -> EnrolmentRefused | None:
        """Refuse to secure a name whose origin does not answer."""
        url = rules.origin_of(request, application, own) if request.product == "secure" else None
        return None if url is None else await self.check_reachable(application, request.name, url)

    async def check_reachable(self, application: Application, name: DomainName, url: str) -> EnrolmentRefused | None:
        """Refuse an origin that does not answer."""
        try:
            await self.ask_origin(url, name.visited_host, application)
        except Unreachable as error:
            return EnrolmentRefused(EnrolmentCode.ORIGIN_UNREACHABLE, str(error))
        return None

    async def _store(
        self,
        application: Application,
        request: EnrolmentRequest,
        policy: EnrolmentPolicy,
        assessment: Assessment,
        beside: Beside | None,
    ) -> EnrolmentOutcome:
        """Write the enrolment under the name's lock. Raises: `StandingChanged`."""
        evidence, name, locks_redirects = assessment.evidence, request.name, request.settings.redirect_to is not None
        try:
            async with (
                self.name_locks.hold(name.text),
                self.claims.claimed(application, name, evidence, locks_redirects) as connection,
            ):
                if beside is not None:
                    await beside(connection)
                return await _write(connection, application, request, policy, evidence.claim)
        except RefusedInside as error:
            return error.refused


async def _write(
    connection: Connection,
    application: Application,
    request: EnrolmentRequest,
    policy: EnrolmentPolicy,
    claim: OwnershipClaim | None,
) -> Enrolled:
    """Check again what the application has, then add or change it. Raises: `RefusedInside`."""
    own = await _find_own(connection, application, request)
    refused = rules.check_enrolled(request, own, policy)
    if refused is not None:
        raise RefusedInside(refused)
    is_prepared = any(each.is_prepared for each in own)
    if is_prepared:
        await preparations.activate(connection, request.name.text, application.id)
    if own and policy.if_enrolled == "keep":
        return Enrolled("unchanged")
    name, redirect_to = request.name.text, request.settings.redirect_to
    if redirect_to is not None and await closes_loop(connection, name, redirect_to):
        raise RefusedInside(EnrolmentRefused(EnrolmentCode.LOOP))
    has_product = any(each.product == request.product for each in own)
    if has_product and is_prepared:
        await changes.enrol_prepared(connection, name, request.product, application.id, request.settings)
        return Enrolled("added")
    if has_product and policy.if_enrolled == "change":
        await changes.update(connection, name, request.product, application.id, request.settings)
        return Enrolled("changed")
    try:
        await changes.enrol(connection, name, request.product, application.id, request.settings, claim)
    except AlreadyEnrolled as error:
        raise RefusedInside(EnrolmentRefused(EnrolmentCode.HELD)) from error
    except EnrolledTooOften as error:
        wait = error.retry_after_seconds
        raise RefusedInside(EnrolmentRefused(EnrolmentCode.TOO_OFTEN, retry_after_seconds=wait)) from error
    return Enrolled("added")


async def _find_own(connection: Connection, application: Application, request: EnrolmentRequest) -> list[Domain]:
    """Return what the application has of the name, in both products."""
    held = await domains.find(connection, request.name.text)
    return [each for each in held if each.application_id == application.id]
