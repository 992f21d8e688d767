"""Starts, stops and finds the embedded server. One server per state directory.

Rules
    - A server starts only under the server lock, which every process of a server inherits: while the lock is held,
      some process of an earlier server is alive.
    - The server ends with its parent (parent-death signal), listens on a socket in a private directory, and finds no
      secret in its environment or arguments.
    - Durability stays on; the rest of the tuning fits a small machine.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from common.errors import OperatorError
from common.file_locks import FileLock, ProcessIdentity, is_held, kill_holders, last_holder
from common.postgres import account as accounts
from common.postgres import binaries, cluster
from common.postgres.layout import Layout, ensure_state_dir
from common.processes import UnixAccount, spawn

_READY_SECONDS = 120  # crash recovery after a kill -9 of a busy server included
_POLL_SECONDS = 0.01
_DYING_SECONDS = 10.0
_FAST_STOP_SECONDS = 10
_IMMEDIATE_STOP_SECONDS = 5
_SOCKET_PREFIX = "frontage-"
_PROGRAMS = frozenset({"postgres", "initdb"})

_TUNING = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "shared_buffers": "256MB",  # taken as it is touched: the due list of a million domains stays in memory
    "max_connections": "100",
    "max_wal_size": "1GB",  # rows all over a large table: after a checkpoint each page is logged whole
    "io_method": "sync",  # spares three processes
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "max_logical_replication_workers": "0",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    # The log must not hold what the tables hold.
    "log_min_messages": "warning",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}


class EmbeddedPostgres:
    """A server under `state_dir`, a child of this process.

    The caller of `start` also calls `stop`, both from the main thread. `start` again after the server has died by
    itself brings it back under the same DSN.
    """

    def __init__(self, state_dir: Path, *, dying_seconds: float = _DYING_SECONDS) -> None:
        """Prepare to start. An earlier server that lost its parent has `dying_seconds` before it is killed."""
        self._layout = Layout(state_dir)
        self._dying_seconds = dying_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._socket_dir: Path | None = None

    def __enter__(self) -> EmbeddedPostgres:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int | None:
        """The postmaster's pid while it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The postmaster, for a supervisor that waits for its exit."""
        assert self._process is not None, "not started"
        return self._process

    def start(self) -> str:
        """Start, wait until the server accepts connections, and return its DSN.

        Raises: OperatorError when it cannot start, or when another process runs one on this state directory.
        """
        dsn = self.launch()
        try:
            deadline = time.monotonic() + _READY_SECONDS
            while not self.is_ready():
                if time.monotonic() > deadline:
                    raise OperatorError(f"the embedded Postgres is not ready: see {self._layout.log}")
                time.sleep(_POLL_SECONDS)
        except BaseException:
            self.stop()
            raise
        return dsn

    def launch(self) -> str:
        """Start without waiting; ask `is_ready`."""
        ensure_state_dir(self._layout.state_dir)
        lock = self._take_server_lock()
        try:
            account = accounts.choose(self._layout.home)
            programs = binaries.find(account)
            password = cluster.ensure_password(self._layout)
            home = cluster.open_home(self._layout, account)
            try:
                cluster.ensure(self._layout, password, programs, account, home, lock)
                cluster.remove_pid_file(self._layout)
                socket_dir = self._fresh_socket_dir(account)
                self._process = self._spawn(programs, account, home, lock, socket_dir)
            finally:
                os.close(home)
        except OSError as error:
            raise OperatorError(f"cannot start the embedded Postgres: {error}") from error
        finally:
            lock.release()  # the server's processes hold it until the last of them ends
        return _dsn(password, socket_dir)

    def is_ready(self) -> bool:
        """Return whether the server accepts connections.

        Raises: OperatorError when the server has ended.
        """
        if self.process.poll() is not None:
            raise OperatorError(f"the embedded Postgres did not start: {_last_log_line(self._layout.log)}")
        return cluster.reported_status(self._layout.data, self.process.pid) == "ready"

    def stop(self) -> None:
        """Shut the server down, by force after a time-out, and remove the socket directory. Idempotent."""
        if self._process is not None:
            _stop_process(self._process)
            self._process = None
        if self._socket_dir is not None:
            _remove_socket_dir(self._socket_dir)
            self._socket_dir = None
            self._layout.socket_record.unlink(missing_ok=True)

    def _spawn(
        self,
        programs: binaries.Binaries,
        account: UnixAccount | None,
        home: int,
        lock: FileLock,
        socket_dir: Path,
    ) -> subprocess.Popen[bytes]:
        settings = {**_TUNING, "unix_socket_directories": str(socket_dir)}
        with _fresh_log(self._layout.log) as log:
            return spawn(
                [str(programs.postgres), "-D", f"/proc/self/fd/{home}/data", *_as_arguments(settings)],
                env=cluster.ENVIRONMENT,
                account=account,
                cwd="/",
                pass_fds=(home, lock.fileno()),
                stdout=log,
                stderr=log,
                death_signal=signal.SIGQUIT,  # immediate shutdown: its children go with it
            )

    def _take_server_lock(self) -> FileLock:
        """Wait for an earlier server to end; kill it when its parent is gone and it does not end by itself."""
        path = self._layout.server_lock
        deadline = time.monotonic() + self._dying_seconds
        is_killed = False
        while (lock := FileLock.try_acquire(path)) is None:
            starter = last_holder(path)
            if starter is not None and starter.is_alive() and not self._has_lost_server(starter):
                raise OperatorError(
                    f"process {starter.pid} already runs the embedded Postgres of {self._layout.state_dir}: "
                    "stop it first, or set FRONTAGE_STATE_DIR to another directory"
                )
            if time.monotonic() > deadline:
                if is_killed:
                    raise OperatorError(f"an old embedded Postgres does not let go of {path}: reboot, or end it")
                kill_holders(path, _PROGRAMS)
                is_killed = True
                deadline += self._dying_seconds
            time.sleep(_POLL_SECONDS)
        return lock

    def _has_lost_server(self, starter: ProcessIdentity) -> bool:
        """Return whether the earlier server belonged to this object and its postmaster has died."""
        return starter.pid == os.getpid() and self._process is not None and self.pid is None

    def _fresh_socket_dir(self, account: UnixAccount | None) -> Path:
        """Return an empty directory for the socket.

        It is the same one after a crash of the server, so that the DSN stays valid; else a new one, recorded
        before it is created.
        """
        if self._socket_dir is not None:
            _remove_sockets(self._socket_dir)
            return self._socket_dir
        record = self._layout.socket_record
        if record.exists():
            _remove_socket_dir(Path(record.read_text().strip()))
        path = _socket_base(account) / f"{_SOCKET_PREFIX}{secrets.token_hex(8)}"
        record.write_text(f"{path}\n")
        path.mkdir(mode=0o700)
        if account is not None:
            os.chown(path, account.uid, account.gid)
        self._socket_dir = path
        return path


