"""A monitor's lease, as others see it while the process runs, after it ended and after it was killed."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from common.db import monitor_nodes
from common.db.monitor_nodes import LEASE_SECONDS, MonitorNode
from common.db.pool import Database
from common.secrets import load_keyring
from tests.waiting import until

from .test_role import monitor


async def nodes(database: Database) -> list[MonitorNode]:
    async with database.connection() as connection:
        return await monitor_nodes.list_nodes(connection)


async def is_issuing(database: Database) -> bool:
    async with database.connection() as connection:
        return await monitor_nodes.is_issuing(connection)


async def until_ready(process: asyncio.subprocess.Process) -> None:
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.readline(), 30) == b"ready\n"


async def test_a_monitor_that_is_ready_holds_a_lease_and_ends_it(database: Database, dsn: str, tmp_path: Path) -> None:
    load_keyring(tmp_path / "master.key", create=True)
    assert not await is_issuing(database)
    async with monitor(tmp_path, DATABASE_URL=dsn) as process:
        await until_ready(process)
        [node] = await nodes(database)
        assert (node.is_issuing, node.stopped) == (True, ())
        assert node.issuer.startswith("internal ")
        process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.communicate(), 30)
    assert not await is_issuing(database)
    assert [node.is_alive for node in await nodes(database)] == [False]


async def test_the_lease_of_a_killed_monitor_lapses(database: Database, dsn: str, tmp_path: Path) -> None:
    load_keyring(tmp_path / "master.key", create=True)
    async with monitor(tmp_path, DATABASE_URL=dsn) as process:
        await until_ready(process)
        process.kill()
        await process.communicate()
        killed_at = asyncio.get_running_loop().time()

        async def has_lapsed() -> bool:
            return not await is_issuing(database)

        await until(has_lapsed)
        assert asyncio.get_running_loop().time() - killed_at <= LEASE_SECONDS + 1


async def test_monitors_with_the_internal_authority_name_one(database: Database, dsn: str, tmp_path: Path) -> None:
    key = load_keyring(tmp_path / "master.key", create=True)
    assert key
    shared = {"DATABASE_URL": dsn, "MASTER_KEY_FILE": str(tmp_path / "master.key")}
    async with monitor(tmp_path / "one", **shared) as one, monitor(tmp_path / "other", **shared) as other:
        await until_ready(one)
        await until_ready(other)
        found = await nodes(database)
        assert (len(found), len({node.issuer for node in found})) == (2, 1)


async def test_work_that_has_stopped_is_no_work_that_is_done(database: Database, dsn: str, tmp_path: Path) -> None:
    load_keyring(tmp_path / "master.key", create=True)
    async with monitor(tmp_path, DATABASE_URL=dsn) as process:
        await until_ready(process)
        async with database.transaction() as connection:
            await connection.execute("alter table orders rename to orders_of_tomorrow")

        async def has_stopped() -> bool:
            [node] = await nodes(database)
            return node.is_alive and not node.is_issuing

        await until(has_stopped)
