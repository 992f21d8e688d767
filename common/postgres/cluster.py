"""The cluster on disk: made by initdb beside its place, then renamed into it: it is whole or absent.

The server's user may be unable to walk to the state directory (0700, root's). It is handed the open directory
instead: ``/proc/self/fd/N`` leads there without the way to it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from pathlib import Path

from common.errors import OperatorError
from common.postgres.binaries import Binaries
from common.postgres.layout import Layout
from common.postgres.locks import FileLock
from common.processes import Account, spawn

USER = "frontage"
DATABASE = "postgres"  # the one initdb makes: the server is ours alone
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}  # all that any of its processes ever sees

_INITDB_SECONDS = 120


def open_home(layout: Layout, account: Account | None) -> int:
    """A descriptor of the server's directory, made and given to `account` if need be; the caller closes it."""
    layout.home.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(layout.home, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    if account is not None and os.fstat(descriptor).st_uid != account.uid:
        os.fchown(descriptor, account.uid, account.gid)
    return descriptor


def ensure_password(layout: Layout) -> str:
    """The server's password; made, 0600, before the first cluster is.

    Raises: OperatorError when it was lost and the cluster is still there.
    """
    try:
        return layout.password_file.read_text("ascii").strip()
    except FileNotFoundError:
        if layout.data.exists():
            raise OperatorError(
                f"{layout.password_file} is missing: restore it, or move {layout.home} away to begin anew"
            ) from None
    fresh = secrets.token_urlsafe(24)
    draft = layout.password_file.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(fresh)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(layout.password_file)
    return fresh


def ensure(
    layout: Layout, password: str, binaries: Binaries, account: Account | None, home: int, lock: FileLock
) -> None:
    """Make the cluster unless there is one. `home` is what `open_home` gave; initdb shares `lock`.

    Raises: OperatorError when initdb fails.
    """
    if layout.data.exists():
        return
    draft = layout.home / "draft"
    if draft.exists():
        shutil.rmtree(draft)  # cut short; whoever was making it held the lock that we hold now
    _initdb(layout, password, binaries, account, home, lock)
    draft.rename(layout.data)
    os.fsync(home)


def _initdb(
    layout: Layout, password: str, binaries: Binaries, account: Account | None, home: int, lock: FileLock
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
        ],
        env=ENVIRONMENT,
        account=account,
        cwd="/",
        pass_fds=(home, secret, lock.fileno()),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        _, said = process.communicate(timeout=_INITDB_SECONDS)
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        os.close(secret)
    if process.returncode != 0:
        raise OperatorError(f"cannot make the embedded database in {layout.home}: {_last_line(said)}")


def _readable_secret(text: str, account: Account | None) -> int:
    """An anonymous file that `account` alone can open again, by ``/proc``: no secret in argv or on disk."""
    descriptor = os.memfd_create("password")
    os.write(descriptor, text.encode())
    if account is not None:
        os.fchown(descriptor, account.uid, account.gid)
    os.fchmod(descriptor, 0o400)
    return descriptor


def remove_pid_file(layout: Layout) -> None:
    """Only under the server lock: then nobody runs, and the pid in the file may be anybody's by now."""
    (layout.data / "postmaster.pid").unlink(missing_ok=True)


def reported_status(data: Path, pid: int) -> str:
    """What the postmaster `pid` says of itself: ``starting``, ``ready``, ``stopping`` or nothing yet."""
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
    except OSError:
        return ""
    return lines[7].strip() if len(lines) > 7 and lines[0] == str(pid) else ""


def _last_line(output: bytes) -> str:
    lines = output.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "initdb gave no reason"
