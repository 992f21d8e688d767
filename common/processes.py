"""Processes: runs a role, starts children that cannot outlive their parent, and keeps the group of children of `up`.

The kernel signals a child when its parent dies (``PR_SET_PDEATHSIG``), so that nothing stays behind after a
kill -9 either. A child has a session of its own: Ctrl-C reaches the parent alone, which then ends its
children in order. This module must not know what a role does; it only loads the settings and passes them on.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import os
import re
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, NoReturn

from common import logs
from common.errors import FrontageError
from common.retry_pauses import RetryPauses
from common.settings import PREFIX, Settings, load
from common.watchdog import report_life

_PR_SET_PDEATHSIG = 1
_prctl = ctypes.CDLL(None, use_errno=True).prctl  # looked up now: between fork and exec only plain calls are safe

_SERVING_SECONDS = 600  # an edge may be making its first copy: 41 s for a million routes on two cores
_STOP_SECONDS = 20
_FIRST_PAUSE_SECONDS = 0.2
_LAST_PAUSE_SECONDS = 10.0
_STEADY_SECONDS = 30  # a child that ran this long did not crash at its start
_LAST_OUTPUT_SECONDS = 1.0

_READY = re.compile(rb"^ready[^\n]*\n", re.MULTILINE)
_READ_BYTES = 65_536
_STANDARD_OUTPUT = 1

SECRET_VARIABLES = tuple(PREFIX + name for name in ("DATABASE_URL", "FEED_URL", "ACME_EAB", "ACME_DNS_UPDATE"))


@dataclass(frozen=True, slots=True)
class UnixAccount:
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
        logs.configure(role, level=settings.log_level)
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(_serve_until_stopped(settings, serve))
    except FrontageError as error:
        print(f"frontage {role}: {error}", file=sys.stderr)  # noqa: T201 - the contract: one line, no traceback
        sys.exit(1)
    sys.exit(0)


def settle_garbage_collector() -> None:
    """Freeze the objects made during start-up, so that no collection looks at them again.

    `common` makes collections rare, because the work in the loop makes few cycles (measured: they took a quarter of
    the CPU time of checks).
    """
    gc.collect()
    gc.freeze()


def raise_descriptor_limit() -> None:
    """Allow this process as many open files as the system allows it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def announce_ready() -> None:
    """Print ``ready``, which signals the parent process that this role serves. A role prints no other line."""
    print("ready", flush=True)  # noqa: T201 - read by `Group`


async def _serve_until_stopped(settings: Settings, serve: Callable[[Settings, asyncio.Event], Awaitable[None]]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    watched = asyncio.create_task(report_life(os.environ, os.getpid()), name="watchdog")
    try:
        await serve(settings, stop)
    finally:
        watched.cancel()


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's factory where it is installed, otherwise None: plain asyncio runs the same code."""
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
    account: UnixAccount | None = None,
    cwd: str | Path | None = None,
    stdin: int | IO[bytes] | None = subprocess.DEVNULL,
    stdout: int | IO[bytes] | None = None,
    stderr: int | IO[bytes] | None = None,
    death_signal: signal.Signals = signal.SIGKILL,
) -> subprocess.Popen[bytes]:
    """Start a child in a session of its own; the kernel sends it `death_signal` when this process ends.

    Call it from the main thread: the kernel sends the signal when the thread that started the child ends. The caller
    owns the child and must wait for it (`exited` does so without blocking the loop).

    Raises: OSError when `argv` cannot be executed or the account cannot be taken on.
    """
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
        # After the change of user, which would clear the setting; two system calls, see `_prctl`.
        preexec_fn=partial(_die_with_parent, os.getpid(), int(death_signal)),  # noqa: PLW1509
    )


