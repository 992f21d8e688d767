"""Domains that an application has given up, and whether their DNS still leads to this service.

Such a record is a loose end: visitors read that there is nothing at the address, and who gets the cname target gets the
name with it. The list is what to tell customers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from common.db import ownership
from common.db.applications import Application
from common.db.pool import Database
from common.enrolment.domain_claims import DomainClaims
from common.names import parse_enrollable

MOST_LISTED = 50
"""Names that are asked about for one answer."""
_AT_ONCE = 10


@dataclass(frozen=True, slots=True)
class EndedDomain:
    """A name that the application gave up. `leads_here`: None where its DNS could not be asked."""

    domain: str
    ended_at: datetime
    leads_here: bool | None


@dataclass(frozen=True, slots=True)
class EndedDomains:
    """Lists what applications gave up. One instance per process."""

    database: Database
    claims: DomainClaims

    async def list_part(self, application: Application, *, after: str, limit: int) -> list[EndedDomain]:
        """Return the names given up within `REMEMBERED_DAYS` that are not enrolled, by name, each asked about now."""
        async with self.database.connection() as connection:
            found = await ownership.list_given_up(connection, application.id, after=after, most=limit)
        turns = asyncio.Semaphore(_AT_ONCE)

        async def ask(each: ownership.GivenUp) -> EndedDomain:
            async with turns:
                return EndedDomain(each.domain, each.released_at, await self._leads_here(application, each.domain))

        listed: Sequence[EndedDomain] = await asyncio.gather(*map(ask, found))
        return list(listed)

    async def _leads_here(self, application: Application, domain: str) -> bool | None:
        async with self.claims.resolver.open_pass(application.id) as questions:
            findings = await self.claims.find_eligibility(
                parse_enrollable(domain), application.cname_target, within=questions
            )
        if findings.unresolved is not None and not findings.unresolved.is_known:
            return None
        return findings.leads_here
