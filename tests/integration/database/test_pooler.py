"""A real pgbouncer between us and Postgres: transaction mode is refused, session mode is not."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from bench.lab.ports import free_ports
from common.db.migrate import migrate
from common.db.pool import open_pool
from common.errors import OperatorError
from common.secrets import load_keyring
from tests.integration.cli.frontage import environment, run
from tests.timeouts import UNHURRIED
from tests.waiting import SECONDS, wait_until

PGBOUNCER = shutil.which("pgbouncer", path=os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin")

pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="the Debian package pgbouncer is not installed")


@contextmanager
def pgbouncer(dsn: str, mode: str) -> Iterator[str]:
    """The DSN of a pooler in front of `dsn`, listening on loopback."""
    parts = urlsplit(dsn)
    [socket_dir] = parse_qs(parts.query)["host"]
    [port] = free_ports(1)
    directory = Path(tempfile.mkdtemp(prefix="frontage-pooler-", dir="/var/tmp"))
    config = directory / "pgbouncer.ini"
    config.write_text(
        f"[databases]\n"
        f"{parts.path[1:]} = host={socket_dir} user={parts.username} password={parts.password}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
        f"pool_mode = {mode}\ndefault_pool_size = 5\n"
    )
    as_user: list[str] = []
    if os.geteuid() == 0:  # it refuses to run as root, and only the server's own user reaches its socket
        owner = pwd.getpwuid(os.stat(socket_dir).st_uid)
        for path in (directory, config):
            os.chown(path, owner.pw_uid, owner.pw_gid)
        as_user = ["-u", owner.pw_name]
    assert PGBOUNCER is not None
    process = subprocess.Popen(
        [PGBOUNCER, *as_user, str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/"
    )
    try:
        _wait_for(port, process)
        yield f"postgresql://{parts.username}@127.0.0.1:{port}{parts.path}"
    finally:
        process.terminate()
        process.wait(SECONDS)
        shutil.rmtree(directory)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    def accepts() -> bool:
        assert process.poll() is None, "pgbouncer ended"
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        return False

    wait_until(accepts, "pgbouncer accepts", seconds=SECONDS)


async def test_transaction_mode_is_refused_at_start(dsn: str) -> None:
    with pgbouncer(dsn, "transaction") as pooled:
        with pytest.raises(OperatorError, match="transaction mode"):
            async with open_pool(pooled, size=2, application_name="test", timeouts=UNHURRIED):
                pass
        with pytest.raises(OperatorError, match="transaction mode"):
            await migrate(pooled)


async def test_every_command_refuses_transaction_mode_in_one_line_every_time(dsn: str, tmp_path: Path) -> None:
    load_keyring(tmp_path / "master.key", create=True)
    with pgbouncer(dsn, "transaction") as pooled:
        env = environment(tmp_path, DATABASE_URL=pooled)
        for command in (["app", "list"], ["api"], ["monitor"], ["doctor"], ["app", "list"]):
            result = await asyncio.to_thread(run, *command, env=env)
            assert result.returncode == 1, command
            assert "pooler in transaction mode" in result.stdout + result.stderr, command
            assert "Traceback" not in result.stderr, command
            assert command == ["doctor"] or result.stderr.count("\n") == 1, command


async def test_session_mode_works(dsn: str) -> None:
    with pgbouncer(dsn, "session") as pooled:
        async with (
            open_pool(pooled, size=2, application_name="test", timeouts=UNHURRIED) as database,
            database.transaction() as connection,
        ):
            assert await connection.fetchval("select version from feed") == 0
