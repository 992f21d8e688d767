"""The monitor as a process delivers events, and its death loses none."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

from aiohttp import web
from standardwebhooks import Webhook

from bench.lab.sink import ReceivedRequest, WebhookSink
from common.db.pool import Database
from common.secrets import load_keyring
from tests.integration.monitor.test_role import monitor

from . import parts
from .parts import record, until_status


async def test_events_of_a_monitor_killed_in_the_middle_arrive_by_another(
    database: Database, dsn: str, tmp_path: Path
) -> None:
    keyring = load_keyring(tmp_path / "master.key", create=True)
    variables = {"DATABASE_URL": dsn, "ALLOW_PRIVATE_ADDRESSES": "127.0.0.0/8"}
    never = asyncio.Event()

    async def hang(_: web.Request, __: ReceivedRequest) -> web.StreamResponse:
        await never.wait()
        raise AssertionError

    async with WebhookSink.serve() as sink:
        secret = await parts.add_application(database, keyring, sink.url)
        await parts.note_answer(database)
        sink.answer_by(hang)
        event_ids = [await record(database) for _ in range(3)]
        async with monitor(tmp_path, **variables) as doomed:
            await sink.wait_for(3, timeout_seconds=60)
            doomed.kill()
        sink.answer_with(204)
        async with monitor(tmp_path, **variables):
            for event_id in event_ids:
                await until_status(database, event_id, "delivered", seconds=60)
    times = Counter(delivery.headers["webhook-id"] for delivery in sink.deliveries)
    assert times == dict.fromkeys(event_ids, 2)
    for delivery in sink.deliveries:
        Webhook(secret).verify(delivery.body, delivery.headers)
