"""What Power and Secure share: lists, whose a name is and where it leads, and that edges have what was changed.

Which name may be enrolled, `common.enrolment` decides; `api.services.enrolment_refusals` has the words.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, replace

from api import notices
from api.errors import (
    DOMAIN_NOT_VALID,
    UNRESOLVED,
    Refused,
)
from api.notices import Notice
from api.schemas.bodies import parse_product_domain
from api.schemas.queries import ListQuery, MetadataQuery, PartQuery
from api.services import ownership_hints as hints
from api.services.enrolment_refusals import to_refused
from common.clock import Clock
from common.db import domain_list, domain_pages, domains, monitor_nodes, orders, ownership
from common.db.applications import Application
from common.db.domain_list_query import DomainListQuery, ListKey
from common.db.domain_pages import DomainPage, ListedDomain
from common.db.domains import Domain, Product
from common.db.pool import Connection, Database
from common.dns import Pass, Resolver
from common.enrolment.domain_claims import Assessment, DomainClaims
from common.enrolment.eligibility import EligibilityFindings, ServiceTargets
from common.enrolment.enrolling import Enrolling
from common.enrolment.outcome import EnrolmentCode, EnrolmentOutcome, EnrolmentRefused
from common.enrolment.ownership import OwnershipVerdict
from common.enrolment.request import PARTNER, EnrolmentRequest
from common.enrolment.rules import check_origin_url, check_served
from common.errors import DatabaseUnavailable
from common.liveness import await_edges
from common.logs import get_logger
from common.names import DomainName

_log = get_logger("api.services.enrolment")

EDGES_WITHIN_SECONDS = 0.25
_NO_WILDCARDS = "a wildcard needs a zone for delegated challenges, which the operator of this service has not set up"


@dataclass(frozen=True, slots=True)
class ListedPart:
    """A part of a list, and where the list goes on; None at its end."""

    items: list[ListedDomain]
    next: ListKey | None


@dataclass(frozen=True, slots=True)
class EnrolmentService:
    """Enrolment use cases that Power and Secure share. One instance per process; each call brings its application."""

    enrolling: Enrolling
    clock: Clock

    @property
    def claims(self) -> DomainClaims:
        """Return what decides whose a name is."""
        return self.enrolling.claims

    @property
    def resolver(self) -> Resolver:
        """Return the resolver that eligibility asks."""
        return self.claims.resolver

    @property
    def service_targets(self) -> ServiceTargets:
        """Return where domains must lead."""
        return self.claims.service_targets

    @property
    def database(self) -> Database:
        """Return the database that enrolments are stored in."""
        return self.claims.database

    async def list_page(self, application: Application, product: Product, query: ListQuery) -> DomainPage:
        """Return a page of the application's domains."""
        async with self.database.connection() as connection:
            return await domain_pages.list_page(
                connection,
                application.id,
                product,
                query.status,
                offset=query.page * query.size,
                limit=query.size,
            )

    async def list_part(self, application: Application, product: Product, query: PartQuery) -> ListedPart:
        """Return a part of a sorted or searched list of the application's domains."""
        async with self.database.connection() as connection:
            if query.status is not None:
                await domain_pages.settle_lapsed(connection, application.id)
            part = await domain_list.list_part(
                connection,
                DomainListQuery(
                    [application.id],
                    query.text,
                    product,
                    "problem" if query.status == "inactive" else query.status,
                    query.sort,
                    query.after,
                    query.size,
                ),
            )
            names = [row.name for row in part.rows]
            return ListedPart(await domain_pages.find_listed(connection, application.id, product, names), part.next)

    async def list_by_metadata(
        self, application: Application, product: Product, query: MetadataQuery
    ) -> tuple[list[ListedDomain], str | None]:
        """Return a part of the application's domains with a note, and where the list goes on, if it does."""
        async with self.database.connection() as connection:
            names = await domain_pages.find_by_metadata(
                connection, application.id, product, query.key, query.value, after=query.after, most=query.size
            )
            found = await domain_pages.find_listed(connection, application.id, product, names)
        wanted = [each for each in found if query.status in (None, each.status)]
        return wanted, names[-1] if len(names) == query.size else None

    async def find_listed(self, application: Application, product: Product, domain: str) -> ListedDomain | None:
        """Return the application's enrolment of a name as lists show it, or None."""
        async with self.database.connection() as connection:
            names = [parse_product_domain(domain).text]
            return next(iter(await domain_pages.find_listed(connection, application.id, product, names)), None)

    async def held(self, name: DomainName) -> list[Domain]:
        """Return the enrolments of a name."""
        async with self.database.connection() as connection:
            return await domains.find(connection, name.text)

    async def find_eligibility(
        self, name: DomainName, cname_target: str, *, within: Pass | None = None
    ) -> EligibilityFindings:
        """Asks within the caller's pass, or one of its own."""
        return await self.claims.find_eligibility(name, cname_target, within=within)

    async def request_recheck(
        self, connection: Connection, name: DomainName, application: Application, *, pause_seconds: float
    ) -> None:
        """Have a monitor check the DNS again of a domain that was seen to lead elsewhere, which ends that."""
        await orders.request_recheck(
            connection, name.text, application.id, only_moved_away=True, pause_seconds=pause_seconds
        )

    async def assess(
        self,
        application: Application,
        name: DomainName,
        cname_target: str,
        *,
        within: Pass | None = None,
        findings: EligibilityFindings | None = None,
    ) -> Assessment:
        """As `DomainClaims.assess`."""
        return await self.claims.assess(application, name, cname_target, within=within, findings=findings)

    async def enrol(self, application: Application, request: EnrolmentRequest) -> None:
        """Give the name to the application, if it may have it. Raises: `Refused`."""
        self._refuse_wildcard(request.name, Refused(DOMAIN_NOT_VALID, hint=_NO_WILDCARDS))
        outcome = await self.enrolling.enrol(application, request, PARTNER)
        if isinstance(outcome, EnrolmentRefused) and outcome.code is EnrolmentCode.UNDELEGATED:
            outcome = replace(outcome, detail=await self.explain_undelegated(application, request.name))
        self._raise(application, request, outcome)

    async def explain_undelegated(self, application: Application, name: DomainName) -> str:
        """Return the hint for a wildcard whose challenge is not delegated, with the record to set."""
        record = await self.claims.delegations.find_record(name.text, application.id)
        return hints.undelegated(name, record)

    async def find_hint(self, application: Application, name: DomainName, assessment: Assessment) -> str | None:
        """Return the hint beside an answer about eligibility, if there is any."""
        if assessment.verdict is OwnershipVerdict.UNDELEGATED:
            return await self.explain_undelegated(application, name)
        return hints.eligibility(assessment.verdict, assessment.findings, name, application.id)

    async def check(self, application: Application, request: EnrolmentRequest) -> None:
        """Refuse what is refused without a question to the DNS or an origin. Raises: `Refused`."""
        self._refuse_wildcard(request.name, Refused(DOMAIN_NOT_VALID, hint=_NO_WILDCARDS))
        self._raise(application, request, await self.enrolling.check(application, request, PARTNER))

    def refuse_unaskable(self, name: DomainName) -> None:
        """Refuse to ask the DNS about a name that cannot be enrolled here. Raises: `Refused`."""
        self._refuse_wildcard(name, Refused(UNRESOLVED, hint=_NO_WILDCARDS))

    def _refuse_wildcard(self, name: DomainName, refused: Refused) -> None:
        if name.is_wildcard and self.claims.delegations.zone is None:
            raise refused

    def refuse_origin(self, application: Application, request: EnrolmentRequest, url: str) -> None:
        """Refuse an applicationUrl that the product does not take. Raises: `Refused`."""
        self._raise(application, request, check_origin_url(request.product, url, self.enrolling.addresses))

    async def refuse_unreachable(self, application: Application, request: EnrolmentRequest, url: str) -> None:
        """Refuse an origin that does not answer. Raises: `Refused`."""
        self._raise(application, request, await self.enrolling.check_reachable(application, request.name, url))

    def _raise(self, application: Application, request: EnrolmentRequest, outcome: EnrolmentOutcome | None) -> None:
        if isinstance(outcome, EnrolmentRefused):
            raise to_refused(application, request, outcome)

    async def reach_edges(self) -> list[Notice]:
        """As the function `reach_edges`."""
        return await reach_edges(self.database, self.clock)

    async def reach_visitors(self) -> list[Notice]:
        """Notices of an enrolment: whether a certificate follows, and whether the edges serve the domain."""
        of_issuer, of_edges = await asyncio.gather(find_issuer(self.database), self.reach_edges())
        return [*of_issuer, *of_edges]


