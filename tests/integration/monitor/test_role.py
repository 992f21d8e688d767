"""The monitor as a process: what it says, what it does, how it ends."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from bench.following_edge import following_edge
from bench.lab.ports import free_ports
from common.db.pool import Database
from common.secrets import load_keyring
from monitor.certificates.internal import root_path
from tests.children import ROOT, clean_environment
from tests.waiting import SECONDS, until

from . import parts


@asynccontextmanager
async def monitor(state_dir: Path, **variables: str) -> AsyncIterator[asyncio.subprocess.Process]:
    environment = {f"FRONTAGE_{name}": value for name, value in ({"MONITOR_ADMIN": "off"} | variables).items()}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "monitor"),
        cwd=ROOT,
        env=clean_environment(FRONTAGE_STATE_DIR=str(state_dir), **environment),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def refusal(state_dir: Path, **variables: str) -> str:
    async with monitor(state_dir, **variables) as process:
        out, err = await asyncio.wait_for(process.communicate(), 30)
        assert (process.returncode, out) == (1, b"")
        return err.decode()


async def test_the_admin_listener_reports_readiness_and_metrics(dsn: str, tmp_path: Path) -> None:
    load_keyring(tmp_path / "master.key", create=True)
    admin = f"127.0.0.1:{free_ports(1)[0]}"
    async with monitor(tmp_path, DATABASE_URL=dsn, MONITOR_ADMIN=admin) as process, aiohttp.ClientSession() as session:
        assert process.stdout is not None
        assert await asyncio.wait_for(process.stdout.readline(), SECONDS) == b"ready\n"
        for path in ("/healthz", "/readyz"):
            async with session.get(f"http://{admin}{path}") as response:
                assert response.status == 200
        expected = {
            'frontage_monitor_claims_held{work="deliveries"} 0.0',
            "frontage_monitor_work_stopped 0.0",
            "frontage_database_reachable 1.0",
            'frontage_monitors{state="running"} 1.0',
            'frontage_edges{state="serving"} 0.0',
            'frontage_due{work="certificate orders"} 0.0',
            'frontage_certificates_unrenewed{within_days="3"} 0.0',
            "frontage_pool_waiting 0.0",
        }
        shown: list[str] = []

        async def shows_all() -> bool:  # a busy machine may not have measured all of it yet
            async with session.get(f"http://{admin}/metrics") as response:
                shown[:] = (await response.text()).splitlines()
            return expected <= set(shown)

        await until(shows_all)
        for name in ("frontage_disk_free_bytes", "frontage_clock_timestamp_seconds", "frontage_loop_lag_seconds"):
            assert any(line.startswith(f"{name} ") for line in shown)


async def test_monitors_issue_what_is_notified_and_stop_cleanly(database: Database, dsn: str, tmp_path: Path) -> None:
    load_keyring(tmp_path / "master.key", create=True)
    await parts.add_application(database)
    async with monitor(tmp_path, DATABASE_URL=dsn) as one, monitor(tmp_path, DATABASE_URL=dsn) as other:
        for process in (one, other):
            assert process.stdout is not None
            assert await asyncio.wait_for(process.stdout.readline(), SECONDS) == b"ready\n"
        async with following_edge(database):
            await parts.power(database)
            await parts.until_live(database)
        for process in (one, other):
            process.send_signal(signal.SIGTERM)
        outputs = [await asyncio.wait_for(process.communicate(), 30) for process in (one, other)]
        assert [process.returncode for process in (one, other)] == [0, 0]
    assert [out for out, _ in outputs] == [b"", b""]
    logs = b"".join(err for _, err in outputs).decode()
    assert str(root_path(tmp_path)) in logs
    assert "PRIVATE KEY" not in logs
    assert len(await parts.certificates_of(database)) == 1


async def test_schema_newer_than_a_running_monitor_stops_only_the_work_it_breaks(
    database: Database, dsn: str, tmp_path: Path
) -> None:
    load_keyring(tmp_path / "master.key", create=True)
    await parts.add_application(database)
    async with monitor(tmp_path, DATABASE_URL=dsn) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert await asyncio.wait_for(process.stdout.readline(), SECONDS) == b"ready\n"
        async with database.transaction() as connection:
            await connection.execute("alter table batches rename to batches_of_tomorrow")
            await connection.execute("update alembic_version set version_num = '9999'")
        stopped: set[str] = set()
        async with asyncio.timeout(SECONDS):
            while "batches" not in stopped:  # retention reads the table too: either may meet its absence first
                line = await process.stderr.readline()
                assert line, "the monitor has ended"
                if b"work has stopped" in line:
                    entry = json.loads(line)
                    assert entry["level"] == "error"
                    assert "newer than this program" in entry["reason"]
                    stopped.add(entry["work"])
        assert stopped <= {"batches", "retention"}
        async with following_edge(database):
            await parts.power(database)
            await parts.until_live(database)
        process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.communicate(), 30)
        assert process.returncode == 0


async def test_what_an_operator_must_put_right_is_one_line(dsn: str, tmp_path: Path) -> None:
    assert "no master key at" in await refusal(tmp_path, DATABASE_URL=dsn)
    load_keyring(tmp_path / "master.key", create=True)
    for line, variables in {
        "no database: set FRONTAGE_DATABASE_URL": {},
        "the database cannot be reached": {"DATABASE_URL": "postgresql://127.0.0.1:1/frontage"},
        "FRONTAGE_ISSUER=acme needs FRONTAGE_ACME_DIRECTORY": {"DATABASE_URL": dsn, "ISSUER": "acme"},
    }.items():
        refused = await refusal(tmp_path, **variables)
        assert refused.startswith("frontage monitor: ")
        assert line in refused
        assert refused.count("\n") == 1
