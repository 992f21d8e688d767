"""Power: a customer's domain renders a partner's application. `common.enrolment` decides which names it may have."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from api.errors import DOMAIN_NOT_VALID, Refused
from api.notices import Notice
from api.schemas.bodies import parse_product_domain
from api.schemas.power import PowerBody, PowerChange
from api.services.enrolment import EnrolmentService, refuse_not_served, refuse_unresolved
from api.services.origin_state import OriginStates
from common.db.applications import Application
from common.db.domains import Domain, Status
from common.enrolment import changes
from common.enrolment.outcome import EnrolmentCode
from common.enrolment.refusal_words import WORDS
from common.enrolment.request import EnrolmentRequest
from common.names import DomainName

ORIGIN_WITHIN_SECONDS = 1.0
_RECHECK_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Eligibility:
    """What `GET /power?domain=` answers. `hint`: what else there is to do, or to know."""

    is_eligible: bool
    status: Status = "inactive"
    cname_target: str = ""
    application_url: str = ""
    root_path_access: tuple[str, ...] = ()
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class PowerService:
    """Power. One instance per process; each call takes the caller's application."""

    enrolment: EnrolmentService
    origins: OriginStates

    async def check_eligibility(self, application: Application, name: DomainName) -> Eligibility:
        """Return whether a domain can be powered. Raises: `Refused` when the DNS has no answer.

        What is enrolled already is not asked about.
        """
        target = application.cname_target
        own = await self._find_own(application, name)
        if own is not None:
            return Eligibility(False, own.status, target, own.application_url, own.root_path_access)
        self.enrolment.refuse_unaskable(name)
        assessment = await self.enrolment.assess(application, name, target)
        if assessment.is_foreign:
            return Eligibility(False)
        refuse_unresolved(assessment.findings)
        hint = await self.enrolment.find_hint(application, name, assessment)
        if name.is_root and assessment.may_enrol:
            hint = WORDS[EnrolmentCode.ROOT].partner
        return Eligibility(assessment.may_enrol, cname_target=target, hint=hint)

    async def power(self, application: Application, body: PowerBody) -> list[Notice]:
        """Enrol the domain durably; its certificate follows by itself.

        The origin is asked at the same time, for a notice: one that does not answer yet is no reason to refuse.
        """
        name = parse_product_domain(body.domain)
        request = EnrolmentRequest("power", name, body.settings)
        await self.enrolment.check(application, request)
        noted, of_origin = await asyncio.gather(
            self._enrol(application, request), self._ask_origin(application, name, body.application_url)
        )
        return [*noted, *of_origin]

    async def _enrol(self, application: Application, request: EnrolmentRequest) -> list[Notice]:
        await self.enrolment.enrol(application, request)
        return await self.enrolment.reach_visitors()

    async def update(self, application: Application, body: PowerChange) -> list[Notice]:
        """Change the domain; where its DNS had moved away, a monitor checks it again at once."""
        name = parse_product_domain(body.domain)
        request = EnrolmentRequest("power", name, body.settings)
        if body.application_url is not None:
            self.enrolment.refuse_origin(application, request, body.application_url)
        async with self.enrolment.database.transaction() as connection:
            await self.enrolment.request_recheck(connection, name, application, pause_seconds=_RECHECK_PAUSE_SECONDS)
            is_ours = await changes.update(connection, name.text, "power", application.id, body.settings)
            if is_ours:
                await refuse_not_served(connection, application, request)
        if not is_ours:
            raise Refused(DOMAIN_NOT_VALID)
        if body.application_url is None:
            return await self.enrolment.reach_edges()
        noted, of_origin = await asyncio.gather(
            self.enrolment.reach_edges(), self._ask_origin(application, name, body.application_url)
        )
        return [*noted, *of_origin]

    async def remove(self, application: Application, domain: str) -> list[Notice]:
        """Power a domain no longer. Raises: `Refused`."""
        name = parse_product_domain(domain)
        async with self.enrolment.database.transaction() as connection:
            was_ours = await changes.remove(connection, name.text, "power", application.id)
        if not was_ours:
            raise Refused(DOMAIN_NOT_VALID)
        return await self.enrolment.reach_edges()

    async def _ask_origin(self, application: Application, name: DomainName, url: str) -> list[Notice]:
        state = await self.origins.find(application, name.visited_host, url, within_seconds=ORIGIN_WITHIN_SECONDS)
        return [state.notice] if state.notice is not None else []

    async def _find_own(self, application: Application, name: DomainName) -> Domain | None:
        held = await self.enrolment.held(name)
        return next((each for each in held if each.product == "power" and each.application_id == application.id), None)
