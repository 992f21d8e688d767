"""Retention: the sweep that erases what has had its time. Any number of monitors may sweep at once.

Released certificates go 7 days after their release (`common.db.certificates`), enrolments and the CA ledger's
entries once no limit counts them, former holders 30 days after they lost a name (`common.db.ownership`), batches 7 days
after they were submitted, events and their deliveries after 30, sharing links when they expire, edges a day after they
fell silent, the change feed's tombstones when every edge has long seen them (`common.db.feed`).
"""

from __future__ import annotations

import asyncio
from random import Random

from common.db import ca_ledger, certificates, edge_nodes, feed, ownership, retention, revocations, shares
from common.db.pool import Database
from common.errors import DatabaseUnavailable
from common.logs import get_logger

_log = get_logger("monitor.retention")

PERIOD_SECONDS = 600.0
_MOST_AT_ONCE = 1000


async def sweep_for_ever(database: Database, random: Random) -> None:
    """Sweep now and then, until cancelled; a sweep that meets an outage is made up for by the next."""
    while True:
        try:
            await sweep(database)
        except DatabaseUnavailable as error:
            _log.warning("retention sweep put off", error=str(error))
        await asyncio.sleep(PERIOD_SECONDS * random.uniform(0.5, 1.5))


async def sweep(database: Database) -> None:
    for erase in (
        certificates.erase_released,
        ownership.erase_old,
        retention.erase_enrolments,
        retention.erase_batches,
        retention.erase_events,
        shares.erase_expired,
        ca_ledger.erase_old,
        revocations.erase_done,
        edge_nodes.erase_departed,
    ):
        erased = _MOST_AT_ONCE
        while erased == _MOST_AT_ONCE:  # small transactions: each holds the change feed only for a moment
            async with database.transaction() as connection:
                erased = await erase(connection, most=_MOST_AT_ONCE)
    async with database.transaction() as connection:
        await feed.purge_tombstones(connection)
