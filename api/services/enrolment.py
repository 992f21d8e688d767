"""What Power and Secure share: whose a name is, where it leads, and that edges hear of what was changed.

Each product's own rules are its service's (`api.services.power`, `api.services.secure`); this module refuses nothing
that only one of them refuses.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace

from api.errors import (
    ALREADY_POWERED,
    DOMAIN_NOT_VALID,
    STEP_ONE,
    UNRESOLVED,
    Refusal,
    Refused,
    invalid_parameter,
)
from api.schemas.queries import ListQuery
from api.services import notices
from api.services import ownership_hints as hints
from api.services.notices import Notice
from common.addresses import AddressPolicy
from common.clock import Clock
from common.db import certificates, domains, monitor_nodes, orders, ownership
from common.db.applications import Application, get_application
from common.db.domains import Domain, Page, Product
from common.db.pool import Connection, Database
from common.dns import Outcome, Pass, Resolver
from common.eligibility import EdgeProbe, Findings, ServiceTargets, check_eligibility
from common.errors import AddressRefused, DatabaseUnavailable, FrontageError
from common.liveness import await_edges
from common.logs import get_logger
from common.names import DomainName
from common.ownership import Claim, Evidence, OwnNames, Standing, Verdict, judge
from common.ownership_evidence import Party, find_evidence, has_txt_record
from common.urls import InvalidUrl, parse_application_url

_log = get_logger("api.services.enrolment")

EDGES_WITHIN_SECONDS = 0.25
_MOST_TRIES = 3

_NOT_ASKED = Findings(None, None, Outcome.TIMEOUT)

Store = Callable[[Connection, Claim | None], Awaitable[None]]
"""Writes an enrolment, in a transaction that holds the name's lock."""


