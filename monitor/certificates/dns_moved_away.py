"""Checks whether an enrolled domain's DNS still leads to its application, by the rules of its enrolment.

A check without an answer changes nothing: an outage of name servers takes no domain out of service.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from common.db.applications import Application, get_application
from common.db.pool import Database
from common.dns import Outcome, Pass, Resolver
from common.enrolment.delegations import Delegations
from common.enrolment.eligibility import (
    ADDRESS_TYPES,
    EdgeProbe,
    EligibilityFindings,
    ServiceTargets,
    check_eligibility,
    host_to_ask,
)
from common.enrolment.ownership_evidence import find_record_claim
from common.names import parse_enrollable

Lead: TypeAlias = Literal["here", "past its target", "elsewhere"]
"""Where a domain's DNS leads. ``past its target``: here, but not through its application's cname target."""

IsDelegated: TypeAlias = Callable[[str, str], Awaitable[bool]]
"""Of a domain and its application's id: whether the domain's challenge is delegated, as far as could be asked."""

FindLead: TypeAlias = Callable[[str, str], Awaitable[Lead | None]]
"""Of a domain and its application's id; None when that is unknown."""


@dataclass(frozen=True, slots=True)
class DomainDnsCheck:
    """Finds where a domain's DNS leads, as a `FindLead`. One instance per process."""

    database: Database
    resolver: Resolver
    service_targets: ServiceTargets
    probe: EdgeProbe
    delegations: Delegations

    async def __call__(self, domain: str, application_id: str) -> Lead | None:
        """Return where the domain's DNS leads; None when that is unknown."""
        async with self.database.connection() as connection:
            application = await get_application(connection, application_id)
        if application is None:
            return None
        async with self.resolver.open_pass() as questions:
            return await self._find_lead(questions, domain, application)

    async def may_lead_here(self, domain: str, application: Application) -> bool:
        """Return whether the domain's own zones lead to us, or cannot be asked; a CDN in front is not seen through."""
        own = filter(None, (application.cname_target, application.secure_cname_target))
        targets = self.service_targets.targets.union(own)
        async with self.resolver.open_pass(application.id) as questions:
            ask = questions.authoritative
            host = host_to_ask(parse_enrollable(domain))
            chain = await ask.follow(host, targets)
            if chain.end is Outcome.RECORDS or not chain.end.is_known:
                return True
            end = chain.names[-1] if chain.names else host
            answers = [await ask.ask(end, kind) for kind in ADDRESS_TYPES]
        seen = {value for answer in answers for value in answer.values}
        return not (seen.isdisjoint(self.service_targets.service_servers) and all(a.outcome.is_known for a in answers))

    async def is_delegated(self, domain: str, application_id: str) -> bool:
        """Return whether the domain's challenge is delegated to the application's label."""
        async with self.resolver.open_pass() as questions:
            delegate = await self.delegations(questions.ask_confirmed, domain)
        return delegate.application_id == application_id

    async def _find_lead(self, questions: Pass, domain: str, application: Application) -> Lead | None:
        """Return the best lead through any of the application's targets; None when that is unknown.

        Any target will do, since whatever leads through one serves both products. So will another way to the edges,
        with a record that names the application.
        """
        seen: set[Lead | None] = set()
        name = parse_enrollable(domain)
        for target in filter(None, (application.cname_target, application.secure_cname_target)):
            findings = await check_eligibility(questions, name, target, self.service_targets, self.probe)
            if findings.bypasses_target:
                claim = await find_record_claim(questions, name, application.id, self.delegations)
                findings = replace(findings, claim=claim)
            seen.add(lead_from(findings))
            if "here" in seen:
                return "here"
        if None in seen:
            return None
        return "past its target" if "past its target" in seen else "elsewhere"


def lead_from(findings: EligibilityFindings) -> Lead | None:
    """Return where the findings say that the DNS leads; None when they leave it unknown."""
    if findings.is_eligible:
        return "here"
    if findings.unresolved is not None:  # a name that is there no more is an answer
        return "elsewhere" if findings.unresolved.is_known else None
    if findings.unknown is not None:
        return None
    return "past its target" if findings.bypasses_target else "elsewhere"
