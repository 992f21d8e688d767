"""Batches under every kind of death: each item once, none left out, nothing in another's way."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from common import monitored_changes
from common.db import batches
from common.db.batches import Batch, InvalidItem, NewItem, Unwatch, Watch
from common.db.migrate import migrate
from common.db.monitored_domains import Labels, MonitoredKey
from common.db.pool import Connection, Database, open_pool
from common.errors import DatabaseUnavailable, FenceLost
from common.postgres import EmbeddedPostgres, running_dsn
from common.records import Record
from common.secrets import load_keyring
from monitor.batches.processing import MOST_FAILURES, Processing
from monitor.claims import Runner
from tests.children import ROOT, clean_environment
from tests.integration.expiry import erase
from tests.waiting import until

from . import dying_batch, parts
from .parts import APPLICATION, OTHER_APPLICATION

RECORD = Record("A", "@", "192.0.2.1", 300)
OTHER = Record("A", "@", "192.0.2.2", 300)


@pytest.fixture
async def shop(database: Database) -> Database:
    await parts.add_application(database)
    await parts.add_application(database, OTHER_APPLICATION)
    return database


def watch(number: int, record: Record = RECORD) -> Watch:
    return Watch(f"d{number}.test", None, (record,), Labels(user_id=f"user-{number}"))


def unwatch(number: int) -> Unwatch:
    return Unwatch(f"d{number}.test", None)


async def submit(database: Database, items: list[NewItem], *, application_id: str = APPLICATION) -> str:
    kind: Any = "delete" if isinstance(items[0], Unwatch) else "create"
    async with database.transaction() as connection:
        return await batches.submit(connection, application_id, kind, items)


async def add_domains(database: Database, count: int) -> None:
    async with database.transaction() as connection:
        for number in range(count):
            await monitored_changes.add(connection, MonitoredKey(APPLICATION, f"d{number}.test"), (RECORD,), Labels())


async def progress(database: Database, batch_id: str) -> batches.BatchProgress:
    async with database.connection() as connection:
        found = await batches.find(connection, batch_id)
    assert found is not None
    return found


async def until_over(database: Database, *batch_ids: str, seconds: float = 30) -> None:
    async def is_over() -> bool:
        return all([(await progress(database, batch_id)).is_over for batch_id in batch_ids])

    await until(is_over, seconds=seconds)


async def watched(database: Database) -> list[str]:
    rows = await parts.fetch(database, "select domain from monitored_domains order by length(domain), domain")
    return [row["domain"] for row in rows]


@asynccontextmanager
async def working(
    database: Database, *, processing: Processing | None = None, monitors: int = 1
) -> AsyncIterator[None]:
    perform = (processing or Processing(database)).perform
    runners = [
        Runner(database, batches, perform, concurrency=4, random=parts.HastyRandom(), poll_seconds=0.05)
        for _ in range(monitors)
    ]
    async with parts.running(*runners):
        yield


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", [1, 2, 3, 5, 6])
async def test_killed_monitor_leaves_every_item_to_be_done_once(
    shop: Database, dsn: str, number: int, moment: str
) -> None:
    """Done twice, a deletion would fail for want of the domain; left out, the domain would still be there."""
    await add_domains(shop, 5)
    batch_id = await submit(shop, [unwatch(number) for number in range(4)])
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", dying_batch.__name__, dsn, str(number), moment, cwd=ROOT
    )
    try:
        assert await asyncio.wait_for(process.wait(), 30) == -signal.SIGKILL
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    async with working(shop, monitors=2):
        await until_over(shop, batch_id)
    assert await progress(shop, batch_id) == batches.BatchProgress(APPLICATION, True, 4, ())
    assert await watched(shop) == ["d4.test"]


async def test_monitors_killed_at_random_moments_do_each_item_once(shop: Database, dsn: str, tmp_path: Path) -> None:
    """Real monitors. Each domain gets two sets of records, so it is changed once exactly if each item is done once."""
    await count_edits(shop)
    load_keyring(tmp_path / "master.key", create=True)
    count, chance = 100, Random(7)
    items: list[NewItem] = [watch(number, record) for number in range(count) for record in (RECORD, OTHER)]
    batch_id = await submit(shop, items)
    for _ in range(4):
        process = await start_monitor(dsn, tmp_path)
        enough = min(len(items), (await progress(shop, batch_id)).succeeded + chance.randrange(1, 40))
        await until(partial(has_done, shop, batch_id, enough))
        os.kill(process.pid, signal.SIGKILL)
        await process.communicate()
        async with shop.transaction() as connection:  # its lease, without the waiting
            await connection.execute("update batches set lease_until = now() where lease_until is not null")
    async with working(shop, monitors=2):
        await until_over(shop, batch_id)
    assert await progress(shop, batch_id) == batches.BatchProgress(APPLICATION, True, 2 * count, ())
    rows = await parts.fetch(
        shop,
        "select dns_records->0->>'value' as value, (select count(*) from edits where edits.id = monitored_domains.id)"
        " from monitored_domains",
    )
    assert [(row["value"], row["count"]) for row in rows] == [(OTHER.value, 1)] * count


async def count_edits(shop: Database) -> None:
    """From now on each change of a domain's records leaves a row in ``edits``."""
    async with shop.transaction() as connection:
        await connection.execute(
            """
            create table edits (id text);
            create function note_edit() returns trigger language plpgsql as $$
                begin insert into edits values (new.id); return null; end
            $$;
            create trigger note_edit after update of dns_records on monitored_domains
                for each row execute function note_edit();
            """
        )


