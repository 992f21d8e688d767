"""One run of wrk: 1 thread, 64 keep-alive connections, a browser's six headers, on its own core."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass
from pathlib import Path

_SCRIPT = Path(__file__).with_name("wrk.lua")
_CONNECTIONS = 64
_SPARE_SECONDS = 20


class WrkFailed(Exception):
    """wrk did not run, or some of its requests were not answered with success."""


@dataclass(frozen=True, slots=True)
class Run:
    requests: int
    errors: int
    p50_us: int
    p99_us: int
    seconds: float


async def run(url: str, *, connect_to: str, varied: bool, seconds: float, core: int) -> Run:
    """Load `url` from `core`, connecting to `connect_to` whatever the URL's host resolves to.

    Raises: `WrkFailed`.
    """
    host = url.split("/")[2]
    argv = ["taskset", "-c", str(core), "wrk", "-t1", f"-c{_CONNECTIONS}", f"-d{seconds:g}s", "--timeout", "5s"]
    argv += ["-s", str(_SCRIPT), url, "--", "varied" if varied else "same", host]
    process = await asyncio.create_subprocess_exec(
        *argv,
        env=os.environ | {"WRK_CONNECT": connect_to},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(seconds + _SPARE_SECONDS):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    said = output.decode("utf-8", "replace").strip()
    if process.returncode != 0 or not said.endswith("}"):
        raise WrkFailed(f"wrk on {url}: {said.splitlines()[-1] if said else process.returncode}")
    finished = Run(**json.loads(said.splitlines()[-1]))
    if finished.errors or not finished.requests:
        raise WrkFailed(f"wrk on {url}: {finished.errors} errors in {finished.requests} requests")
    return finished
