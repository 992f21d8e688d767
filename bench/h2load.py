"""One run of nghttp2's h2load: 1 thread, 32 connections of HTTP/2, so many streams each, on its own core.

Paths differ from request to request; h2load sends the other fields alike, each cookie as a field. As browsers do, it
refers to fields that it sent before on a connection, and puts no path into the table.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import tempfile
from typing import Final

from bench import heads
from bench.loads import HTTP2_CONNECTIONS, LoadRun
from bench.pinned import LoadFailed
from common.processes import exited, spawn

_PATHS: Final = 1000
_SPARE_SECONDS: Final = 20
_COUNTS: Final = re.compile(r"(\d+) total, \d+ started, \d+ done, (\d+) succeeded, (\d+) failed, (\d+) errored")


async def run(url: str, *, streams: int, seconds: float, core: int) -> LoadRun:
    """Load `url` on loopback, `streams` requests at once on each connection.

    Raises: `LoadFailed`, also when one request was not answered with success.
    """
    port = url.split("/")[2].split(":")[1]
    with tempfile.NamedTemporaryFile("w", prefix="frontage-h2load-") as file:
        file.write("\n".join(heads.other_path(url, number) for number in range(_PATHS)) + "\n")
        file.flush()
        argv = ["h2load", "-t1", f"-c{HTTP2_CONNECTIONS}", f"-m{streams}", "-D", f"{max(1, round(seconds))}"]
        argv += ["-i", file.name, f"--connect-to=127.0.0.1:{port}"]
        for name, value in heads.browser_fields():
            for part in value.split("; ") if name == "Cookie" else [value]:
                argv += ["-H", f"{name}: {part}"]
        output = await _output(argv, core=core, seconds=seconds + _SPARE_SECONDS)
    counts = _COUNTS.search(output)
    if counts is None or counts[3] != "0" or counts[4] != "0" or not int(counts[2]):
        raise LoadFailed(f"h2load on {url}: {output.strip().splitlines()[-1:]}")
    return LoadRun(int(counts[2]), 0, 0, 0, seconds)


async def _output(argv: list[str], *, core: int, seconds: float) -> str:
    """Run the program on that core, and return its output.

    Raises: `LoadFailed` when it does not end in time.
    """
    pinned = ["taskset", "-c", str(core), *argv]
    process = spawn(pinned, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(seconds):
            output = (await asyncio.to_thread(process.stdout.read)).decode("utf-8", "replace")
            await exited(process)
    except TimeoutError:
        raise LoadFailed(f"h2load did not end within {seconds:g} seconds") from None
    finally:
        process.kill()
    return output
