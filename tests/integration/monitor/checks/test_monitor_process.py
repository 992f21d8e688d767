"""Checks as the monitor's own processes make them: at once, round after round, and whoever dies."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path

from bench.lab.server import NameServer
from common.db.pool import Database
from common.secrets import load_keyring
from tests.waiting import SECONDS, until

from ..test_role import monitor
from . import parts
from .parts import a, row_of, told, watch

DOMAIN = "customer.example"


async def test_monitors_check_at_once_and_every_round_and_outlive_each_other(
    database: Database, dsn: str, server: NameServer, tmp_path: Path
) -> None:
    load_keyring(tmp_path / "master.key", create=True)
    await parts.add_application(database)
    settings = {
        "DATABASE_URL": dsn,
        "DNS_SERVERS": server.address,
        "ALLOW_PRIVATE_ADDRESSES": "127.0.0.0/8",
        "CHECK_INTERVAL_SECONDS": "1",
        "PUBLIC_URL": "https://frontage.test",
    }
    async with AsyncExitStack() as stack:
        monitors = [await stack.enter_async_context(monitor(tmp_path, **settings)) for _ in range(2)]
        for process in monitors:
            assert process.stdout is not None
            assert await asyncio.wait_for(process.stdout.readline(), SECONDS) == b"ready\n"

        server.zone.add(DOMAIN, "A", "192.0.2.1")
        began = time.monotonic()
        await watch(database, DOMAIN, [a()])
        await until(lambda: _is(database, "present"))
        print(f"first check after {time.monotonic() - began:.3f} s")

        monitors[0].kill()
        server.zone.remove(DOMAIN)
        await until(lambda: _is(database, "missing"))
        server.zone.add(DOMAIN, "A", "192.0.2.1")
        await until(lambda: _is(database, "present"))
    assert await told(database) == [("missing", ["@"]), ("restored", [])]


async def _is(database: Database, state: str) -> bool:
    return bool((await row_of(database, DOMAIN))["state"] == state)
