"""One run of wrk: 1 thread, 64 connections, on its own core, going round a list of requests.

wrk keeps its connections until a response has ``Connection: close``. It resumes TLS sessions where it is
given tickets, so new connections are `bench.load_client`'s.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.loads import CONNECTIONS, LoadRun, read_run
from bench.pinned import last_line

_SCRIPT = Path(__file__).with_name("wrk.lua")
_SPARE_SECONDS = 20


async def run(url: str, requests: Sequence[bytes], *, seconds: float, core: int, is_refused: bool = False) -> LoadRun:
    """Load the origin part of `url` on loopback from `core`; its host is only what TLS asks for.

    Raises: `LoadFailed`, also when one request was not answered with success, or with one where all are `is_refused`.
    """
    with tempfile.NamedTemporaryFile(prefix="frontage-wrk-") as file:
        file.write(b"\0".join(requests))
        file.flush()
        argv = ["env", f"WRK_REQUESTS={file.name}", "WRK_CONNECT=127.0.0.1"]
        argv += ["WRK_REFUSED=1"] if is_refused else []
        argv += ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{_whole(seconds)}s", "--timeout", "5s", "-s", str(_SCRIPT), url]
        return read_run(f"wrk on {url}", await last_line(argv, core=core, seconds=seconds + _SPARE_SECONDS))


def _whole(seconds: float) -> int:
    """Round to whole seconds, since wrk takes no others."""
    return max(1, round(seconds))
