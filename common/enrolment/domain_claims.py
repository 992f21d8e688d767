"""Domain claims: whether an application may enrol a name, by DNS and database, and the transaction in which it does.

What follows from the answer is the caller's: the API refuses, a flow of the connect modal waits or fails.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, replace

from common.db import certificates, domains, ownership
from common.db.applications import Application, get_application
from common.db.pool import Connection, Database
from common.dns import Outcome, Pass, Resolver
from common.enrolment import changes
from common.enrolment.delegations import Delegate, Delegations
from common.enrolment.eligibility import EdgeProbe, EligibilityFindings, ServiceTargets, check_eligibility
from common.enrolment.outcome import EnrolmentCode, EnrolmentRefused
from common.enrolment.ownership import (
    OwnershipClaim,
    OwnershipEvidence,
    OwnershipRecord,
    OwnershipVerdict,
    OwnNames,
    Target,
    is_proof,
    judge_claim,
)
from common.enrolment.ownership_evidence import find_evidence, find_record_claim, party_of
from common.errors import FrontageError
from common.logs import get_logger
from common.names import DomainName

_log = get_logger("common.enrolment.domain_claims")

_NOT_ASKED = EligibilityFindings(None, None, Outcome.TIMEOUT)


class StandingChanged(FrontageError):
    """The name got another holder while the DNS was asked: what it said is about the one before."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """Whether an application may enrol a name, and why. `findings` say nothing where the verdict alone refuses it."""

    verdict: OwnershipVerdict
    evidence: OwnershipEvidence
    findings: EligibilityFindings = _NOT_ASKED

    @property
    def may_enrol(self) -> bool:
        """Return whether the name is the application's to have, and leads to it."""
        return self.verdict in (OwnershipVerdict.ENROL, OwnershipVerdict.MOVE) and self.findings.is_eligible

    @property
    def is_foreign(self) -> bool:
        """Whether another application holds the name, and keeps it."""
        return self.evidence.against is not None and not self.may_enrol