def _die_with_parent(parent_pid: int, death_signal: int) -> None:
    """Ask the kernel to signal this child when its parent dies. Runs in the child, between fork and exec."""
    _prctl(_PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
    if os.getppid() != parent_pid:  # the parent died before prctl took effect
        os._exit(1)


async def exited(process: subprocess.Popen[bytes]) -> int:
    """Wait until a child exits and return its status, negative for a signal."""
    if (status := process.poll()) is not None:
        return status
    descriptor = os.pidfd_open(process.pid)
    try:
        await _until_readable(descriptor)
    finally:
        os.close(descriptor)
    return process.wait()


def role_argv(role: str) -> list[str]:
    """Return the command that runs a role as a module; ``-P`` keeps the working directory out of the import path."""
    return [sys.executable, "-P", "-m", role]


# Children that belong together -----------------------------------------------------------------------------


class ChildFailed(FrontageError):
    """A child ended before it served. It has written the reason to standard error, unless a signal ended it."""


class Group:
    """The children of `up`: started, restarted when they crash, ended together.

    The creator must call `stop` in every case. A child prints the line ``ready`` on its standard output when it serves;
    its other output (such as an access log) is held back until `pass_output_on`.
    """

    def __init__(self, *, stop_seconds: float = _STOP_SECONDS) -> None:
        """Begin without children. `stop_seconds`: how long each may take to end, before it is killed."""
        self._stop_seconds = stop_seconds
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._outputs: dict[str, _ChildOutput] = {}
        self._is_passing_on = False
        self._log = logs.get_logger(__name__)

    async def start(self, name: str, argv: Sequence[str], env: Mapping[str, str]) -> None:
        """Start a child and wait until it serves.

        Raises: ChildFailed when it ends first, or does not serve in time.
        """
        process = spawn(argv, env=env, stdout=subprocess.PIPE)
        self._processes[name] = process
        if (before := self._outputs.pop(name, None)) is not None:
            before.close()
        assert process.stdout is not None
        output = self._outputs[name] = _ChildOutput(process.stdout)
        try:
            async with asyncio.timeout(_SERVING_SECONDS):
                is_serving = await output.wait_until_ready()
        except TimeoutError:
            raise ChildFailed(f"the {name} does not serve after {_SERVING_SECONDS} seconds") from None
        if not is_serving:
            raise ChildFailed(_exit_report(name, await exited(process)))
        if self._is_passing_on:
            output.pass_on()

    def pass_output_on(self) -> None:
        """Copy the output of the children, except ``ready``, to standard output from now on."""
        self._is_passing_on = True
        for output in self._outputs.values():
            output.pass_on()

    async def keep(self, name: str, argv: Sequence[str], env: Mapping[str, str]) -> NoReturn:
        """Restart the child each time it ends, at growing intervals while it ends soon. Runs until cancelled."""
        loop = asyncio.get_running_loop()
        pauses = RetryPauses(first=_FIRST_PAUSE_SECONDS, longest=_LAST_PAUSE_SECONDS)
        while True:
            since = loop.time()
            status = await exited(self._processes[name])
            if loop.time() - since > _STEADY_SECONDS:
                pauses.reset()
            pause = pauses.next_seconds()
            self._log.error("a role has ended and is started again", name=name, status=status, pause_seconds=pause)
            await asyncio.sleep(pause)
            try:
                await self.start(name, argv, env)
            except ChildFailed as error:
                self._log.error("a role does not start", name=name, reason=str(error))
                self._processes[name].kill()

    async def stop(self, delay_seconds: float = 0) -> None:
        """Terminate all children, and kill those that do not end in time.

        They have `stop_seconds`, and `delay_seconds` for a child that waits before it ends. A cancelled stop
        (a second Ctrl-C) kills them at once.
        """
        running = [process for process in self._processes.values() if process.poll() is None]
        try:
            for process in running:
                process.terminate()
            async with asyncio.timeout(self._stop_seconds + delay_seconds):
                for process in running:
                    await exited(process)
        except TimeoutError:
            self._log.error("a role did not stop in time and is killed")
        finally:
            for process in running:
                process.kill()
                process.wait()
            for output in self._outputs.values():
                output.close()


class _ChildOutput:
    """Copies the standard output of one child, in a thread, so that a slow reader of our own output blocks no task."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._received = b""
        self._thread: threading.Thread | None = None

    async def wait_until_ready(self) -> bool:
        """Return whether the child serves; False when it closes its output, as it does when it ends."""
        while (ready := _READY.search(self._received)) is None:
            await _until_readable(self._pipe.fileno())
            if not (chunk := os.read(self._pipe.fileno(), _READ_BYTES)):
                return False
            self._received += chunk
        self._received = self._received[: ready.start()] + self._received[ready.end() :]
        return True

    def pass_on(self) -> None:
        """Start to copy the output to our standard output."""
        os.set_blocking(self._pipe.fileno(), True)  # event loops make a pipe non-blocking
        self._thread = threading.Thread(target=self._copy, name="output", daemon=True)
        self._thread.start()

    def _copy(self) -> None:
        with contextlib.suppress(OSError):  # the reader of our standard output is gone
            while self._received:
                self._received = self._received[os.write(_STANDARD_OUTPUT, self._received) :]
            while chunk := os.read(self._pipe.fileno(), _READ_BYTES):
                while chunk:
                    chunk = chunk[os.write(_STANDARD_OUTPUT, chunk) :]
        self._pipe.close()  # the next write of the child fails with EPIPE

    def close(self) -> None:
        """Close after the child has ended; its remaining output has `_LAST_OUTPUT_SECONDS` to be copied."""
        if self._thread is None:
            self._pipe.close()
        else:
            self._thread.join(_LAST_OUTPUT_SECONDS)


async def _until_readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(descriptor, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(descriptor)


def _exit_report(name: str, status: int) -> str:
    return f"the {name} was ended by {signal.Signals(-status).name}" if status < 0 else f"the {name} did not start"
