"""The embedded server: as root and as an ordinary user, in unreachable places, through every kind of death."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from common.errors import OperatorError
from common.file_locks import ProcessIdentity
from common.postgres import EmbeddedPostgres, running_dsn
from common.postgres import binaries as programs
from common.processes import UnixAccount
from tests.integration.postgres.running import LAUNCHER, environment, launcher, servers_of
from tests.waiting import wait_until

NOBODY = UnixAccount("nobody", 65534, 65534)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    """Not made yet, below a directory that lets nobody else through."""
    assert tmp_path.stat().st_mode & 0o077 == 0
    return tmp_path / "state"


@pytest.fixture
def nobodys_dir() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        os.chown(directory, 65534, 65534)
        yield Path(directory)


async def ask(dsn: str, question: str) -> object:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(question)
    finally:
        await connection.close()


async def test_server_answers_keeps_its_data_and_leaves_nothing(state_dir: Path) -> None:
    postgres = EmbeddedPostgres(state_dir)
    dsn = postgres.start()
    try:
        assert running_dsn(state_dir) == dsn
        await ask(dsn, "create table kept (value int)")
    finally:
        postgres.stop()
    assert running_dsn(state_dir) is None
    assert servers_of(state_dir) == []
    assert not (state_dir / "postgres.socket").exists()
    with EmbeddedPostgres(state_dir):
        assert await ask(running_dsn(state_dir) or "", "select count(*) from kept") == 0


async def test_server_is_durable_private_and_asks_for_the_password(state_dir: Path) -> None:
    with EmbeddedPostgres(state_dir):
        dsn = running_dsn(state_dir) or ""
        assert await ask(dsn, "show fsync") == "on"
        assert await ask(dsn, "show synchronous_commit") == "on"
        assert await ask(dsn, "show listen_addresses") == ""
        assert await ask(dsn, "show password_encryption") == "scram-sha-256"
        socket_dir = dsn.partition("host=")[2]
        assert stat.S_IMODE(os.stat(socket_dir).st_mode) == 0o700
        assert stat.S_IMODE((state_dir / "postgres.password").stat().st_mode) == 0o600
        stored = await ask(dsn, "select rolpassword from pg_authid where rolname = current_user")
        assert str(stored).startswith("SCRAM-SHA-256$1:"), "iterations would only slow down each session's start"
        with pytest.raises(asyncpg.InvalidPasswordError):
            await ask(f"postgresql://frontage:wrong@/postgres?host={socket_dir}", "select 1")


def test_no_secret_travels_in_environment_or_arguments(state_dir: Path) -> None:
    with launcher(state_dir) as process:
        _, pid, _ = process.stdout.readline().split()
        password = (state_dir / "postgres.password").read_text()
        seen = b"".join(Path(f"/proc/{pid}/{file}").read_bytes() for file in ("environ", "cmdline"))
        assert b"FRONTAGE" not in seen
        assert password.encode() not in seen


@needs_root
def test_as_root_it_becomes_another_user_and_changes_no_directory_of_others(state_dir: Path) -> None:
    before = [(parent, parent.stat().st_mode, parent.stat().st_uid) for parent in state_dir.parents]
    with EmbeddedPostgres(state_dir) as postgres:
        assert os.stat(f"/proc/{postgres.pid}").st_uid != 0
        assert (state_dir / "postgres").stat().st_uid == os.stat(f"/proc/{postgres.pid}").st_uid
        assert state_dir.stat().st_uid == 0
    assert [(parent, parent.stat().st_mode, parent.stat().st_uid) for parent in state_dir.parents] == before


@needs_root
def test_as_root_the_owner_of_existing_data_goes_on(state_dir: Path) -> None:
    with EmbeddedPostgres(state_dir):
        pass
    for path in (state_dir / "postgres", *(state_dir / "postgres").rglob("*")):
        os.chown(path, 12345, 12345, follow_symlinks=False)
    with EmbeddedPostgres(state_dir) as postgres:
        assert os.stat(f"/proc/{postgres.pid}").st_uid == 12345


@needs_root
def test_as_an_ordinary_user_it_stays_that_user(nobodys_dir: Path) -> None:
    with launcher(nobodys_dir / "state", uid=65534) as process:
        word, pid, _ = process.stdout.readline().split()
        assert word == "started"
        assert os.stat(f"/proc/{pid}").st_uid == 65534


@needs_root
def test_another_users_data_is_refused_in_words(nobodys_dir: Path) -> None:
    state_dir = nobodys_dir / "state"
    state_dir.mkdir()
    state_dir.chmod(0o777)
    (state_dir / "postgres").mkdir()  # root's
    with launcher(state_dir, uid=65534) as process:
        assert "belongs to root" in process.stdout.readline()


@needs_root
def test_unreachable_programs_are_staged_where_the_user_can_run_them(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    site = programs._package_directory()
    hidden.mkdir(mode=0o700)
    for name in (programs._PACKAGE, f"{programs._PACKAGE}.libs"):
        subprocess.run(["cp", "-r", "--", site / name, hidden / name], check=True)
    with tempfile.TemporaryDirectory(dir="/tmp") as public:
        os.chmod(public, 0o755)
        found, again = (programs.find(NOBODY, site=hidden, stages=(Path(public),)) for _ in range(2))
        assert found.postgres.is_relative_to(public)
        assert again == found
        assert [entry.name for entry in Path(public).iterdir()] == [found.postgres.parents[3].name]


@needs_root
def test_a_staged_copy_that_others_can_write_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_can_run", lambda binaries, account: binaries.postgres.is_relative_to(tmp_path))
    planted = tmp_path / programs._staged_name()
    planted.mkdir()
    planted.chmod(0o777)
    with pytest.raises(OperatorError, match="cannot run PostgreSQL"):
        programs.find(NOBODY, stages=(tmp_path,))


def test_a_second_server_on_the_same_directory_is_refused_by_the_firsts_pid(state_dir: Path) -> None:
    with launcher(state_dir) as first:
        first.stdout.readline()
        with pytest.raises(OperatorError, match=f"process {first.pid} already runs"):
            EmbeddedPostgres(state_dir).start()


def test_killing_the_parent_leaves_no_process_and_the_next_start_no_socket_directory(state_dir: Path) -> None:
    with launcher(state_dir) as process:
        _, _, dsn = process.stdout.readline().split()
        process.kill()
        wait_until(lambda: not servers_of(state_dir), "the server outlived its parent")
    left = Path(dsn.partition("host=")[2])
    assert left.exists()
    with EmbeddedPostgres(state_dir):
        assert not left.exists()


async def test_it_recovers_from_a_kill_of_everything_at_any_moment(state_dir: Path) -> None:
    """Of a first start, initdb included, of recoveries, and of a server at work."""
    moments = random.Random(7)
    for _ in range(15):
        process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, str(state_dir)], env=environment(), stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(moments.uniform(0.05, 1.2))  # the moment itself, not a wait for something
        for pid in (process.pid, *servers_of(state_dir)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        process.stdin.close()
    with EmbeddedPostgres(state_dir):
        assert await ask(running_dsn(state_dir) or "", "select 1") == 1
    assert sorted(entry.name for entry in (state_dir / "postgres").iterdir()) == ["data"]


async def test_a_recycled_pid_in_the_pid_file_does_not_keep_it_from_starting(state_dir: Path) -> None:
    with EmbeddedPostgres(state_dir):
        stale = (state_dir / "postgres/data/postmaster.pid").read_text().splitlines()
    owner = (state_dir / "postgres").stat()
    stranger = subprocess.Popen(
        ["sleep", "60"], user=owner.st_uid if os.geteuid() == 0 else None, stdin=subprocess.DEVNULL
    )
    try:
        (state_dir / "postgres/data/postmaster.pid").write_text("\n".join([str(stranger.pid), *stale[1:], ""]))
        with EmbeddedPostgres(state_dir):
            assert await ask(running_dsn(state_dir) or "", "select 1") == 1
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


async def test_an_orphan_that_will_not_leave_is_ended(state_dir: Path) -> None:
    with launcher(state_dir) as process:
        _, pid, _ = process.stdout.readline().split()
        os.kill(int(pid), signal.SIGSTOP)  # it will not hear that its parent died
        process.kill()
        process.wait()
        with EmbeddedPostgres(state_dir, dying_seconds=0.2):
            assert await ask(running_dsn(state_dir) or "", "select 1") == 1
        assert ProcessIdentity.of(int(pid)) is None


async def test_after_a_crash_of_the_server_start_brings_it_back_under_the_same_dsn(state_dir: Path) -> None:
    postgres = EmbeddedPostgres(state_dir)
    dsn = postgres.start()
    try:
        await ask(dsn, "create table kept (value int)")
        os.kill(postgres.process.pid, signal.SIGKILL)
        postgres.process.wait()
        assert postgres.start() == dsn
        assert await ask(dsn, "select count(*) from kept") == 0
    finally:
        postgres.stop()


def test_a_lost_password_is_named_not_replaced(state_dir: Path) -> None:
    with EmbeddedPostgres(state_dir):
        pass
    (state_dir / "postgres.password").unlink()
    with pytest.raises(OperatorError, match="password is missing"):
        EmbeddedPostgres(state_dir).start()


def test_a_state_directory_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OperatorError, match="cannot write to the state directory"):
        EmbeddedPostgres(tmp_path / "file" / "state").start()


def test_a_temporary_directory_the_server_cannot_use_is_passed_over(
    state_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    awkward = tmp_path / "a, directory's name"
    awkward.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(awkward))
    with EmbeddedPostgres(state_dir):
        assert "a, directory" not in (running_dsn(state_dir) or "")