async def test_what_a_crashed_server_forgot_of_a_batch_is_done_again_and_what_was_over_stays_so(tmp_path: Path) -> None:
    """Done twice, a deletion would fail for want of the domain; left out, the domain would still be there."""
    with EmbeddedPostgres(tmp_path / "postgres"):
        dsn = running_dsn(tmp_path / "postgres")
        assert dsn is not None
        await migrate(dsn)
        async with open_pool(dsn, size=4, application_name="test") as shop:
            await parts.add_application(shop)
            await add_domains(shop, 300)
            batch_id = await submit(shop, [unwatch(number) for number in range(300)])
            async with working(shop):
                await until(partial(has_done, shop, batch_id, 100))
                await crash_server(shop)
                await until_over(shop, batch_id)
            await crash_server(shop)
            assert await progress(shop, batch_id) == batches.BatchProgress(APPLICATION, True, 300, ())
            assert await watched(shop) == []


async def crash_server(database: Database) -> None:
    """A server that loses a backend to kill -9 drops every session and all that is not on disk, and recovers."""
    [backend] = await parts.fetch(database, "select pg_backend_pid() as pid")
    os.kill(backend["pid"], signal.SIGKILL)
    await until(partial(parts.answers, database))


async def has_done(database: Database, batch_id: str, count: int) -> bool:
    return (await progress(database, batch_id)).succeeded >= count


async def start_monitor(dsn: str, state_dir: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "monitor"),
        cwd=ROOT,
        env=clean_environment(
            FRONTAGE_STATE_DIR=str(state_dir), FRONTAGE_DATABASE_URL=dsn, FRONTAGE_MONITOR_ADMIN="off"
        ),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )


async def test_one_applications_batches_run_in_their_order_and_others_beside_them(shop: Database) -> None:
    first = await submit(shop, [watch(number) for number in range(20)])
    second = await submit(shop, [unwatch(number) for number in range(20)])
    third = await submit(shop, [watch(99)])
    other = await submit(shop, [watch(0)], application_id=OTHER_APPLICATION)
    async with working(shop, monitors=2):
        await until_over(shop, first, second, third, other)
    assert [(await progress(shop, each)).succeeded for each in (first, second, third, other)] == [20, 20, 1, 1]
    assert await watched(shop) == ["d0.test", "d99.test"]


async def test_nobody_waits_for_a_poll_between_two_batches(shop: Database, dsn: str, tmp_path: Path) -> None:
    load_keyring(tmp_path / "master.key", create=True)
    process = await start_monitor(dsn, tmp_path)
    try:
        await until_over(shop, await submit(shop, [watch(0)]))
        waiting = [await submit(shop, [watch(number)]) for number in range(10)]
        await until_over(shop, *waiting, seconds=4)  # with a poll between each two it would take half a minute
    finally:
        process.kill()
        await process.wait()


