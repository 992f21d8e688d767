"""Events as they are recorded: their numbers, their payloads, and which of them are on their way."""

from __future__ import annotations

import asyncio

import pytest

from api.cli.doctor.database import check_webhooks
from common.db import deliveries, events, shares, webhook_endpoints
from common.db.pool import Database
from common.secrets import Keyring
from tests.integration.expiry import erase

from . import parts
from .parts import APPLICATION, an_event, delivery_of, record

URL = "https://hooks.partner.example/frontage"


@pytest.fixture
async def partner(database: Database, keyring: Keyring) -> Database:
    await parts.add_application(database, keyring, URL)
    return database


async def listed(database: Database, application_id: str = APPLICATION) -> list[events.Event]:
    async with database.connection() as connection:
        return await events.list_events(connection, application_id, before=None, limit=100)


async def claim(database: Database, most: int = 100) -> list[deliveries.ClaimedDelivery]:
    async with database.transaction() as connection:
        return await deliveries.claim(connection, most=most, lease_seconds=10)


async def test_payload_holds_the_fields_and_the_sequence(partner: Database) -> None:
    data = {"records_propagated": [], "records_non_propagated": [{"type": "A", "host": "@"}]}
    event_id = await record(partner, an_event(subdomain="shop", user_id="u-7", data=data, connect_link="https://x/s"))
    [event] = await listed(partner)
    assert event.payload == {
        "id": event_id,
        "type": "domain.record_missing",
        "application_id": APPLICATION,
        "occurred_at": event.created_at.isoformat(timespec="milliseconds"),
        "domain": "customer.example",
        "subdomain": "shop",
        "sequence": 1,
        "user_id": "u-7",
        "data": data,
        "connect_link": "https://x/s",
    }


async def test_each_domain_is_numbered_without_gaps_even_by_rivals(partner: Database) -> None:
    await asyncio.gather(*(record(partner) for _ in range(12)))
    await asyncio.gather(*(record(partner, an_event(subdomain="shop")) for _ in range(3)))
    every = await listed(partner)
    assert [event.sequence for event in every if event.subdomain is None] == list(range(12, 0, -1))
    assert sorted(event.sequence or 0 for event in every if event.subdomain) == [1, 2, 3]


async def test_event_of_a_transaction_that_fails_never_happened(partner: Database) -> None:
    with pytest.raises(RuntimeError):  # noqa: PT012
        async with partner.transaction() as connection:
            await events.record(connection, an_event())
            raise RuntimeError
    await record(partner)
    assert [event.sequence for event in await listed(partner)] == [1]


async def test_application_without_webhook_has_events_and_no_deliveries(database: Database, keyring: Keyring) -> None:
    await parts.add_application(database, keyring, None)
    await record(database)
    [event] = await listed(database)
    assert event.delivery is None
    assert await claim(database) == []


async def test_restored_supersedes_the_missing_of_its_own_name_only(partner: Database) -> None:
    await parts.note_answer(partner)
    missing, elsewhere = await record(partner), await record(partner, an_event(subdomain="shop"))
    secured = await record(partner, an_event("domain.secure"))
    restored = await record(partner, an_event("domain.record_restored"))
    superseded = await delivery_of(partner, missing)
    assert (superseded.status, superseded.superseded_by) == ("superseded", restored)
    assert superseded.next_attempt_at is None
    assert {claimed.event_id for claimed in await claim(partner)} == {elsewhere, secured, restored}


async def test_missing_under_way_is_superseded_only_when_its_attempt_fails(partner: Database) -> None:
    entry = {"at": "2026-01-01T00:00:00Z", "status": 500, "error": "answered 500"}
    for outcome in ("delivered", "superseded"):
        await record(partner)
        [claimed] = await claim(partner)
        restored = await record(partner, an_event("domain.record_restored"))
        assert (await delivery_of(partner, claimed.event_id)).status == "pending"
        async with partner.transaction() as connection:
            if outcome == "delivered":
                await deliveries.record_delivered(connection, claimed, entry)
            else:
                await deliveries.record_failed(connection, claimed, entry, 5.0)
        assert (await delivery_of(partner, claimed.event_id)).status == outcome
        [of_restored] = await claim(partner)
        assert of_restored.event_id == restored
        async with partner.transaction() as connection:
            await deliveries.record_delivered(connection, of_restored, entry)


async def test_events_are_forgotten_after_their_days_and_numbers_go_on(partner: Database) -> None:
    old, young = await record(partner), await record(partner)
    async with partner.transaction() as connection:
        await connection.execute(
            f"update events set created_at = now() - interval '{events.KEPT_DAYS} days 1 hour' where id = '{old}'"
        )
        assert await erase(connection, "events") == 1
        assert await erase(connection, "events") == 0
    assert [event.id for event in await listed(partner)] == [young]
    assert [claimed.event_id for claimed in await claim(partner)] == [young]
    await record(partner)
    assert (await listed(partner))[0].sequence == 3


async def test_missing_superseded_under_a_lease_that_lapsed_is_settled_unsent(
    partner: Database, keyring: Keyring
) -> None:
    missing = await record(partner)
    await claim(partner)
    await record(partner, an_event("domain.record_restored"))
    async with partner.transaction() as connection:
        await connection.execute("update deliveries set lease_until = now() where superseded_by is not null")
    async with parts.delivering(partner, keyring, allowed=()):
        await parts.until_status(partner, missing, "superseded")
    assert (await delivery_of(partner, missing)).log == []


async def test_doctor_notes_webhooks_that_are_disabled_or_will_be(partner: Database) -> None:
    await record(partner)
    assert await check_webhooks(partner) == []
    async with partner.transaction() as connection:
        await webhook_endpoints.note_failure(connection, APPLICATION, "answered 500")
    assert await check_webhooks(partner) == []
    async with partner.transaction() as connection:
        await webhook_endpoints.warn(connection, APPLICATION)
    [warned] = await check_webhooks(partner)
    async with partner.transaction() as connection:
        await webhook_endpoints.disable(connection, APPLICATION)
    [disabled] = await check_webhooks(partner)
    assert "will be disabled at" in warned.text
    assert "is disabled since" in disabled.text
    assert f"frontage app set {APPLICATION} --webhook-url" in disabled.text


async def test_link_shows_its_records_until_it_expires(partner: Database) -> None:
    records = [{"type": "A", "host": "@", "value": "192.0.2.1", "ttl": 300}]
    async with partner.transaction() as connection:
        link = await shares.share_records(
            connection, application_id=APPLICATION, domain="customer.example", subdomain=None, records=records
        )
        share = await shares.get_share(connection, link)
        assert share is not None
        assert share.records == records
        assert await shares.get_share(connection, link[:-1]) is None
        assert await erase(connection, "shares") == 0
        await connection.execute("update shares set expires_at = now() - interval '1 second'")
        assert await shares.get_share(connection, link) is None
        assert await erase(connection, "shares") == 1