def running_dsn(state_dir: Path) -> str | None:
    """Return the DSN of the server that runs on this state directory, or None.

    Raises: OperatorError when the state directory is another user's.
    """
    layout = Layout(state_dir)
    try:
        if not is_held(layout.server_lock):
            return None
        password = layout.password_file.read_text("ascii").strip()
        return _dsn(password, Path(layout.socket_record.read_text().strip()))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OperatorError(
            f"cannot read {state_dir} ({error.strerror}): run this as the user who runs `frontage up`"
        ) from error


def _dsn(password: str, socket_dir: Path) -> str:
    return f"postgresql://{cluster.USER}:{password}@/{cluster.DATABASE}?host={socket_dir}"


def _as_arguments(settings: dict[str, str]) -> Iterator[str]:
    for name, value in settings.items():
        yield "-c"
        yield f"{name}={value}"


def _stop_process(process: subprocess.Popen[bytes]) -> None:
    """Request a fast shutdown, then an immediate one, then SIGKILL."""
    for number, seconds in (
        (signal.SIGINT, _FAST_STOP_SECONDS),
        (signal.SIGQUIT, _IMMEDIATE_STOP_SECONDS),
        (signal.SIGKILL, None),
    ):
        process.send_signal(number)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            continue
        return


def _socket_base(account: UnixAccount | None) -> Path:
    """Return a directory that the server's user can walk to, with a short and plain name.

    A socket's path has 107 bytes, and the name becomes part of a setting and of the DSN.

    Raises: OperatorError.
    """
    for base in (Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")):  # noqa: S108
        is_plain = re.fullmatch(r"[\w./-]{1,60}", str(base), re.ASCII)
        is_open = account is None or _can_walk_to(base.resolve(), account)
        if is_plain and is_open and os.access(base, os.W_OK | os.X_OK):
            return base
    raise OperatorError("no directory for the database's socket: set TMPDIR to a short path open to all users")


def _can_walk_to(path: Path, account: UnixAccount) -> bool:
    return all(_can_enter(directory.stat(), account) for directory in (path, *path.parents))


def _can_enter(directory: os.stat_result, account: UnixAccount) -> bool:
    if directory.st_uid == account.uid:
        return bool(directory.st_mode & 0o100)
    if directory.st_gid == account.gid:
        return bool(directory.st_mode & 0o010)
    return bool(directory.st_mode & 0o001)


def _remove_sockets(socket_dir: Path) -> None:
    for file in socket_dir.glob(".s.PGSQL.*"):
        file.unlink(missing_ok=True)


def _remove_socket_dir(path: Path) -> None:
    """Remove only a directory named by this module: a stale record must not delete anything else."""
    if path.name.startswith(_SOCKET_PREFIX) and path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)


def _fresh_log(path: Path) -> BinaryIO:
    """Open a new log of the server; the one of the start before is kept beside it."""
    if path.exists():
        path.rename(path.with_suffix(".log.1"))
    return path.open("xb")


def _last_log_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return f"{lines[-1]} (see {log})" if lines else "it gave no reason"
