"""Running the launcher in a process of its own, which a test may kill, and looking for what it leaves behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.children import clean_environment
from tests.waiting import wait_until

# Starts a server, says so with its DSN, stops it when its input closes. It changes its user itself, after the
# imports, because that user may be unable to reach this Python.
LAUNCHER = """
import encodings.ascii, os, sys
from pathlib import Path
from common.errors import OperatorError
from common.postgres import EmbeddedPostgres
if len(sys.argv) > 2:
    os.setgroups([])
    os.setgid(int(sys.argv[2]))
    os.setuid(int(sys.argv[2]))
postgres = EmbeddedPostgres(Path(sys.argv[1]))
try:
    dsn = postgres.start()
except OperatorError as error:
    print("refused:", error, flush=True)
    sys.exit(1)
print("started", postgres.pid, dsn, flush=True)
sys.stdin.read()
postgres.stop()
"""


def environment() -> dict[str, str]:
    return clean_environment(FRONTAGE_SECRET_CANARY="must-not-travel")


@contextlib.contextmanager
def frozen(postmaster: int) -> Iterator[None]:
    """Every process of the server stopped: connections stay open and nothing answers.

    The postmaster first: a backend that it starts meanwhile would go on answering.
    """
    pids = [postmaster]
    os.kill(postmaster, signal.SIGSTOP)
    try:
        wait_until(lambda: _state(postmaster) == "T")
        pids += [int(child) for child in Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()]
        _signal(pids, signal.SIGSTOP)
        yield
    finally:
        _signal(pids, signal.SIGCONT)


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


@contextlib.contextmanager
def launcher(state_dir: Path, *, uid: int | None = None) -> Iterator[subprocess.Popen[str]]:
    """A process that runs `LAUNCHER`; ended, and its server waited for, when the block is left."""
    process = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, str(state_dir), *([str(uid)] if uid else [])],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd="/",
    )
    try:
        yield process
    finally:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(timeout=30)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
        wait_until(lambda: not servers_of(state_dir), "a server outlived its launcher")


def servers_of(state_dir: Path) -> list[int]:
    """Every process that keeps the server's lock file open: they are all the processes it has."""
    try:
        lock = (state_dir / "postgres.lock").stat()
    except FileNotFoundError:
        return []
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _has_open(pid, lock)]


def _has_open(pid: int, file: os.stat_result) -> bool:
    try:
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            if os.path.samestat(os.stat(f"/proc/{pid}/fd/{descriptor}"), file):
                return True
    return False
