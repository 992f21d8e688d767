"""Warns of the end of partners' own certificates, and has ours take over on their last day.

The rules and the rows are `common.db.own_certificates`'. Any number of monitors may watch at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC

from common.db import certificates, events, orders, own_certificates
from common.db.own_certificates import EndingCertificate
from common.db.pool import Database
from common.db.session import Connection
from common.enrolment import changes
from common.logs import get_logger
from common.names import parse_enrollable

_log = get_logger("monitor.own_certificates")

_PERIOD_SECONDS = 60.0
_AT_ONCE = 50


class OwnCertificateWatch:
    """Warns of certificates that end. One instance per monitor, whose ``__main__`` runs `run` as a task."""

    def __init__(self, database: Database, *, on_event: Callable[[], None]) -> None:
        """Create the watch; `on_event` is called after an event was recorded, to start its delivery."""
        self._database = database
        self._on_event = on_event

    async def run(self) -> None:
        """Look at the certificates that are due, until cancelled.

        Raises: `DatabaseUnavailable`.
        """
        while True:
            while await self.check_once() == _AT_ONCE:
                pass
            await asyncio.sleep(_PERIOD_SECONDS)

    async def check_once(self) -> int:
        """Look at some certificates that are due, and return how many."""
        async with self._database.connection() as connection:
            due = await own_certificates.find_ending(connection, most=_AT_ONCE)
        for domain in due:
            async with self._database.transaction() as connection:
                await certificates.lock_domain(connection, domain)
                ending = await own_certificates.take_ending(connection, domain)
                if ending is not None:
                    await self._act(connection, ending)
            self._on_event()
        return len(due)

    async def _act(self, connection: Connection, ending: EndingCertificate) -> None:
        """Have ours take over, or be ordered where there is none, and record the warning that is due."""
        takes_over = ending.is_last_day and ending.has_replacement
        if takes_over:
            await changes.end_own_certificate(connection, ending.domain, ending.application_id)
            _log.info("our certificate takes over from the partner's", domain=ending.domain)
        elif not ending.has_replacement and ending.warns:
            with suppress(orders.NotRenewable):
                await orders.request_renewal(connection, ending.domain, ending.application_id)
        if ending.warns or takes_over:
            await _record(connection, ending, takes_over=takes_over)


async def _record(connection: Connection, ending: EndingCertificate, *, takes_over: bool) -> None:
    name = parse_enrollable(ending.domain)
    fields = {
        "serial": ending.serial,
        "certificate_expires_at": ending.not_after.astimezone(UTC).isoformat(),
        "days_left": ending.days_left,
        "replaced": takes_over,
    }
    await events.record(
        connection,
        events.NewEvent(ending.application_id, "domain.certificate_expiring", name.registrable, name.subdomain, fields),
    )
