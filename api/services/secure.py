"""Secure: a certificate for a customer's domain, and all that comes there forwarded as it is.

Decides, asks and stores; knows no HTTP. No transaction is open while the DNS or an origin is asked. What was true
before is checked again under the domain's lock when it is stored.

What a name's certificate means for POST: live, there is nothing to provision; on its way, the owner waits; none, or one
that has lapsed, or whose order failed, or DNS that had left: the domain may be provisioned, again if it was before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from api.errors import (
    DOMAIN_NOT_VALID,
    Refused,
    renewal_failed,
)
from api.notices import Notice
from api.schemas.bodies import parse_product_domain
from api.schemas.secure import REASONS, SecureBody, SecureChange, SecureRemoval
from api.services import domain_operations
from api.services.enrolment import (
    EnrolmentService,
    find_issuer,
    is_foreign,
    refuse_not_served,
    refuse_unresolved,
)
from api.services.enrolment_refusals import to_refused
from common.db import domains, orders
from common.db.applications import Application
from common.db.domains import Domain, Status
from common.db.orders import NotRenewable
from common.enrolment import changes
from common.enrolment.outcome import EnrolmentCode, EnrolmentRefused
from common.enrolment.redirects import closes_loop
from common.enrolment.request import EnrolmentRequest, cname_target_of
from common.enrolment.rules import check_redirect, is_live, is_ordering
from common.names import DomainName


@dataclass(frozen=True, slots=True)
class SslEligibility:
    """What `GET /ssl?domain=` answers. `redirect_to`: the target of a redirect, if any; `hint`: what else to do."""

    is_eligible: bool
    status: Status = "inactive"
    cname_target: str = ""
    application_url: str = ""
    redirect_to: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class SecureService:
    """Secure. One instance per process; each call takes the caller's application."""

    enrolment: EnrolmentService

    async def check_eligibility(self, application: Application, name: DomainName) -> SslEligibility:
        """Return whether a domain can be secured. Raises: `Refused` when the DNS has no answer.

        What is provided for already is not asked about.
        """
        held = await self.enrolment.held(name)
        target = cname_target_of(application, "secure")
        if not held:
            self.enrolment.refuse_unaskable(name)
        if is_foreign(held, application):
            assessment = await self.enrolment.assess(application, name, target)
            return SslEligibility(True, "inactive", target) if assessment.may_enrol else SslEligibility(False)
        url, redirect_to = _application_url(held), _redirect_of(held)
        if is_live(held):
            return SslEligibility(False, "active", target, url, redirect_to)
        if is_ordering(held):
            return SslEligibility(False, "inactive", target, url, redirect_to)
        assessment = await self.enrolment.assess(application, name, target)
        if assessment.is_foreign:
            return SslEligibility(False)
        if not held:
            refuse_unresolved(assessment.findings)
        hint = await self.enrolment.find_hint(application, name, assessment)
        return SslEligibility(assessment.may_enrol, "inactive", target, url, redirect_to, hint)

    async def secure(self, application: Application, body: SecureBody) -> list[Notice]:
        """Enrol the domain durably; its certificate follows by itself."""
        name = parse_product_domain(body.domain)
        request = EnrolmentRequest("secure", name, body.settings)
        await self.enrolment.enrol(application, request)
        return await self.enrolment.reach_visitors()

    async def change(self, application: Application, body: SecureChange) -> tuple[bool, list[Notice]]:
        """Change the origin or the redirect; a body that changes neither asks for a renewal.

        Returns whether a setting was changed. Both are durable then; a certificate that is renewed serves until the
        new one is live.
        """
        name = parse_product_domain(body.domain)
        own = await self._find_own(application, name)
        if own is None:
            raise Refused(DOMAIN_NOT_VALID)
        has_changes = body.application_url not in (None, own.application_url) or (
            body.redirect_to is not None and body.redirect_to != (own.redirect_to or "")
        )
        has_changes = has_changes or body.metadata not in (None, own.metadata or {})
        given = body.settings
        has_changes = has_changes or given.visitors not in (None, own.visitors or {})
        has_changes = has_changes or given.response_policy not in (None, own.response_policy or {})
        if has_changes:
            await self._change(application, name, own, body)
            return True, await self.enrolment.reach_edges()
        await self._renew(application, name, own)
        return False, await find_issuer(self.enrolment.database)

    async def _find_own(self, application: Application, name: DomainName) -> Domain | None:
        held = await self.enrolment.held(name)
        return next((each for each in held if each.product == "secure" and each.application_id == application.id), None)

    async def _change(self, application: Application, name: DomainName, own: Domain, body: SecureChange) -> None:
        redirect_to = own.redirect_to if body.redirect_to is None else body.redirect_to or None
        request = EnrolmentRequest("secure", name, replace(body.settings, redirect_to=redirect_to))
        url = body.application_url or own.application_url or None
        if body.application_url is not None:
            self.enrolment.refuse_origin(application, request, body.application_url)
        if body.redirect_to and check_redirect(name.text, body.redirect_to) is not None:
            raise _loop(application, request)
        if url is None and redirect_to is None:
            raise to_refused(application, request, EnrolmentRefused(EnrolmentCode.NO_ORIGIN))
        leads_elsewhere = body.application_url is not None or body.redirect_to is not None
        if url is not None and leads_elsewhere and (body.application_url is not None or redirect_to is None):
            await self.enrolment.refuse_unreachable(application, request, url)
        async with self.enrolment.database.transaction() as connection:
            if body.redirect_to:
                await domains.lock_redirects(connection)
                if await closes_loop(connection, name.text, body.redirect_to):
                    raise _loop(application, request)
            changed = await changes.update(connection, name.text, "secure", application.id, body.settings)
            if changed:
                await refuse_not_served(connection, application, request)
        if not changed:
            raise Refused(DOMAIN_NOT_VALID)

    async def _renew(self, application: Application, name: DomainName, own: Domain) -> None:
        if own.departed_at is not None:
            assessment = await self.enrolment.assess(application, name, cname_target_of(application, "secure"))
            if not assessment.may_enrol:
                raise Refused(renewal_failed("The domain's DNS no longer leads here, so it cannot be renewed."))
        try:
            async with self.enrolment.database.transaction() as connection:
                await domain_operations.renew(connection, name.text, application.id, most_a_day=orders.RENEWALS_A_DAY)
        except NotRenewable as error:
            words = str(error)
            raise Refused(renewal_failed(f"The certificate cannot be renewed: {words}.")) from error

    async def remove(self, application: Application, body: SecureRemoval) -> list[Notice]:
        """End serving at once; with a reason, revoke the certificate. Raises: `Refused`.

        Power, where it stays, gets another.
        """
        name = parse_product_domain(body.domain)
        async with self.enrolment.database.transaction() as connection:
            was_ours = await changes.remove(connection, name.text, "secure", application.id)
            if was_ours and body.reason is not None:
                await domain_operations.revoke(connection, name.text, application.id, REASONS[body.reason])
        if not was_ours:
            raise Refused(DOMAIN_NOT_VALID)
        return await self.enrolment.reach_edges()


def _application_url(held: list[Domain]) -> str:
    """Secure's, or where only Power has the name, Power's."""
    return next((domain.application_url for domain in sorted(held, key=lambda each: each.product, reverse=True)), "")


def _redirect_of(held: list[Domain]) -> str | None:
    return next((domain.redirect_to for domain in held if domain.redirect_to), None)


def _loop(application: Application, request: EnrolmentRequest) -> Refused:
    return to_refused(application, request, EnrolmentRefused(EnrolmentCode.LOOP))
