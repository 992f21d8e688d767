"""No application keeps another's webhooks waiting: real Postgres, real sockets."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack

from aiohttp import web

from bench.lab.sink import ReceivedRequest, WebhookSink
from common.db import deliveries, webhook_endpoints
from common.db.application_secrets import webhook_secret_identity
from common.db.pool import Database
from common.secrets import Keyring

from . import parts
from .parts import APPLICATION, OTHER_APPLICATION, an_event, delivering, record

HANGING = 300
EVENTS_EACH = 15
WITHIN_SECONDS = 1.0


async def add_hanging(database: Database, keyring: Keyring, url: str) -> None:
    """Applications with a backlog, whose endpoint has never answered."""
    ids = [f"hanging-{number}" for number in range(HANGING)]
    secrets = [keyring.seal(b"whsec_" + 32 * b"A", webhook_secret_identity(each)) for each in ids]
    async with database.transaction() as connection:
        await connection.execute(
            "insert into applications (id, name, cname_target, client_secret, webhook_secret, webhook_url)"
            " select id, id, id, '', secret, $3 from unnest($1::text[], $2::bytea[]) as hanging (id, secret)",
            ids,
            secrets,
            url,
        )
        await connection.execute(
            "insert into webhook_endpoints (application_id, due_at) select unnest($1::text[]), now()", ids
        )
        await connection.execute(
            """
            with added as (
                insert into events (application_id, type, fields)
                select application_id, 'webhook.test', '{}' from webhook_endpoints, generate_series(1, $1)
                returning id, application_id
            )
            insert into deliveries (event_id, application_id, due_at) select id, application_id, now() from added
            """,
            EVENTS_EACH,
        )


async def test_good_endpoint_is_served_at_once_beside_hundreds_that_hang(
    database: Database, keyring: Keyring, sink: WebhookSink
) -> None:
    never = asyncio.Event()

    async def hang(_: web.Request, __: ReceivedRequest) -> web.StreamResponse:
        await never.wait()
        return web.Response(status=204)

    async with AsyncExitStack() as stack:
        slow = await stack.enter_async_context(WebhookSink.serve())
        slow.answer_by(hang)
        await parts.add_application(database, keyring, sink.url)
        await add_hanging(database, keyring, slow.url)
        runner = await stack.enter_async_context(delivering(database, keyring, hurry=False))
        await slow.wait_for(1)
        waits = []
        for number in range(10):
            began = time.monotonic()
            await record(database)
            runner.wake()
            await sink.wait_for(number + 1)
            waits.append(time.monotonic() - began)
        never.set()
    print(f"a good endpoint beside {HANGING} that hang waits {sorted(waits)[5]:.2f} s, {max(waits):.2f} s at most")
    assert sorted(waits)[5] <= WITHIN_SECONDS


async def test_failing_endpoint_rests_as_long_as_its_attempts_take(database: Database, keyring: Keyring) -> None:
    await parts.add_application(database, keyring, "http://127.0.0.1:9/")
    for _ in range(3):
        await record(database)
    for failures in range(1, 3):
        async with database.transaction() as connection:
            [claimed] = await deliveries.claim(connection, most=10, lease_seconds=60)
        async with database.transaction() as connection:
            await webhook_endpoints.note_failure(connection, APPLICATION, "no answer", seconds=15)
            await deliveries.record_failed(connection, claimed, {"error": "no answer"}, 5.0)
        async with database.transaction() as connection:
            assert await deliveries.claim(connection, most=10, lease_seconds=60) == []
        async with database.connection() as connection:
            due = await deliveries.next_due_seconds(connection)
        assert due is not None
        assert 15 * failures - 1 < due <= 15 * failures
        await parts.fetch(database, "update webhook_endpoints set resumes_at = now(), due_at = now()")
    async with database.transaction() as connection:
        [claimed] = await deliveries.claim(connection, most=10, lease_seconds=60)
    async with database.transaction() as connection:
        await deliveries.record_delivered(connection, claimed, {"error": None})
    async with database.connection() as connection:
        due = await deliveries.next_due_seconds(connection)
    assert due is not None
    assert due <= 5


async def test_endpoints_take_turns_whatever_their_backlogs(database: Database, keyring: Keyring) -> None:
    for application_id, count in ((APPLICATION, 20), (OTHER_APPLICATION, 3)):
        await parts.add_application(database, keyring, "http://127.0.0.1:9/", application_id)
        await parts.note_answer(database, application_id)
        for _ in range(count):
            await record(database, an_event(application_id=application_id))
    async with database.transaction() as connection:
        claimed = await deliveries.claim(connection, most=4, lease_seconds=60)
    assert sorted(each.application_id for each in claimed) == [APPLICATION] * 2 + [OTHER_APPLICATION] * 2


async def test_delivery_added_while_a_claim_runs_is_not_overlooked(database: Database, keyring: Keyring) -> None:
    """Its transaction began before the claim and ends after it."""
    await parts.add_application(database, keyring, "http://127.0.0.1:9/")
    await parts.note_answer(database)
    await record(database)
    async with database.transaction() as connection:
        await deliveries.add(connection, await insert_event(database), APPLICATION)
        async with database.transaction() as claiming:
            assert len(await deliveries.claim(claiming, most=10, lease_seconds=60)) == 1
    async with database.transaction() as connection:
        assert len(await deliveries.claim(connection, most=10, lease_seconds=60)) == 1


async def insert_event(database: Database) -> str:
    [row] = await parts.fetch(
        database,
        "insert into events (application_id, type, fields) values ($1, 'webhook.test', '{}') returning id",
        APPLICATION,
    )
    event_id: str = row["id"]
    return event_id
