"""Parts every test may ask for: a real Postgres for the session, and a database of its own for each test."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
from hypothesis import HealthCheck, settings

from common.db.migrate import migrate
from common.db.pool import Database, open_pool
from common.db.session import open_session
from common.postgres import EmbeddedPostgres
from common.secrets import Keyring, load_keyring
from tests.children import WITHOUT_AUTHORITIES
from tests.timeouts import UNHURRIED

TEMPLATE = "frontage_template"
_MEMORY_BYTES = 6 << 30
"""From this much free memory on, the session's database lies in memory: a server's takes some 300 MB."""

# Generated examples are the same in every run, and no verdict depends on the machine's speed.
# `--hypothesis-profile=explore` looks for new ones.
_WITHOUT_CLOCK = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None)
settings.register_profile("repeatable", _WITHOUT_CLOCK, derandomize=True)
settings.register_profile("explore", _WITHOUT_CLOCK, max_examples=2000)
settings.load_profile("repeatable")


def pytest_collection_finish() -> None:
    """No garbage collection looks again at what was made up to here, as in the product's processes: those of all
    generations took 7 % of the CPU time of unit tests, now 3 %."""
    gc.collect()
    gc.freeze()


def in_database(dsn: str, name: str) -> str:
    """The same server's other database."""
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))


async def execute_at(dsn: str, *statements: str) -> None:
    connection = await open_session(dsn, "frontage tests", UNHURRIED)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        connection.terminate()


@pytest.fixture(scope="session", autouse=True)
def given_environment() -> Iterator[dict[str, str]]:
    """The environment of the test command. Tests run without the system's certificate authorities: none trusts them,
    and reading some 140 took 20 ms for each TLS context, a third of the CPU time of tests."""
    given = dict(os.environ)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in WITHOUT_AUTHORITIES.items():
            patch.setenv(name, value)
        yield given


@pytest.fixture(scope="session")
def server_dsn() -> Iterator[str]:
    """The session's server, with a migrated template. Tests that stop or freeze a server start one of their own."""
    state_dir = Path(tempfile.mkdtemp(prefix="frontage-tests-", dir=_database_directory()))
    server = EmbeddedPostgres(state_dir)
    try:
        dsn = server.start()
        asyncio.run(_make_template(dsn))
        yield dsn
    finally:
        server.stop()
        shutil.rmtree(state_dir, ignore_errors=True)


def _database_directory() -> str:
    """Memory where there is enough: to copy and to remove the 590 files of a database took 120 ms of a core on a disk's
    file system, 20 ms in memory."""
    memory = os.statvfs("/dev/shm") if os.path.isdir("/dev/shm") else None
    free_bytes = min(memory.f_bavail * memory.f_frsize, _available_memory_bytes()) if memory else 0
    return "/dev/shm" if free_bytes > _MEMORY_BYTES else "/var/tmp"


def _available_memory_bytes() -> int:
    """As the kernel estimates it (proc(5), ``MemAvailable``)."""
    [kilobytes] = re.findall(r"^MemAvailable: +(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return int(kilobytes) * 1024


async def _make_template(dsn: str) -> None:
    await execute_at(
        dsn,
        "alter system set fsync = off",  # what is lost with the machine is thrown away anyhow
        "select pg_reload_conf()",
        f"create database {TEMPLATE}",
    )
    await migrate(in_database(dsn, TEMPLATE))


@pytest.fixture
async def dsn(server_dsn: str) -> AsyncIterator[str]:
    """A migrated, empty database, gone after the test."""
    async with fresh_database(server_dsn) as dsn:
        yield dsn


@asynccontextmanager
async def fresh_database(server_dsn: str) -> AsyncIterator[str]:
    """As `dsn`, for tests in the session's loop."""
    name = f"test_{secrets.token_hex(6)}"
    await execute_at(server_dsn, f"create database {name} template {TEMPLATE} strategy file_copy")
    try:
        yield in_database(server_dsn, name)
    finally:
        await execute_at(server_dsn, f"drop database {name} with (force)")


@pytest.fixture
async def database(dsn: str) -> AsyncIterator[Database]:
    """A pool on that database."""
    async with open_pool(dsn, size=8, application_name="frontage tests", timeouts=UNHURRIED) as pool:
        yield pool


@pytest.fixture
def keyring(tmp_path: Path) -> Keyring:
    """A master key of the test's own."""
    return load_keyring(tmp_path / "master.key", create=True)
