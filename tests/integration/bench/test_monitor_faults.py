"""The fault run of the monitor does not wait for retries."""

from __future__ import annotations

from pathlib import Path

from bench.monitor_faults.notifications import make_deliveries_due
from common.db import deliveries, webhook_endpoints
from common.db.deliveries import ClaimedDelivery
from common.db.pool import Database
from common.secrets import load_keyring
from tests.integration.webhooks.parts import APPLICATION, add_application, record


async def claim(database: Database) -> list[ClaimedDelivery]:
    async with database.transaction() as connection:
        return await deliveries.claim(connection, most=1, lease_seconds=10.0)


async def test_a_retry_made_due_is_claimed_at_once(database: Database, tmp_path: Path) -> None:
    await add_application(
        database, load_keyring(tmp_path / "master.key", create=True), "https://partner.example/webhook"
    )
    event_id = await record(database)
    [claimed] = await claim(database)
    async with database.transaction() as connection:
        await webhook_endpoints.note_failure(connection, APPLICATION, "answered 500")
        await deliveries.record_failed(connection, claimed, {"error": "answered 500"}, 300.0)
    assert await claim(database) == []
    assert await make_deliveries_due(database)
    [claimed] = await claim(database)
    assert claimed.event_id == event_id
    async with database.transaction() as connection:
        await deliveries.record_delivered(connection, claimed, {"error": None})
    assert not await make_deliveries_due(database)
