"""Processing: a claimed batch, worked off item by item.

Each item is one transaction that holds the batch under its fence: what the item does and that it is done become true
together. After a crash, SIGKILL included, the next claim does the rest: no item is done twice or left out.
An item that fails for a reason of ours is tried again with the batch's claims, and after `MOST_FAILURES` counts as
failed, so that it does not stand in the way of the others for ever.
"""

from __future__ import annotations

from functools import partial

from common import monitored_changes
from common.actors import Actor, acting
from common.db import batches
from common.db.batches import Batch, Unwatch, Watch
from common.db.monitored_domains import MonitoredKey
from common.db.pool import Connection, Database
from common.logs import get_logger
from monitor.claims import retry_until_available

_log = get_logger("monitor.batches")

MOST_FAILURES = 5
_REMOVAL_FAILURES = {
    "absent": "Domain not monitored or already deleted",
    "not empty": "Monitored records remain for this domain",
}
_GIVEN_UP = "it could not be done, for reasons inside Frontage"


class Processing:
    """Performs claimed batches for a runner. It holds no state but the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def perform(self, batch: Batch) -> None:
        """Perform a claimed batch item by item, each in a transaction of its own, until it has ended.

        Raises: `FenceLost`, `DatabaseUnavailable`.
        """
        gives_up = batch.failures >= MOST_FAILURES
        while await retry_until_available(partial(self._step, batch, gives_up=gives_up)):
            gives_up = False
        _log.info("batch ended", batch=batch.id, application=batch.application_id)

    async def _step(self, batch: Batch, *, gives_up: bool) -> bool:
        """Do the next item, or end the batch if there is none, and return whether there may be more.

        With `gives_up` the item is recorded as failed without another try.
        """
        async with self._database.transaction() as connection:
            await batches.hold(connection, batch)
            item = await batches.next_item(connection, batch)
            if item is None:
                await batches.record_over(connection, batch)
                return False
            with acting(Actor("api", batch.application_id, batch.request_id or batch.id)):
                failure = _GIVEN_UP if gives_up else await self._do(connection, batch, item.request)
            await batches.record_outcome(connection, batch, item, failure=failure)
            return True

    async def _do(self, connection: Connection, batch: Batch, request: Watch | Unwatch) -> str | None:
        """Add or remove the monitored domain of one item, and return why that failed, or None."""
        key = MonitoredKey(batch.application_id, request.domain, request.subdomain)
        match request:
            case Watch(records=records, labels=labels):
                await monitored_changes.add(connection, key, records, labels)
                return None
            case Unwatch(only_if_empty=only_if_empty):
                outcome = await monitored_changes.remove(connection, key, only_if_empty=only_if_empty)
                return _REMOVAL_FAILURES.get(outcome)
