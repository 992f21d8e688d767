"""What Power and Secure share: whom a name belongs to, where it leads, and that edges hear of what was changed.

Each product's own rules are its service's (`api.services.power`, `api.services.secure`); this module refuses nothing
that only one of them refuses.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from api.errors import STEP_ONE, UNRESOLVED, Refusal, Refused, invalid_parameter
from api.schemas.queries import ListQuery
from api.services import notices
from api.services.notices import Notice
from common.addresses import AddressPolicy
from common.clock import Clock
from common.db import domains, monitor_nodes, orders
from common.db.applications import Application
from common.db.domains import Domain, Page, Product
from common.db.pool import Connection, Database
from common.dns import Pass, Resolver
from common.eligibility import EdgeProbe, Findings, ServiceTargets, check_eligibility
from common.errors import AddressRefused, DatabaseUnavailable
from common.liveness import await_edges
from common.logs import get_logger
from common.names import DomainName
from common.urls import InvalidUrl, parse_application_url

_log = get_logger("api.services.enrolment")

EDGES_WITHIN_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Enrolment:
    """One a process; every request brings its application."""

    database: Database
    resolver: Resolver
    policy: AddressPolicy
    service_targets: ServiceTargets
    probe: EdgeProbe
    clock: Clock

    async def list_page(self, application: Application, product: Product, query: ListQuery) -> Page:
        async with self.database.connection() as connection:
            return await domains.list_page(
                connection,
                application.id,
                product,
                query.status,
                offset=query.page * query.size,
                limit=query.size,
            )

    async def held(self, name: DomainName) -> list[Domain]:
        async with self.database.connection() as connection:
            return await domains.find(connection, name.text)

    async def look(self, name: DomainName, cname_target: str, *, within: Pass | None = None) -> Findings:
        """Asks within the caller's pass, or one of its own."""
        if within is not None:
            return await check_eligibility(within, name, cname_target, self.service_targets, self.probe)
        async with self.resolver.open_pass() as questions:
            return await check_eligibility(questions, name, cname_target, self.service_targets, self.probe)

    async def request_recheck(
        self, connection: Connection, name: DomainName, application: Application, *, pause_seconds: float
    ) -> None:
        """Where the domain's DNS was seen to lead elsewhere, have a monitor check it again, which ends that."""
        await orders.request_recheck(
            connection, name.text, application.id, only_moved_away=True, pause_seconds=pause_seconds
        )

    async def reach_edges(self) -> list[Notice]:
        """Wait a moment for the edges to apply what was committed. Returns a notice if visitors do not meet it yet."""
        try:
            reach = await await_edges(self.database, self.clock, within_seconds=EDGES_WITHIN_SECONDS)
        except DatabaseUnavailable:
            return [notices.EDGES_UNKNOWN]
        if reach.behind:
            _log.warning("edges have not reported the change", edges=reach.labels)
        return notices.of_edges(reach)

    async def find_issuer(self) -> list[Notice]:
        """A notice if no monitor obtains certificates now."""
        with contextlib.suppress(DatabaseUnavailable):
            async with self.database.connection() as connection:
                if not await monitor_nodes.is_issuing(connection):
                    return [notices.NO_MONITOR]
        return []

    def refuse_private(self, application_url: str) -> None:
        """Raises: `Refused` for an address written in the URL; names are looked at when they are dialled."""
        try:
            url = parse_application_url(application_url)
            if url.address is not None:
                self.policy.check(url.address, url.port)
        except (InvalidUrl, AddressRefused) as error:
            raise Refused(invalid_parameter("applicationUrl", status=502), hint=str(error)) from error


def is_foreign(held: list[Domain], application: Application) -> bool:
    """Whether another application has the name; if one does, nobody else has any part of it."""
    return any(domain.application_id != application.id for domain in held)


def refuse_unresolved(findings: Findings) -> None:
    """Raises: `Refused` when it cannot be told whether the domain is eligible."""
    if findings.unknown is not None:
        raise Refused(UNRESOLVED, code=findings.unknown.value)


def refuse_ineligible(name: DomainName, findings: Findings, review: Refusal) -> None:
    """Raises: `Refused`, with `review` when it is the customer's part that lacks."""
    if findings.lacks_step_one:
        raise Refused(STEP_ONE)
    if not findings.is_eligible:
        unknown = findings.unknown
        raise Refused(
            review,
            code=unknown.value if unknown else None,
            hint=f"GET /domains/{name.text}/diagnosis says what is missing",
        )