class _StandingChanged(FrontageError):
    """The name got another holder while the DNS was asked: what it said is about the one before."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """Whether an application may enrol a name, and why. `findings` say nothing where the verdict alone refuses it."""

    verdict: Verdict
    evidence: Evidence
    findings: Findings = _NOT_ASKED

    @property
    def may_enrol(self) -> bool:
        return self.verdict in (Verdict.ENROL, Verdict.MOVE) and self.findings.is_eligible

    @property
    def is_foreign(self) -> bool:
        """Whether another application holds the name, and keeps it."""
        return self.evidence.against is not None and not self.may_enrol


@dataclass(frozen=True, slots=True)
class Enrolment:
    """One a process; every request brings its application."""

    database: Database
    resolver: Resolver
    policy: AddressPolicy
    service_targets: ServiceTargets
    own_names: OwnNames
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

    async def assess(
        self,
        application: Application,
        name: DomainName,
        cname_target: str,
        *,
        within: Pass | None = None,
        findings: Findings | None = None,
    ) -> Assessment:
        """Asks within the caller's pass, or one of its own. `findings`: what was asked already, by `look`."""
        async with self.database.connection() as connection:
            standing = await ownership.find_standing(connection, name, application.id)
            is_held = standing.holder not in (None, application.id)
            holder = await get_application(connection, standing.holder or "") if is_held else None
        if self._judge(application, name, standing, Evidence(None)) is Verdict.RESERVED:
            return Assessment(Verdict.RESERVED, Evidence(None))
        async with self.resolver.open_pass() if within is None else contextlib.nullcontext(within) as questions:
            if holder is not None:
                return await self._assess_held(questions, application, name, cname_target, standing, holder)
            findings = findings or await self.look(name, cname_target, within=questions)
            return await self._assess_free(questions, application, name, standing, findings)

    async def _assess_free(
        self, questions: Pass, application: Application, name: DomainName, standing: Standing, findings: Findings
    ) -> Assessment:
        verdict = self._judge(application, name, standing, Evidence(findings.claim))
        lacks_proof = verdict is Verdict.UNPROVEN or not findings.is_pointed
        if lacks_proof and findings.leads_here and await has_txt_record(questions, name, application.id):
            findings = replace(findings, claim=Claim.TXT)
            verdict = self._judge(application, name, standing, Evidence(Claim.TXT))
        return Assessment(verdict, Evidence(findings.claim), findings)

    async def _assess_held(
        self,
        questions: Pass,
        application: Application,
        name: DomainName,
        cname_target: str,
        standing: Standing,
        holder: Application,
    ) -> Assessment:
        claimant = Party.of(application, cname_target)
        evidence = await find_evidence(questions, name, claimant, Party.of(holder))
        verdict = self._judge(application, name, standing, evidence)
        if verdict is not Verdict.MOVE:
            return Assessment(verdict, evidence)
        if evidence.claim is Claim.CNAME:  # a resolver's cache may be older
            step_one = await questions.follow(cname_target, self.service_targets.targets)
            return Assessment(verdict, evidence, Findings(Claim.CNAME, None, step_one.end))
        findings = await self.look(name, cname_target, within=questions)
        return Assessment(verdict, evidence, replace(findings, claim=Claim.TXT) if findings.leads_here else findings)

    def _judge(self, application: Application, name: DomainName, standing: Standing, evidence: Evidence) -> Verdict:
        return judge(name, application.id, standing, evidence, self.own_names)

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
            with contextlib.suppress(_StandingChanged):
                async with self._claimed(application, name, assessment.evidence, locks_redirects) as connection:
                    await store(connection, assessment.evidence.claim)
                return
        raise _held(Verdict.UNKNOWN, application, name, cname_target)

    @contextlib.asynccontextmanager
    async def _claimed(
        self, application: Application, name: DomainName, evidence: Evidence, locks_redirects: bool
    ) -> AsyncIterator[Connection]:
        """A transaction in which the name is free for the application, or its own."""
        async with self.database.transaction() as connection:
            if locks_redirects:
                await domains.lock_redirects(connection)
            await certificates.lock_domain(connection, name.text)
            standing = await ownership.find_standing(connection, name, application.id)
            verdict = self._judge(application, name, standing, evidence)
            if verdict not in (Verdict.ENROL, Verdict.MOVE):
                raise _StandingChanged(name.text)
            if verdict is Verdict.MOVE and standing.holder is not None:
                await ownership.take_away(connection, name.text, standing.holder, "moved")
                _log.info("domain moves", domain=name.text, holder=standing.holder, claimant=application.id)
            yield connection

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
    """Whether another application has the name; a name belongs to one application."""
    return any(domain.application_id != application.id for domain in held)


def refuse_unresolved(findings: Findings) -> None:
    """Raises: `Refused` when it is unknown whether the domain is eligible."""
    if findings.unknown is not None:
        raise Refused(UNRESOLVED, code=findings.unknown.value)


def refuse_unowned(assessment: Assessment, application: Application, name: DomainName, cname_target: str) -> None:
    """Raises: `Refused` for a name that is not the application's to have, whatever it leads to."""
    match assessment.verdict:
        case Verdict.ENROL | Verdict.MOVE | Verdict.UNPROVEN:
            return
        case Verdict.RESERVED:
            raise Refused(DOMAIN_NOT_VALID, code=Verdict.RESERVED.value, hint=hints.RESERVED)
        case _:
            raise _held(assessment.verdict, application, name, cname_target)


def refuse_ineligible(application: Application, name: DomainName, assessment: Assessment, review: Refusal) -> None:
    """Raises: `Refused`, with `review` when it is the customer's part that lacks."""
    findings = assessment.findings
    if findings.lacks_step_one:
        raise Refused(STEP_ONE)
    if not findings.is_eligible:
        unknown = findings.unknown
        raise Refused(
            review,
            code=unknown.value if unknown else None,
            hint=f"GET /domains/{name.text}/diagnosis says what is missing",
        )
    if assessment.verdict is Verdict.UNPROVEN:
        raise Refused(review, code=Verdict.UNPROVEN.value, hint=hints.unproven(name, application.id))


def _held(verdict: Verdict, application: Application, name: DomainName, cname_target: str) -> Refused:
    hint = hints.held(verdict, name, application.id, cname_target)
    return Refused(ALREADY_POWERED, code=verdict.value, hint=hint)
