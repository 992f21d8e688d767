"""Monitors killed with SIGKILL at every step and at random moments: no event lost, each under its one id."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import Process
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest
from standardwebhooks import Webhook

from bench.lab.sink import WebhookSink
from common.db.pool import Database
from common.secrets import Keyring

from . import dying, parts
from .parts import delivering, delivery_of, record, until_status

ROOT = Path(__file__).resolve().parents[3]
KILLS = 5
EVENTS_A_ROUND = 12


@asynccontextmanager
async def monitor(dsn: str, state_dir: Path, step: str) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", dying.__name__, dsn, str(state_dir), step, cwd=ROOT, stdout=asyncio.subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.parametrize("step", dying.STEPS)
async def test_monitor_killed_at_a_step_loses_nothing(
    database: Database, dsn: str, keyring: Keyring, sink: WebhookSink, tmp_path: Path, step: str
) -> None:
    secret = await parts.add_application(database, keyring, sink.url)
    event_id = await record(database)
    async with monitor(dsn, tmp_path, step) as process:
        assert await asyncio.wait_for(process.wait(), 30) == -signal.SIGKILL
    async with delivering(database, keyring), delivering(database, keyring):
        await until_status(database, event_id, "delivered")
    twice = step in ("posted", "note")  # it was sent, and nobody knew
    assert [received.headers["webhook-id"] for received in sink.deliveries] == [event_id] * (1 + twice)
    for received in sink.deliveries:
        Webhook(secret).verify(received.body, received.headers)
    assert (await delivery_of(database, event_id)).failures == 0


async def test_monitors_killed_at_random_moments_lose_nothing(
    database: Database, dsn: str, keyring: Keyring, sink: WebhookSink, tmp_path: Path
) -> None:
    random = Random(7)
    await parts.add_application(database, keyring, sink.url)
    event_ids: list[str] = []
    for _ in range(KILLS):
        async with monitor(dsn, tmp_path, dying.NEVER) as process:
            reached = len(sink.deliveries) + random.randint(1, EVENTS_A_ROUND - 1)
            for _ in range(EVENTS_A_ROUND):
                event_ids.append(await record(database))
            await sink.wait_for(reached, timeout_seconds=30)
            process.kill()
    async with delivering(database, keyring):
        for event_id in event_ids:
            await until_status(database, event_id, "delivered")
    times = Counter(received.headers["webhook-id"] for received in sink.deliveries)
    assert set(times) == set(event_ids)
    assert max(times.values()) <= 1 + KILLS
