"""What Power and Secure share: whose a name is, where it leads, and that edges hear of what was changed.

Each product's own rules are its service's (`api.services.power`, `api.services.secure`); this module refuses nothing
that only one of them refuses.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from api import notices
from api.errors import (
    ALREADY_POWERED,
    DOMAIN_NOT_VALID,
    STEP_ONE,
    UNRESOLVED,
    Refusal,
    Refused,
    invalid_parameter,
)
from api.notices import Notice
from api.schemas.queries import ListQuery, PartQuery
from api.services import ownership_hints as hints
from api.services.name_locks import NameLocks
from common.addresses import AddressPolicy
from common.clock import Clock
from common.db import domain_list, domain_pages, domains, monitor_nodes, orders, policies
from common.db.applications import Application
from common.db.domain_list import ListKey, Wanted
from common.db.domain_pages import DomainPage, ListedDomain
from common.db.domains import Domain, Product
from common.db.pool import Connection, Database
from common.dns import Pass, Resolver
from common.domain_claims import Assessment, DomainClaims, StandingChanged
from common.eligibility import EdgeProbe, EligibilityFindings, ServiceTargets
from common.errors import AddressRefused, DatabaseUnavailable
from common.liveness import await_edges
from common.logs import get_logger
from common.names import DomainName
from common.ownership import OwnershipClaim, OwnershipVerdict, OwnNames
from common.urls import InvalidUrl, parse_application_url

_log = get_logger("api.services.enrolment")

EDGES_WITHIN_SECONDS = 0.25
_MOST_TRIES = 3

Store = Callable[[Connection, OwnershipClaim | None], Awaitable[None]]
"""Writes an enrolment, in a transaction that holds the name's lock."""


@dataclass(frozen=True, slots=True)
class ListedPart:
    """A part of a list, and where the list goes on; None at its end."""

    items: list[ListedDomain]
    next: ListKey | None


