"""Processes: how a role runs, and how a child is started so that it cannot outlive its parent.

The kernel signals a child when its parent dies (``PR_SET_PDEATHSIG``), so that nothing stays behind after a
kill -9 either. A child has a session of its own: Ctrl-C reaches the parent alone, which then ends its
children in order. This module must not know what a role does; settings it only loads and hands over.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

from common import logs
from common.errors import FrontageError
from common.settings import PREFIX, Settings, load

_PR_SET_PDEATHSIG = 1
_prctl = ctypes.CDLL(
    None, use_errno=True
).prctl  # looked up here: between fork and exec only plain calls are safe

SECRET_VARIABLES = (PREFIX + "DATABASE_URL",)


@dataclass(frozen=True, slots=True)
class Account:
    """The unprivileged user a child runs as when we are root."""

    name: str
    uid: int
    gid: int


# A role's own life ---------------------------------------------------------------------------------------


def run_role(role: str, serve: Callable[[Settings, asyncio.Event], Awaitable[None]]) -> NoReturn:
    """Run a role's `serve(settings, stop)` until it returns; SIGTERM and SIGINT set `stop`.

    Settings come from the environment, from which secrets are then removed: no child of the role inherits
    them. Exits 0 when `serve` returns and 1, with one line on standard error, on a `FrontageError`.
    """
    try:
        settings = load(os.environ)
        for name in SECRET_VARIABLES:
            os.environ.pop(name, None)
        logs.configure(role)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_serve_until_stopped(settings, serve))
    except FrontageError as error:
        print(f"frontage {role}: {error}", file=sys.stderr)  # noqa: T201 - the contract: one line, no traceback
        sys.exit(1)
    sys.exit(0)


def announce_ready() -> None:
    """Tell whoever started this role that it serves: the one line it ever prints."""
    print("ready", flush=True)  # noqa: T201 - read by `Group`


async def _serve_until_stopped(
    settings: Settings, serve: Callable[[Settings, asyncio.Event], Awaitable[None]]
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await serve(settings, stop)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's where it is installed; plain asyncio runs the same code."""
    try:
        import uvloop  # noqa: PLC0415 - optional
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


# A child -------------------------------------------------------------------------------------------------


def spawn(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    pass_fds: Sequence[int] = (),
    account: Account | None = None,
    cwd: str | Path | None = None,
    stdin: int | IO[bytes] | None = subprocess.DEVNULL,
    stdout: int | IO[bytes] | None = None,
    stderr: int | IO[bytes] | None = None,
    death_signal: signal.Signals = signal.SIGKILL,
) -> subprocess.Popen[bytes]:
    """Start a child in a session of its own; the kernel sends it `death_signal` when we die.

    Call it from the main thread: what the kernel watches is the thread that started the child. The caller
    owns the child and must wait for it (`exited` does so without blocking the loop).

    Raises: OSError when `argv` cannot be executed or the account cannot be taken on.
    """
    parent_pid = os.getpid()

    def die_with_parent() -> None:
        # Runs after the change of user, which would have cleared the setting.
        _prctl(_PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
        if os.getppid() != parent_pid:  # the parent died before the kernel was told
            os._exit(1)

    return subprocess.Popen(
        list(argv),
        env=dict(env),
        pass_fds=tuple(pass_fds),
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
        cwd=cwd,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
        preexec_fn=die_with_parent,  # noqa: PLW1509 - two system calls, see `_prctl`
    )


async def exited(process: subprocess.Popen[bytes]) -> int:
    """Wait for a child's end; its exit status, negative for a signal."""
    if (status := process.poll()) is not None:
        return status
    loop = asyncio.get_running_loop()
    gone = asyncio.Event()
    descriptor = os.pidfd_open(process.pid)
    loop.add_reader(descriptor, gone.set)
    try:
        await gone.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
    return process.wait()
