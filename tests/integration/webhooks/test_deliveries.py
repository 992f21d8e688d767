"""Deliveries from the row to a real receiver: signed, retried, held, given up, and never lost."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web
from standardwebhooks import Webhook, WebhookVerificationError

from api.rules import application_tokens as minting
from bench.lab.sink import ReceivedRequest, WebhookSink
from common.db import deliveries, events, webhook_endpoints
from common.db.application_secrets import rotate_webhook_secret, webhook_secret_identity
from common.db.applications import update_application
from common.db.deliveries import MOST_AT_ONCE
from common.db.migrate import migrate
from common.db.pool import Database, open_pool
from common.db.webhook_endpoints import Endpoint
from common.errors import FenceLost
from common.postgres import EmbeddedPostgres, running_dsn
from common.secrets import Keyring
from monitor.webhooks.schedule import MOST_ATTEMPTS

from . import parts
from .parts import APPLICATION, OTHER_APPLICATION, an_event, delivering, delivery_of, record, until_status


@pytest.fixture
async def secret(database: Database, keyring: Keyring, sink: WebhookSink) -> str:
    return await parts.add_application(database, keyring, sink.url + "/hooks")


async def endpoint_of(database: Database, application_id: str = APPLICATION) -> Endpoint:
    async with database.connection() as connection:
        return await webhook_endpoints.get_endpoint(connection, application_id)


async def execute(database: Database, statement: str) -> None:
    async with database.transaction() as connection:
        await connection.execute(statement)


async def test_event_arrives_signed_with_its_payload(
    database: Database, keyring: Keyring, sink: WebhookSink, secret: str
) -> None:
    event_id = await record(database, an_event(subdomain="shop", user_id="u-1"))
    async with delivering(database, keyring):
        [received] = await sink.wait_for(1)
        await until_status(database, event_id, "delivered")
    assert received.headers["webhook-id"] == event_id
    payload = Webhook(secret).verify(received.body, received.headers)
    occurred_at = (await delivery_of(database, event_id)).created_at
    assert payload == {
        "id": event_id,
        "type": "domain.record_missing",
        "application_id": APPLICATION,
        "occurred_at": occurred_at.isoformat(timespec="milliseconds"),
        "domain": parts.DOMAIN,
        "subdomain": "shop",
        "sequence": 1,
        "user_id": "u-1",
    }
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(received.body.replace("shop", "shap"), received.headers)
    [attempt] = (await delivery_of(database, event_id)).log
    assert (attempt["status"], attempt["error"]) == (204, None)


async def test_both_secrets_sign_during_a_rotation_and_then_the_new_one_alone(
    database: Database, keyring: Keyring, sink: WebhookSink, secret: str
) -> None:
    new = minting.mint_webhook_secret()
    sealed = keyring.seal(new.encode(), webhook_secret_identity(APPLICATION))
    async with database.transaction() as connection:
        assert await rotate_webhook_secret(connection, APPLICATION, sealed, timedelta(hours=24))
    async with delivering(database, keyring):
        await record(database)
        [received] = await sink.wait_for(1)
        Webhook(secret).verify(received.body, received.headers)
        Webhook(new).verify(received.body, received.headers)
        assert len(received.headers["webhook-signature"].split(" ")) == 2
        await execute(database, "update applications set previous_webhook_until = now()")
        await record(database)
        last = (await sink.wait_for(2))[-1]
    Webhook(new).verify(last.body, last.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(last.body, last.headers)


async def test_failures_are_retried_under_the_same_id_until_one_succeeds(
    database: Database, keyring: Keyring, sink: WebhookSink, secret: str
) -> None:
    left = 4

    async def fail_four_times(_: web.Request, __: ReceivedRequest) -> web.StreamResponse:
        nonlocal left
        left -= 1
        return web.Response(status=204 if left < 0 else 500)

    sink.answer_by(fail_four_times)
    event_id = await record(database)
    async with delivering(database, keyring):
        received = await sink.wait_for(5)
        await until_status(database, event_id, "delivered")
    assert {delivery.headers["webhook-id"] for delivery in received} == {event_id}
    assert len({delivery.body for delivery in received}) == 1
    for delivery in received:
        Webhook(secret).verify(delivery.body, delivery.headers)
    assert [attempt["status"] for attempt in (await delivery_of(database, event_id)).log] == [500, 500, 500, 500, 204]
    assert (await endpoint_of(database)).failing_since is None


async def test_attempt_counts_once_though_its_commit_was_not_answered(database: Database, secret: str) -> None:
    """The write is repeated then, by the same claim."""
    event_id = await record(database)
    async with database.transaction() as connection:
        (claimed,) = await deliveries.claim(connection, most=1, lease_seconds=60)

    async def write() -> None:
        async with database.transaction() as connection:
            await webhook_endpoints.note_failure(connection, APPLICATION, "500")
            await deliveries.record_failed(connection, claimed, {"at": "now", "status": 500, "error": "500"}, 5.0)

    await write()
    before = await delivery_of(database, event_id)
    with pytest.raises(FenceLost):
        await write()
    assert await delivery_of(database, event_id) == before
    assert [attempt["status"] for attempt in before.log] == [500]


async def test_used_up_schedule_ends_as_failed_and_a_replay_begins_anew(
    database: Database, keyring: Keyring, sink: WebhookSink, secret: str
) -> None:
    sink.answer_with(500)
    event_id = await record(database)
    async with delivering(database, keyring):
        await until_status(database, event_id, "failed")
        assert len(sink.deliveries) == MOST_ATTEMPTS
        sink.answer_with(204)
        async with database.transaction() as connection:
            await deliveries.replay(connection, event_id, APPLICATION)
        await until_status(database, event_id, "delivered")
    assert {delivery.headers["webhook-id"] for delivery in sink.deliveries} == {event_id}
    assert len((await delivery_of(database, event_id)).log) == MOST_ATTEMPTS + 1


async def test_first_retry_comes_after_five_seconds_and_little_more(
    database: Database, keyring: Keyring, sink: WebhookSink, secret: str
) -> None:
    sink.answer_with(500)
    event_id = await record(database)
    async with delivering(database, keyring, hurry=False):
        await parts.until_failures(database, event_id, 1)
    delivery = await delivery_of(database, event_id)
    assert delivery.next_attempt_at is not None
    waits = delivery.next_attempt_at - delivery.created_at
    assert timedelta(seconds=5) <= waits < timedelta(seconds=10)
    assert len(sink.deliveries) == 1


@pytest.mark.parametrize(("text", "seconds"), [("3600", 3600), ("1000000", 86_400), ("0", 1)])
async def test_retry_after_replaces_the_next_delay(
    database: Database, keyring: Keyring, sink: WebhookSink, secret: str, text: str, seconds: int
) -> None:
    sink.answer_with(429, {"Retry-After": text})
    event_id = await record(database)
    async with delivering(database, keyring, hurry=False):
        await parts.until_failures(database, event_id, 1)
    [row] = await parts.fetch(
        database,
        "select extract(epoch from due_at - clock_timestamp())::float8 as left from deliveries where event_id = $1",
        event_id,
    )
    assert seconds - 60 < row["left"] <= seconds


async def test_gone_disables_the_endpoint_and_setting_the_url_enables_it(
    database: Database, keyring: Keyring, sink: WebhookSink, secret: str
) -> None:
    sink.answer_with(410)
    gone = await record(database)
    async with delivering(database, keyring):
        await parts.until_failures(database, gone, 1)
        assert (await endpoint_of(database)).disabled_at is not None
        held = await record(database)
        await parts.settle(database)
        assert len(sink.deliveries) == 1
        assert (await delivery_of(database, held)).status == "pending"
        sink.answer_with(204)
        async with database.transaction() as connection:
            await update_application(connection, APPLICATION, webhook_url=sink.url + "/new")
        await until_status(database, gone, "delivered")
        await until_status(database, held, "delivered")
    assert [delivery.path for delivery in sink.deliveries] == ["/hooks", "/new", "/new"]
    assert await endpoint_of(database) == Endpoint()


async def test_days_of_failure_warn_first_and_then_disable(
    database: Database, keyring: Keyring, sink: WebhookSink, secret: str
) -> None:
    sink.answer_with(500)
    async with delivering(database, keyring, hurry=False):

        async def fail_once_more() -> Endpoint:
            await parts.until_failures(database, await record(database), 1)
            return await endpoint_of(database)

        assert (await fail_once_more()).warned_at is None
        await execute(database, "update webhook_endpoints set failing_since = now() - interval '3 days 1 hour'")
        warned = await fail_once_more()
        assert warned.warned_at is not None
        assert warned.disabled_at is None
        await execute(
            database,
            "update webhook_endpoints set failing_since = now() - interval '5 days 1 hour',"
            " warned_at = now() - interval '2 days'",
        )
        assert (await fail_once_more()).disabled_at is not None


async def test_failures_far_apart_are_not_one_failure(
    database: Database, keyring: Keyring, sink: WebhookSink, secret: str
) -> None:
    sink.answer_with(500)
    async with delivering(database, keyring, hurry=False):
        await parts.until_failures(database, await record(database), 1)
        await execute(
            database,
            "update webhook_endpoints set failing_since = now() - interval '9 days',"
            " warned_at = now() - interval '6 days', last_failed_at = now() - interval '2 days'",
        )
        await parts.until_failures(database, await record(database), 1)
    endpoint = await endpoint_of(database)
    assert (endpoint.warned_at, endpoint.disabled_at) == (None, None)


async def test_restored_is_sent_and_the_missing_it_supersedes_is_not_sent_again(
    database: Database, keyring: Keyring, sink: WebhookSink, secret: str
) -> None:
    sink.answer_with(500)
    missing = await record(database)
    async with delivering(database, keyring, hurry=False):
        await parts.until_failures(database, missing, 1)
        sink.answer_with(204)
        restored = await record(database, an_event("domain.record_restored"))
        await until_status(database, restored, "delivered")
        assert (await delivery_of(database, missing)).status == "superseded"
        await parts.settle(database)
        assert [delivery.headers["webhook-id"] for delivery in sink.deliveries] == [missing, restored]
        async with database.transaction() as connection:
            await deliveries.replay(connection, missing, APPLICATION)
        await until_status(database, missing, "delivered")


async def test_missing_superseded_in_the_middle_of_its_attempt_is_not_tried_again(
    database: Database, keyring: Keyring, sink: WebhookSink, secret: str
) -> None:
    may_answer = asyncio.Event()

    async def fail_late(_: web.Request, delivery: ReceivedRequest) -> web.StreamResponse:
        if "record_missing" in delivery.body:
            await may_answer.wait()
            return web.Response(status=500)
        return web.Response(status=204)

    sink.answer_by(fail_late)
    await parts.note_answer(database)
    missing = await record(database)
    async with delivering(database, keyring):
        await sink.wait_for(1)
        restored = await record(database, an_event("domain.record_restored"))
        await until_status(database, restored, "delivered")
        may_answer.set()
        await until_status(database, missing, "superseded")
    assert len(sink.deliveries) == 2


async def test_slow_partner_holds_a_few_of_its_own_and_nobody_elses(
    database: Database, keyring: Keyring, sink: WebhookSink, secret: str
) -> None:
    """Two monitors, a partner that hangs with a backlog, and one that answers."""
    hanging = asyncio.Event()

    async def hang(_: web.Request, __: ReceivedRequest) -> web.StreamResponse:
        await hanging.wait()
        return web.Response(status=204)

    async with WebhookSink.serve() as slow:
        slow.answer_by(hang)
        await parts.add_application(database, keyring, slow.url, OTHER_APPLICATION)
        await parts.note_answer(database, OTHER_APPLICATION)
        backlog = [await record(database, an_event(application_id=OTHER_APPLICATION)) for _ in range(40)]
        async with delivering(database, keyring), delivering(database, keyring):
            await slow.wait_for(MOST_AT_ONCE)
            async with asyncio.timeout(12):
                for number in range(30):
                    await record(database)
                    await sink.wait_for(number + 1)
            assert len(slow.deliveries) == MOST_AT_ONCE
            hanging.set()
            for event_id in backlog:
                await until_status(database, event_id, "delivered", application_id=OTHER_APPLICATION)
    assert Counter(delivery.headers["webhook-id"] for delivery in slow.deliveries) == Counter(backlog)


async def test_room_of_an_endpoint_is_never_given_twice(database: Database, secret: str) -> None:
    """Sixteen monitors that claim at the same moment."""
    for _ in range(60):
        await record(database)
    await parts.note_answer(database)

    async def claim() -> int:
        async with database.transaction() as connection:
            return len(await deliveries.claim(connection, most=3, lease_seconds=10))

    claimed = 0
    for _ in range(3):
        claimed += sum(await asyncio.gather(*(claim() for _ in range(16))))
    assert claimed == MOST_AT_ONCE


async def test_room_is_used_as_soon_as_it_is_free(
    database: Database, keyring: Keyring, sink: WebhookSink, secret: str
) -> None:
    for _ in range(3 * MOST_AT_ONCE):
        await record(database)
    async with delivering(database, keyring, hurry=False, poll_seconds=3600):
        await sink.wait_for(3 * MOST_AT_ONCE)


async def test_failing_endpoint_is_tried_one_delivery_at_a_time(
    database: Database, keyring: Keyring, sink: WebhookSink, secret: str
) -> None:
    at_once = most = 0

    async def fail(_: web.Request, __: ReceivedRequest) -> web.StreamResponse:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.02)
        at_once -= 1
        return web.Response(status=500)

    sink.answer_by(fail)
    first = await record(database)
    async with delivering(database, keyring, hurry=False), delivering(database, keyring, hurry=False):
        await parts.until_failures(database, first, 1)
        most = 0
        for _ in range(20):
            await record(database)
        await sink.wait_for(21)
    assert most == 1


async def test_postgres_that_crashes_in_the_middle_of_an_attempt_loses_nothing(
    keyring: Keyring, tmp_path: Path
) -> None:
    with EmbeddedPostgres(tmp_path / "postgres"):
        dsn = running_dsn(tmp_path / "postgres")
        assert dsn is not None
        await migrate(dsn)
        async with AsyncExitStack() as stack:
            database = await stack.enter_async_context(open_pool(dsn, size=4, application_name="test"))
            sink = await stack.enter_async_context(WebhookSink.serve())
            await parts.add_application(database, keyring, sink.url)

            async def crash(_: web.Request, __: ReceivedRequest) -> web.StreamResponse:
                sink.answer_with(204)
                [backend] = await parts.fetch(database, "select pg_backend_pid() as pid")
                os.kill(backend["pid"], signal.SIGKILL)
                return web.Response(status=204)

            sink.answer_by(crash)
            event_ids = [await record(database) for _ in range(5)]
            async with delivering(database, keyring):
                for event_id in event_ids:
                    await until_status(database, event_id, "delivered")
            assert {delivery.headers["webhook-id"] for delivery in sink.deliveries} == set(event_ids)


async def test_webhook_url_at_a_private_address_is_not_called(
    database: Database, keyring: Keyring, sink: WebhookSink, secret: str
) -> None:
    event_id = await record(database)
    async with delivering(database, keyring, hurry=False, allowed=()):
        await parts.until_failures(database, event_id, 1)
    assert sink.deliveries == []
    delivery = await delivery_of(database, event_id)
    assert delivery.last_error == "its address is none that webhooks may be sent to"


async def test_deliveries_wait_while_there_is_no_url(
    database: Database, keyring: Keyring, sink: WebhookSink, secret: str
) -> None:
    event_id = await record(database)
    async with database.transaction() as connection:
        await update_application(connection, APPLICATION, webhook_url=None)
    async with delivering(database, keyring):
        await parts.settle(database)
        assert sink.deliveries == []
        async with database.transaction() as connection:
            await update_application(connection, APPLICATION, webhook_url=sink.url)
        await until_status(database, event_id, "delivered")


async def test_event_recorded_wakes_at_once_when_its_recorder_says_so(
    database: Database, keyring: Keyring, sink: WebhookSink, secret: str
) -> None:
    async with delivering(database, keyring, hurry=False, poll_seconds=3600) as runner:
        async with database.transaction() as connection:
            await events.record(connection, an_event())
        runner.wake()
        await sink.wait_for(1)