class Failing(Processing):
    """Meets a fault of ours at one domain."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.tries = 0

    async def _do(self, connection: Connection, batch: Batch, request: Watch | Unwatch) -> str | None:
        failure = await super()._do(connection, batch, request)
        if request.domain == "d1.test":
            self.tries += 1
            raise RuntimeError("a fault of ours")
        return failure


async def test_an_item_we_cannot_do_fails_in_the_end_and_alone(shop: Database) -> None:
    processing = Failing(shop)
    batch_id = await submit(shop, [watch(number) for number in range(4)])
    async with working(shop, processing=processing):
        await until_over(shop, batch_id)
    assert processing.tries == MOST_FAILURES
    failure = batches.FailedItem("d1.test", None, "it could not be done, for reasons inside Frontage")
    assert await progress(shop, batch_id) == batches.BatchProgress(APPLICATION, True, 3, (failure,))
    assert await watched(shop) == ["d0.test", "d2.test", "d3.test"]


async def test_an_item_is_not_blamed_for_the_deaths_of_monitors(shop: Database) -> None:
    batch_id = await submit(shop, [watch(0)])
    for _ in range(MOST_FAILURES + 2):
        await claim_one(shop, lease_seconds=0)  # and nothing more is heard of who claimed it
    async with working(shop):
        await until_over(shop, batch_id)
    assert await progress(shop, batch_id) == batches.BatchProgress(APPLICATION, True, 1, ())


async def test_what_was_not_understood_is_not_tried(shop: Database) -> None:
    batch_id = await submit(shop, [watch(0), InvalidItem("x", None, "no name"), watch(2)])
    assert (await progress(shop, batch_id)).failed == (batches.FailedItem("x", None, "no name"),)
    async with working(shop):
        await until_over(shop, batch_id)
    assert await progress(shop, batch_id) == batches.BatchProgress(
        APPLICATION, True, 2, (batches.FailedItem("x", None, "no name"),)
    )


async def claim_one(database: Database, *, lease_seconds: float = 10) -> Batch:
    async with database.transaction() as connection:
        [batch] = await batches.claim(connection, most=1, lease_seconds=lease_seconds)
    return batch


async def test_stale_fence_does_nothing(shop: Database) -> None:
    batch_id = await submit(shop, [watch(0)])
    stale = await claim_one(shop, lease_seconds=0)
    current = await claim_one(shop)
    with pytest.raises(FenceLost):
        await Processing(shop).perform(stale)
    assert await watched(shop) == []
    async with shop.transaction() as connection:
        assert await batches.extend(connection, [stale, current], lease_seconds=10) == {batch_id}
        await batches.postpone(connection, stale, delay_seconds=60, last_error="stale")
    await Processing(shop).perform(current)
    assert (await progress(shop, batch_id)).is_over


async def test_batches_are_swept_away_after_seven_days_once_they_are_over(shop: Database) -> None:
    async def age(batch_id: str, days: float) -> None:
        async with shop.transaction() as connection:
            await connection.execute(
                "update batches set submitted_at = now() - $2::interval where id = $1", batch_id, timedelta(days=days)
            )

    over, young = await submit(shop, [watch(0)]), await submit(shop, [watch(1)])
    async with working(shop):
        await until_over(shop, over, young)
    still_open = await submit(shop, [watch(2)])
    await age(over, 7)
    await age(still_open, 8)
    await age(young, 6.9)
    async with shop.transaction() as connection:
        assert await erase(connection, "batches") == 1
    left = await parts.fetch(shop, "select id, (select count(*) from batch_items where batch_id = id) from batches")
    assert {row["id"]: row["count"] for row in left} == {young: 1, still_open: 1}
    assert await parts.fetch(shop, "select 1 from batch_items where batch_id = $1", over) == []


async def test_a_batch_outlasts_a_moment_without_the_database(shop: Database) -> None:
    class Away(Processing):
        calls = 0

        async def _do(self, connection: Connection, batch: Batch, request: Watch | Unwatch) -> str | None:
            Away.calls += 1
            failure = await super()._do(connection, batch, request)
            if Away.calls == 2:
                raise DatabaseUnavailable("gone, in the middle of an item")
            return failure

    batch_id = await submit(shop, [watch(number) for number in range(3)])
    async with working(shop, processing=Away(shop)):
        await until_over(shop, batch_id)
    assert await progress(shop, batch_id) == batches.BatchProgress(APPLICATION, True, 3, ())
