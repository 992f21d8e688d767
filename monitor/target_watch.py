"""Notes where cname targets lead, so that one which has led elsewhere for long reserves nothing.

The rules and the rows are `common.db.target_sightings`'. Any number of monitors may watch at the same time.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict

from common.db import target_sightings
from common.db.pool import Database
from common.dns import Resolver
from common.enrolment.eligibility import ServiceTargets, find_target_lead

_PERIOD_SECONDS = 300.0
_AT_ONCE = 20


class TargetWatch:
    """Notes where cname targets lead. One instance per monitor, whose ``__main__`` runs `run` as a task."""

    def __init__(self, database: Database, resolver: Resolver, service_targets: ServiceTargets) -> None:
        self._database = database
        self._resolver = resolver
        self._service_targets = service_targets

    async def run(self) -> None:
        """Check the targets that are due, until cancelled.

        Raises: `DatabaseUnavailable`.
        """
        while True:
            while await self.check_once() == _AT_ONCE:
                pass
            await asyncio.sleep(_PERIOD_SECONDS)

    async def check_once(self) -> int:
        """Check a few targets that are due, and return how many."""
        async with self._database.transaction() as connection:
            due = await target_sightings.claim(connection, most=_AT_ONCE)
        leads = await asyncio.gather(*map(self._find_lead, due))
        seen: defaultdict[bool | None, list[str]] = defaultdict(list)
        for target, is_here in zip(due, leads, strict=True):
            seen[is_here].append(target)
        async with self._database.transaction() as connection:
            await target_sightings.note(connection, here=seen[True], elsewhere=seen[False], unknown=seen[None])
        return len(due)

    async def _find_lead(self, target: str) -> bool | None:
        """Return whether the target leads here; None when that is unknown."""
        async with self._resolver.open_pass() as questions:
            return await find_target_lead(questions, target, self._service_targets)
