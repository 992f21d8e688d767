"""Programs that run on one core and end with us: proxies, origins, loads."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

from bench.lab.programs import end_process, last_log_line
from common.errors import OperatorError
from common.processes import exited, spawn

_START_SECONDS = 15
_POLL_SECONDS = 0.02


class LoadFailed(OperatorError):
    """A load did not run, or some of its requests were not answered with success."""


@contextlib.contextmanager
def program(argv: Sequence[str], *, core: int, log: Path, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run `argv` on `core` for the block; its output goes to `log`."""
    with log.open("ab") as output:
        process = spawn(
            ["taskset", "-c", str(core), *argv],
            env=os.environ | variables,
            stdout=output,
            stderr=output,
            death_signal=signal.SIGTERM,
        )
    try:
        yield process
    finally:
        end_process(process)


@contextlib.asynccontextmanager
async def server(argv: Sequence[str], *, core: int, log: Path, port: int, **variables: str) -> AsyncIterator[int]:
    """Run a program for the block, and yield its pid once it listens on `port`.

    Raises: `OperatorError` with the last line of its output, if it does not.
    """
    with program(argv, core=core, log=log, **variables) as process:
        deadline = time.monotonic() + _START_SECONDS
        while not await _is_listening(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise OperatorError(f"{argv[0]} did not start: {last_log_line(log)}")
            await asyncio.sleep(_POLL_SECONDS)
        yield process.pid


def module(name: str, *arguments: str) -> list[str]:
    """Return the command line of a module of ours."""
    return [sys.executable, "-P", "-m", name, *arguments]


async def last_line(argv: Sequence[str], *, core: int, seconds: float) -> str:
    """Run a load that ends by itself, and return the last line of its output.

    Raises: `LoadFailed`.
    """
    process = spawn(
        ["taskset", "-c", str(core), *argv], env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(seconds):
            lines = (await asyncio.to_thread(process.stdout.read)).decode("utf-8", "replace").strip().splitlines()
            status = await exited(process)
    except TimeoutError:
        raise LoadFailed(f"{' '.join(argv[:3])} … did not end within {seconds:g} seconds") from None
    finally:
        process.kill()
        process.communicate()
    if status or not lines:
        raise LoadFailed(f"{' '.join(argv[:3])} …: {lines[-1] if lines else f'status {status}'}")
    return lines[-1]


async def _is_listening(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True
