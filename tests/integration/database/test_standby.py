"""A read-only standby in the primary's place: every command says so in one line."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from common.db.migrate import migrate
from common.db.pool import open_pool
from common.db.session import open_session
from common.errors import ReadOnlyDatabase
from common.postgres import EmbeddedPostgres, running_dsn
from common.postgres import server as server_module
from common.secrets import load_keyring
from tests.conftest import execute_at
from tests.integration.cli.frontage import environment, run

WORDS = "this database is a read-only standby: point FRONTAGE_DATABASE_URL at the primary"

_SHARED_ROLE = "create role shared login password 'shared'"


@pytest.fixture
async def standby(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """The DSN of a server in recovery, with our schema."""
    monkeypatch.setitem(server_module._TUNING, "wal_level", "replica")
    state_dir = tmp_path_factory.mktemp("standby")
    with EmbeddedPostgres(state_dir):
        await migrate(running_dsn(state_dir) or "")
        await execute_at(running_dsn(state_dir) or "", _SHARED_ROLE)
    [data] = [path.parent for path in state_dir.rglob("postgresql.conf")]
    (data / "standby.signal").touch()
    owner = data.stat()
    os.chown(data / "standby.signal", owner.st_uid, owner.st_gid)
    with EmbeddedPostgres(state_dir):
        yield running_dsn(state_dir) or ""


async def test_every_command_says_that_it_is_a_standby(standby: str, tmp_path: Path) -> None:
    load_keyring(tmp_path / "master.key", create=True)
    env = environment(tmp_path, DATABASE_URL=standby)
    for command in (["app", "list"], ["api"], ["monitor"], ["doctor"]):
        result = await asyncio.to_thread(run, *command, env=env)
        assert result.returncode == 1, command
        assert WORDS in " ".join((result.stdout + result.stderr).split()), command
        assert "Traceback" not in result.stderr, command
        assert command == ["doctor"] or result.stderr.count("\n") == 1, command
    async with open_pool(standby, size=1, application_name="test") as database:
        with pytest.raises(ReadOnlyDatabase):
            async with database.connection():
                pass


async def test_a_standby_named_first_is_passed_over_unless_the_address_wants_it(standby: str, dsn: str) -> None:
    await execute_at(dsn, _SHARED_ROLE)
    try:
        hosts = ",".join(parse_qs(urlsplit(each).query)["host"][0] for each in (standby, dsn))
        address = f"postgresql://shared:shared@/postgres?host={hosts}"
        for attribute, expected in (("", False), ("&target_session_attrs=any", True)):
            connection = await open_session(address + attribute, "test")
            assert await connection.fetchval("select pg_is_in_recovery()") is expected
            connection.terminate()
        alone = ",".join([parse_qs(urlsplit(standby).query)["host"][0]] * 2)
        with pytest.raises(ReadOnlyDatabase):
            await open_session(f"postgresql://shared:shared@/postgres?host={alone}", "test")
    finally:
        await execute_at(dsn, "drop role shared")
