"""Checks whether an enrolled domain's DNS still leads to us, by the rules of its enrolment.

A check without an answer changes nothing: an outage of name servers takes no domain out of service.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from common.db.applications import Application, get_application
from common.db.pool import Database
from common.dns import Pass, Resolver
from common.eligibility import EdgeProbe, EligibilityFindings, ServiceTargets, check_eligibility
from common.names import parse_domain
from common.ownership import OwnershipClaim
from common.ownership_evidence import has_txt_record

LeadsToUs: TypeAlias = Callable[[str, str], Awaitable[bool | None]]
"""Of a domain and its application's id; None when that is unknown."""


@dataclass(frozen=True, slots=True)
class DomainDnsCheck:
    """One a process. Its call is a `LeadsToUs`."""

    database: Database
    resolver: Resolver
    service_targets: ServiceTargets
    probe: EdgeProbe

    async def __call__(self, domain: str, application_id: str) -> bool | None:
        async with self.database.connection() as connection:
            application = await get_application(connection, application_id)
        if application is None:
            return None
        async with self.resolver.open_pass() as questions:
            return await self._leads_to_us(questions, domain, application)

    async def _leads_to_us(self, questions: Pass, domain: str, application: Application) -> bool | None:
        """Any of its application's targets will do: whatever leads through one serves both products. So will another
        way to us, with the TXT record that names the application."""
        seen = set()
        name = parse_domain(domain)
        for target in filter(None, (application.cname_target, application.secure_cname_target)):
            findings = await check_eligibility(questions, name, target, self.service_targets, self.probe)
            if findings.bypasses_target and await has_txt_record(questions, name, application.id):
                findings = replace(findings, claim=OwnershipClaim.TXT)
            if leads_to_us(findings):
                return True
            seen.add(leads_to_us(findings))
        return None if None in seen else False


def leads_to_us(findings: EligibilityFindings) -> bool | None:
    if findings.is_eligible:
        return True
    if findings.unresolved is not None:  # a name that is there no more is an answer
        return False if findings.unresolved.is_known else None
    return None if findings.unknown is not None else False