@dataclass(frozen=True, slots=True)
class DomainClaims:
    """Assesses applications' claims to domains. One instance per process; each call takes its application."""

    database: Database
    resolver: Resolver
    service_targets: ServiceTargets
    own_names: OwnNames
    probe: EdgeProbe
    delegations: Delegations

    async def find_eligibility(
        self, name: DomainName, cname_target: str, *, within: Pass | None = None
    ) -> EligibilityFindings:
        """Find where a domain leads, within the caller's pass or one of its own."""
        if within is not None:
            return await check_eligibility(within, name, cname_target, self.service_targets, self.probe)
        async with self.resolver.open_pass() as questions:
            return await check_eligibility(questions, name, cname_target, self.service_targets, self.probe)

    async def assess(
        self,
        application: Application,
        name: DomainName,
        cname_target: str,
        *,
        within: Pass | None = None,
        findings: EligibilityFindings | None = None,
    ) -> Assessment:
        """Assess an application's claim to a domain, within the caller's pass or one of its own.

        `findings`: the result of an earlier `find_eligibility`.
        """
        standing, holder = await self._find_standing(application, name)
        if (verdict := self._refuse_outright(name, standing)) is not None:
            return Assessment(verdict, OwnershipEvidence(None))
        opened = self.resolver.open_pass(application.id) if within is None else contextlib.nullcontext(within)
        async with opened as questions:
            if holder is not None:
                return await self._assess_held(questions, application, name, cname_target, standing, holder)
            findings = findings or await self.find_eligibility(name, cname_target, within=questions)
            findings = await self._drop_outranked_claim(application, name, cname_target, standing, findings)
            return await self._assess_free(questions, application, name, standing, findings)

    async def assess_delegated(self, application: Application, name: DomainName) -> tuple[Assessment, Delegate]:
        """Assess an application's claim to a domain by its delegated challenge, wherever the domain leads.

        The assessment has no findings. It is meant only where the delegate is the application.
        """
        standing, holder = await self._find_standing(application, name)
        if (verdict := self._refuse_outright(name, standing)) is not None:
            return Assessment(verdict, OwnershipEvidence(None)), Delegate(application.id)
        async with self.resolver.open_pass(application.id) as questions:
            delegate = await self.delegations(questions.ask_confirmed, name.text)
            is_ours = delegate.application_id == application.id
            evidence = OwnershipEvidence(OwnershipClaim.DELEGATION if is_ours else None)
            if is_ours and holder is not None:
                evidence = await self._find_evidence(questions, application, name, standing, holder)
        return Assessment(self._judge(application, name, standing, evidence), evidence), delegate

    async def refuse_outright(self, application: Application, name: DomainName) -> EnrolmentRefused | None:
        """Refuse a name that is no application's to have, or not now this one's, whatever the DNS answers."""
        standing, _ = await self._find_standing(application, name)
        verdict = self._refuse_outright(name, standing)
        return None if verdict is None else EnrolmentRefused(EnrolmentCode(verdict.value))

    async def _find_standing(
        self, application: Application, name: DomainName
    ) -> tuple[OwnershipRecord, Application | None]:
        """Return what is known of the name, and the other application that holds it."""
        async with self.database.connection() as connection:
            standing = await ownership.find_standing(connection, name, application.id)
            is_held = standing.holder not in (None, application.id)
            return standing, await get_application(connection, standing.holder or "") if is_held else None

    def _refuse_outright(self, name: DomainName, standing: OwnershipRecord) -> OwnershipVerdict | None:
        if self.own_names.reserve(name) or standing.is_own_target:
            return OwnershipVerdict.RESERVED
        if standing.is_blocked:
            return OwnershipVerdict.BLOCKED
        return OwnershipVerdict.SUSPENDED if standing.is_suspended else None

    async def _find_evidence(
        self,
        questions: Pass,
        application: Application,
        name: DomainName,
        standing: OwnershipRecord,
        holder: Application,
        *cname_targets: str,
    ) -> OwnershipEvidence:
        return await find_evidence(
            questions,
            name,
            party_of(application, *cname_targets),
            party_of(holder),
            standing.held_since,
            self.service_targets.targets,
            self._find_targets,
            self.delegations,
        )

    async def _drop_outranked_claim(
        self,
        application: Application,
        name: DomainName,
        cname_target: str,
        standing: OwnershipRecord,
        findings: EligibilityFindings,
    ) -> EligibilityFindings:
        """Remove the claim by CNAME where another application's cname target on the way outranks the claimant's."""
        between = {*findings.way} - {cname_target} - self.service_targets.targets
        if findings.claim is not OwnershipClaim.CNAME or not (between or standing.is_target):
            return findings
        way = (name.text, *findings.way)
        if is_proof(way, party_of(application, cname_target), await self._find_targets(way)):
            return findings
        return replace(findings, claim=None, bypasses_target=True)

    async def _find_targets(self, names: Collection[str]) -> Sequence[Target]:
        async with self.database.connection() as connection:
            return await ownership.find_targets(connection, names)

    async def _assess_free(
        self,
        questions: Pass,
        application: Application,
        name: DomainName,
        standing: OwnershipRecord,
        findings: EligibilityFindings,
    ) -> Assessment:
        verdict = self._judge(application, name, standing, OwnershipEvidence(findings.claim))
        lacks_proof = verdict is OwnershipVerdict.UNPROVEN or not findings.is_pointed
        if name.is_wildcard or (lacks_proof and findings.leads_here):
            claim = await find_record_claim(questions, name, application.id, self.delegations)
            if claim is not None:
                findings = replace(findings, claim=claim) if findings.leads_here else findings
                return Assessment(
                    self._judge(application, name, standing, OwnershipEvidence(claim)),
                    OwnershipEvidence(claim),
                    findings,
                )
        return Assessment(verdict, OwnershipEvidence(findings.claim), findings)

    async def _assess_held(
        self,
        questions: Pass,
        application: Application,
        name: DomainName,
        cname_target: str,
        standing: OwnershipRecord,
        holder: Application,
    ) -> Assessment:
        evidence = await self._find_evidence(questions, application, name, standing, holder, cname_target)
        verdict = self._judge(application, name, standing, evidence)
        if verdict is not OwnershipVerdict.MOVE:
            return Assessment(verdict, evidence)
        if evidence.claim is OwnershipClaim.CNAME:  # a resolver's cache may be older
            step_one = await questions.follow(cname_target, self.service_targets.targets)
            return Assessment(verdict, evidence, EligibilityFindings(OwnershipClaim.CNAME, None, step_one.end))
        findings = await self.find_eligibility(name, cname_target, within=questions)
        return Assessment(
            verdict, evidence, replace(findings, claim=evidence.claim) if findings.leads_here else findings
        )

    def _judge(
        self, application: Application, name: DomainName, standing: OwnershipRecord, evidence: OwnershipEvidence
    ) -> OwnershipVerdict:
        return judge_claim(name, application.id, standing, evidence, self.own_names)

    @contextlib.asynccontextmanager
    async def claimed(
        self, application: Application, name: DomainName, evidence: OwnershipEvidence, locks_redirects: bool = False
    ) -> AsyncIterator[Connection]:
        """Open a transaction in which the name is free for the application, or its own. Raises: `StandingChanged`."""
        async with self.database.transaction() as connection:
            if locks_redirects:
                await domains.lock_redirects(connection)
            await certificates.lock_domain(connection, name.text)
            standing = await ownership.find_standing(connection, name, application.id)
            verdict = self._judge(application, name, standing, evidence)
            if verdict not in (OwnershipVerdict.ENROL, OwnershipVerdict.MOVE):
                raise StandingChanged(name.text)
            if verdict is OwnershipVerdict.MOVE and standing.holder is not None:
                await changes.revoke_ownership(connection, name.text, standing.holder, "moved")
                _log.info(
                    "domain moved to another application",
                    domain=name.text,
                    holder=standing.holder,
                    claimant=application.id,
                )
            yield connection
