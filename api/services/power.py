"""Power: a customer's domain renders a partner's application (SPEC 4.1). Decides, asks and stores; knows no HTTP.

No transaction is open while the DNS is asked. What was true before the questions is checked again, under the
domain's lock, by `common.db.domains` when it is stored.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

from api.errors import (
    ALREADY_POWERED,
    DOMAIN_NOT_VALID,
    POWERED_TOO_OFTEN,
    REVIEW_ELIGIBILITY,
    STEP_ONE,
    UNRESOLVED,
    Refused,
    invalid_parameter,
)
from api.schemas.bodies import parse_product_domain
from api.schemas.power import PowerBody, PowerChange
from api.schemas.queries import ListQuery
from common import eligibility
from common.addresses import AddressPolicy
from common.clock import Clock
from common.db import domains
from common.db.applications import Application
from common.db.domains import AlreadyEnrolled, Domain, EnrolledTooOften, Page, Status
from common.db.pool import Database
from common.dns import Resolver
from common.errors import AddressRefused, DatabaseUnavailable
from common.liveness import await_edges
from common.logs import get_logger
from common.names import DomainName
from common.urls import parse_application_url

_log = get_logger("api.services.power")

EDGES_WITHIN_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Eligibility:
    """SPEC 2.6."""

    is_eligible: bool
    status: Status = "inactive"
    cname_target: str = ""
    application_url: str = ""
    root_path_access: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PowerService:
    """One a process; every request brings its application."""

    database: Database
    resolver: Resolver
    policy: AddressPolicy
    places: eligibility.Places
    probe: eligibility.EdgeProbe
    clock: Clock

    async def list_page(self, application: Application, query: ListQuery) -> Page:
        async with self.database.connection() as connection:
            return await domains.list_page(
                connection,
                application.id,
                "power",
                query.status,
                offset=query.page * query.size,
                limit=query.size,
            )

    async def check_eligibility(self, application: Application, name: DomainName) -> Eligibility:
        """Raises: `Refused` when the DNS has no answer; what is enrolled already is not asked about."""
        held = await self._held(name)
        if any(domain.application_id != application.id for domain in held):
            return Eligibility(False)
        for domain in held:
            if domain.product == "power":
                return Eligibility(
                    False,
                    domain.status,
                    application.cname_target,
                    domain.application_url,
                    domain.root_path_access,
                )
        findings = await self._look(application, name)
        if findings.unknown is not None:
            raise Refused(UNRESOLVED, code=findings.unknown.value)
        return Eligibility(findings.is_eligible, cname_target=application.cname_target)

    async def power(self, application: Application, body: PowerBody) -> None:
        """Returns once the domain is durably enrolled; its certificate follows by itself."""
        name = parse_product_domain(body.domain)
        if name.is_root:
            raise Refused(DOMAIN_NOT_VALID, hint="a root domain cannot be powered here: give a subdomain")
        self._refuse_private(body.application_url)
        if _is_taken(await self._held(name), application):
            raise Refused(ALREADY_POWERED)
        _refuse_ineligible(await self._look(application, name))
        try:
            async with self.database.transaction() as connection:
                await domains.power(connection, name.text, application.id, body.application_url, body.root_path_access)
        except AlreadyEnrolled as error:
            raise Refused(ALREADY_POWERED) from error
        except EnrolledTooOften as error:
            raise Refused(POWERED_TOO_OFTEN) from error
        await self._reach_edges()

    async def update(self, application: Application, body: PowerChange) -> None:
        name = parse_product_domain(body.domain)
        if body.application_url is not None:
            self._refuse_private(body.application_url)
        async with self.database.transaction() as connection:
            is_ours = await domains.update_power(
                connection, name.text, application.id, body.application_url, body.root_path_access
            )
        if not is_ours:
            raise Refused(DOMAIN_NOT_VALID)
        await self._reach_edges()

    async def remove(self, application: Application, domain: str) -> None:
        name = parse_product_domain(domain)
        async with self.database.transaction() as connection:
            was_ours = await domains.remove(connection, name.text, "power", application.id)
        if not was_ours:
            raise Refused(DOMAIN_NOT_VALID)
        await self._reach_edges()

    async def _reach_edges(self) -> None:
        """What was answered is what visitors meet: a moment's patience for the edges. The work is done all the same."""
        with contextlib.suppress(DatabaseUnavailable):
            missing = await await_edges(self.database, self.clock, within_seconds=EDGES_WITHIN_SECONDS)
            if missing:
                _log.warning("edges have not reported the change", edges=missing)

    async def _held(self, name: DomainName) -> list[Domain]:
        async with self.database.connection() as connection:
            return await domains.find(connection, name.text)

    async def _look(self, application: Application, name: DomainName) -> eligibility.Findings:
        async with self.resolver.open_pass() as questions:
            return await eligibility.look(questions, name, application.cname_target, self.places, self.probe)

    def _refuse_private(self, application_url: str) -> None:
        """Raises: `Refused` for an address written in the URL; names are looked at when they are dialled."""
        url = parse_application_url(application_url)
        if url.address is None:
            return
        try:
            self.policy.check(url.address, url.port)
        except AddressRefused as error:
            raise Refused(invalid_parameter("applicationUrl", status=502), hint=str(error)) from error


def _is_taken(held: list[Domain], application: Application) -> bool:
    return any(domain.product == "power" or domain.application_id != application.id for domain in held)


def _refuse_ineligible(findings: eligibility.Findings) -> None:
    """Raises: `Refused`."""
    if findings.lacks_step_one:
        raise Refused(STEP_ONE)
    if not findings.is_eligible:
        unknown: Any = findings.unknown
        raise Refused(REVIEW_ELIGIBILITY, code=unknown and unknown.value)