@dataclass(frozen=True, slots=True)
class EnrolmentService:
    """One a process; every request brings its application."""

    database: Database
    resolver: Resolver
    policy: AddressPolicy
    service_targets: ServiceTargets
    own_names: OwnNames
    probe: EdgeProbe
    clock: Clock
    name_locks: NameLocks = field(default_factory=NameLocks)

    @property
    def claims(self) -> DomainClaims:
        return DomainClaims(self.database, self.resolver, self.service_targets, self.own_names, self.probe)

    async def list_page(self, application: Application, product: Product, query: ListQuery) -> DomainPage:
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
        async with self.database.connection() as connection:
            if query.status is not None:
                await domain_pages.settle_lapsed(connection, application.id)
            part = await domain_list.list_part(
                connection,
                Wanted(
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

    async def held(self, name: DomainName) -> list[Domain]:
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
        """Where the domain's DNS was seen to lead elsewhere, have a monitor check it again, which ends that."""
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

    async def enrol(
        self,
        application: Application,
        name: DomainName,
        cname_target: str,
        review: Refusal,
        store: Store,
        *,
        prepare: Callable[[], Awaitable[None]] | None = None,
        locks_redirects: bool = False,
    ) -> None:
        """Have `store` write what enrols the name, if the application may have it; taken away from its holder where it
        moves, in the same transaction. `prepare` may still refuse it, before.

        Raises: `Refused`, with `review` when it is the customer's part that lacks; and what `store` raises.
        """
        for _ in range(_MOST_TRIES):
            assessment = await self.assess(application, name, cname_target)
            refuse_unowned(assessment, application, name, cname_target)
            refuse_ineligible(application, name, assessment, review)
            if prepare is not None:
                await prepare()
            with contextlib.suppress(StandingChanged):
                async with (
                    self.name_locks.hold(name.text),
                    self.claims.claimed(application, name, assessment.evidence, locks_redirects) as connection,
                ):
                    await store(connection, assessment.evidence.claim)
                return
        raise _held(OwnershipVerdict.UNKNOWN, application, name, cname_target)

    async def reach_edges(self) -> list[Notice]:
        """Wait a moment for the edges to apply what was committed. Returns a notice if visitors do not meet it yet."""
        try:
            reach = await await_edges(self.database, self.clock, within_seconds=EDGES_WITHIN_SECONDS)
        except DatabaseUnavailable:
            return [notices.EDGES_UNKNOWN]
        if reach.behind:
            _log.warning("edges have not reported the change", edges=reach.labels)
        return notices.of_edges(reach)

    async def reach_visitors(self) -> list[Notice]:
        """Notices of an enrolment: whether a certificate follows, and whether the edges serve the domain."""
        of_issuer, of_edges = await asyncio.gather(find_issuer(self.database), self.reach_edges())
        return [*of_issuer, *of_edges]

    def refuse_private(self, application_url: str) -> None:
        """Raises: `Refused` for an address written in the URL; names are looked at when they are dialled."""
        try:
            url = parse_application_url(application_url)
            if url.address is not None:
                self.policy.check(url.address, url.port)
        except (InvalidUrl, AddressRefused) as error:
            raise Refused(invalid_parameter("applicationUrl", status=502), hint=str(error)) from error


async def find_issuer(database: Database) -> list[Notice]:
    """A notice if no monitor obtains certificates now."""
    with contextlib.suppress(DatabaseUnavailable):
        async with database.connection() as connection:
            if not await monitor_nodes.is_issuing(connection):
                return [notices.NO_MONITOR]
    return []


async def refuse_not_served(connection: Connection, name: DomainName, application: Application) -> None:
    """Raises: `Refused` for a change of a domain that an operator has blocked, or whose application is suspended."""
    policy = await policies.find_in_force(connection, name.text, application.id)
    if policy is None:
        return
    if policy.scope == "domain":
        raise Refused(DOMAIN_NOT_VALID, code=OwnershipVerdict.BLOCKED.value, hint=hints.BLOCKED)
    raise Refused(DOMAIN_NOT_VALID, code=OwnershipVerdict.SUSPENDED.value, hint=hints.SUSPENDED)


def is_foreign(held: list[Domain], application: Application) -> bool:
    """Whether another application has the name; a name belongs to one application."""
    return any(domain.application_id != application.id for domain in held)


def refuse_unresolved(findings: EligibilityFindings) -> None:
    """Raises: `Refused` when it is unknown whether the domain is eligible."""
    if findings.unknown is not None:
        raise Refused(UNRESOLVED, code=findings.unknown.value)


def refuse_unowned(assessment: Assessment, application: Application, name: DomainName, cname_target: str) -> None:
    """Raises: `Refused` for a name that is not the application's to have, whatever it leads to."""
    match assessment.verdict:
        case OwnershipVerdict.ENROL | OwnershipVerdict.MOVE | OwnershipVerdict.UNPROVEN:
            return
        case OwnershipVerdict.RESERVED:
            raise Refused(DOMAIN_NOT_VALID, code=OwnershipVerdict.RESERVED.value, hint=hints.RESERVED)
        case OwnershipVerdict.BLOCKED:
            raise Refused(DOMAIN_NOT_VALID, code=OwnershipVerdict.BLOCKED.value, hint=hints.BLOCKED)
        case OwnershipVerdict.SUSPENDED:
            raise Refused(DOMAIN_NOT_VALID, code=OwnershipVerdict.SUSPENDED.value, hint=hints.SUSPENDED)
        case _:
            target = None if assessment.evidence.is_outranked else cname_target
            raise _held(assessment.verdict, application, name, target)


def refuse_ineligible(application: Application, name: DomainName, assessment: Assessment, review: Refusal) -> None:
    """Raises: `Refused`, with `review` when it is the customer's part that lacks."""
    findings = assessment.findings
    if findings.lacks_step_one:
        raise Refused(STEP_ONE, hint=hints.STEP_ONE)
    if not findings.is_eligible:
        unknown = findings.unknown
        raise Refused(
            review,
            code=unknown.value if unknown else None,
            hint=f"GET /domains/{name.text}/diagnosis shows what is missing",
        )
    if assessment.verdict is OwnershipVerdict.UNPROVEN:
        raise Refused(review, code=OwnershipVerdict.UNPROVEN.value, hint=hints.unproven(name, application.id))


def _held(verdict: OwnershipVerdict, application: Application, name: DomainName, cname_target: str | None) -> Refused:
    hint = hints.held(verdict, name, application.id, cname_target)
    return Refused(ALREADY_POWERED, code=verdict.value, hint=hint)