async def reach_edges(database: Database, clock: Clock) -> list[Notice]:
    """Wait a moment for the edges to apply what was committed. Returns a notice if visitors do not meet it yet."""
    try:
        reach = await await_edges(database, clock, within_seconds=EDGES_WITHIN_SECONDS)
    except DatabaseUnavailable:
        return [notices.EDGES_UNKNOWN]
    if reach.behind:
        _log.warning("edges have not reported the change", edges=reach.labels)
    return notices.of_edges(reach)


async def find_issuer(database: Database) -> list[Notice]:
    """Return a notice if no monitor obtains certificates now."""
    with contextlib.suppress(DatabaseUnavailable):
        async with database.connection() as connection:
            if not await monitor_nodes.is_issuing(connection):
                return [notices.NO_MONITOR]
    return []


async def refuse_not_served(connection: Connection, application: Application, request: EnrolmentRequest) -> None:
    """Refuse a change of a domain that an operator has blocked, or whose application is suspended."""
    standing = await ownership.find_standing(connection, request.name, application.id)
    refused = check_served(standing)
    if refused is not None:
        raise to_refused(application, request, refused)


def is_foreign(held: list[Domain], application: Application) -> bool:
    """Whether another application has the name; a name belongs to one application."""
    return any(domain.application_id != application.id for domain in held)


def refuse_unresolved(findings: EligibilityFindings) -> None:
    """Refuse a domain whose eligibility is unknown. Raises: `Refused`."""
    if findings.unknown is not None:
        raise Refused(UNRESOLVED, code=findings.unknown.value)
