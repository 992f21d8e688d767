"""Creates the cluster on disk: initdb writes to a draft directory, which is then renamed; it is complete or absent.

The server's user may lack access to the state directory (0700, owned by root). The server inherits a descriptor of
its directory instead: ``/proc/self/fd/N`` needs no access to the parents.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from pathlib import Path

from common.atomic_files import replace_file
from common.errors import OperatorError
from common.file_locks import FileLock
from common.postgres.binaries import Binaries
from common.postgres.layout import Layout
from common.processes import UnixAccount, spawn

USER = "frontage"
DATABASE = "postgres"  # created by initdb: nothing else uses the server
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}  # the whole environment of each of its processes

_INITDB_SECONDS = 120
_SCRAM_ITERATIONS = 1  # they slow guesses down; this password is random, and each session would pay 5 ms for 4096


def open_home(layout: Layout, account: UnixAccount | None) -> int:
    """Open the server's directory, created and owned by `account` if necessary; the caller closes the descriptor."""
    layout.home.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(layout.home, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    if account is not None and os.fstat(descriptor).st_uid != account.uid:
        os.fchown(descriptor, account.uid, account.gid)
    return descriptor


def ensure_password(layout: Layout) -> str:
    """Return the server's password; it is created, 0600, before the first cluster.

    Raises: OperatorError when the password file is missing but the cluster exists.
    """
    try:
        return layout.password_file.read_text("ascii").strip()
    except FileNotFoundError:
        if layout.data.exists():
            raise OperatorError(
                f"{layout.password_file} is missing: restore it, or move {layout.home} away to begin anew"
            ) from None
    fresh = secrets.token_urlsafe(24)
    replace_file(layout.password_file, fresh.encode())
    return fresh


def ensure(
    layout: Layout, password: str, binaries: Binaries, account: UnixAccount | None, home: int, lock: FileLock
) -> None:
    """Create the cluster unless it exists. `home` is the descriptor from `open_home`; initdb inherits `lock`.

    Raises: OperatorError when initdb fails.
    """
    if layout.data.exists():
        return
    draft = layout.home / "draft"
    if draft.exists():
        shutil.rmtree(
            draft
        )  # left by an interrupted initdb: the lock that this process now holds proves that it has ended
    _initdb(layout, password, binaries, account, home, lock)
    draft.rename(layout.data)
    os.fsync(home)


def _initdb(
    layout: Layout, password: str, binaries: Binaries, account: UnixAccount | None, home: int, lock: FileLock
) -> None:
    secret = _readable_secret(password, account)
    process = spawn(
        [
            str(binaries.initdb),
            f"--pgdata=/proc/self/fd/{home}/draft",
            f"--username={USER}",
            f"--pwfile=/proc/self/fd/{secret}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--no-locale",
            "--no-instructions",
            f"--set=scram_iterations={_SCRAM_ITERATIONS}",
        ],
        env=ENVIRONMENT,
        account=account,
        cwd="/",
        pass_fds=(home, secret, lock.fileno()),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        _, output = process.communicate(timeout=_INITDB_SECONDS)
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        os.close(secret)
    if process.returncode != 0:
        raise OperatorError(f"cannot make the embedded database in {layout.home}: {_last_line(output)}")


def _readable_secret(text: str, account: UnixAccount | None) -> int:
    """Return an anonymous file that only `account` can reopen, through ``/proc``: no secret in argv or on disk."""
    descriptor = os.memfd_create("password")
    os.write(descriptor, text.encode())
    if account is not None:
        os.fchown(descriptor, account.uid, account.gid)
    os.fchmod(descriptor, 0o400)
    return descriptor


def remove_pid_file(layout: Layout) -> None:
    """Remove a stale pid file. Call it under the server lock: no server runs, and the pid may have been reused."""
    (layout.data / "postmaster.pid").unlink(missing_ok=True)


def reported_status(data: Path, pid: int) -> str:
    """Return the status in the pid file of postmaster `pid`: ``starting``, ``ready``, ``stopping`` or "" (none yet)."""
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
    except OSError:
        return ""
    return lines[7].strip() if len(lines) > 7 and lines[0] == str(pid) else ""


def _last_line(output: bytes) -> str:
    lines = output.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "initdb gave no reason"
