"""Reports origins that edges cannot reach: one event for each application and origin when it begins, one at its end.

The rules and the rows are `common.db.origin_outages`'. Any number of monitors may watch; one of them checks at a time.
"""

from __future__ import annotations

import asyncio
from typing import Literal

from common.db import applications, events, locks, origin_outages
from common.db.events import EventType, NewEvent
from common.db.origin_outages import OriginOutage
from common.db.pool import Connection, Database
from common.enrolment.origins import Unreachable
from common.origin_faults import OriginIdentity
from common.origin_probe import OriginProbe
from common.urls import ApplicationUrl

_PERIOD_SECONDS = 5.0
_PROBED_AT_ONCE = 8


class OriginWatch:
    """Reports origins that edges cannot reach. One instance per monitor, whose ``__main__`` runs `run` as a task."""

    def __init__(self, database: Database, probe: OriginProbe) -> None:
        self._database = database
        self._probe = probe

    async def run(self) -> None:
        """Check outages every few seconds until cancelled.

        Raises: `DatabaseUnavailable`.
        """
        while True:
            await self.check_once()
            await asyncio.sleep(_PERIOD_SECONDS)

    async def check_once(self) -> None:
        """Note what edges report, record the events that are due, and probe origins that may be back."""
        async with self._database.transaction() as connection:
            if not await locks.try_hold(connection, "origins"):
                return
            for identity, fault in await origin_outages.read_failing(connection):
                await origin_outages.note_failing(connection, identity, _url(identity), fault)
        async with self._database.connection() as connection:
            unreported = await origin_outages.list_unreported(connection, most=_PROBED_AT_ONCE)
            unseen = await origin_outages.list_unseen(connection, most=_PROBED_AT_ONCE)
        await asyncio.gather(*map(self._report, unreported), *map(self._end_if_recovered, unseen))

    async def _report(self, outage: OriginOutage) -> None:
        """Record the event of an outage that a monitor sees too, or that edges alone have had for long."""
        if outage.lasted_seconds < origin_outages.ALONE_SECONDS and await self._answers(outage):
            return
        async with self._database.transaction() as connection:
            if await origin_outages.note_report(connection, outage):
                await _record(connection, outage, "domain.origin_failing")

    async def _end_if_recovered(self, outage: OriginOutage) -> None:
        """End an outage whose origin answers again."""
        answers = await self._answers(outage)
        async with self._database.transaction() as connection:
            if not answers:
                await origin_outages.note_still_failing(connection, outage)
            elif await origin_outages.end(connection, outage):
                await _record(connection, outage, "domain.origin_recovered")

    async def _answers(self, outage: OriginOutage) -> bool:
        """Return whether the origin answers a monitor; also if nothing leads there any more."""
        async with self._database.connection() as connection:
            application = await applications.get_application(connection, outage.application_id)
        if application is None or outage.example is None:
            return True
        try:
            await self._probe(f"{outage.origin}/", outage.example, application)
        except Unreachable:
            return False
        return True


def _url(identity: OriginIdentity) -> str:
    """Return what URLs of the origin begin with."""
    scheme: Literal["http", "https"] = "https" if identity.scheme == "https" else "http"
    return str(ApplicationUrl(scheme, identity.host, identity.port, ""))


async def _record(connection: Connection, outage: OriginOutage, kind: EventType) -> None:
    """Record the event of an outage that begins or ends."""
    fields = {
        "origin": outage.origin,
        "fault": outage.fault,
        "since": outage.since.isoformat(),
        "domains": outage.domains,
        "example": outage.example,
    }
    await events.record(connection, NewEvent(outage.application_id, kind, None, None, fields))
