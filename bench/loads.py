"""The result of one run of a load: the last line of wrk's output and of our own clients', in one form."""

from __future__ import annotations

import json
from dataclasses import dataclass

from bench.pinned import LoadFailed

CONNECTIONS = 64
HTTP2_CONNECTIONS = 32


@dataclass(frozen=True, slots=True)
class LoadRun:
    """The result of one run.

    `requests` were answered with success (messages came back, where the load speaks WebSocket); `resumed` of their
    connections resumed a TLS session.
    """

    requests: int
    errors: int
    p50_us: int
    p99_us: int
    seconds: float
    bytes: int = 0
    resumed: int = 0


def read_run(what: str, line: str) -> LoadRun:
    """Parse the result of a run.

    Raises: `LoadFailed` for a line that is not a result, and for a run with an error.
    """
    try:
        run = LoadRun(**json.loads(line))
    except (ValueError, TypeError):
        raise LoadFailed(f"{what}: {line}") from None
    if run.errors or not run.requests:
        raise LoadFailed(f"{what}: {run.errors} errors, {run.requests} requests answered in {run.seconds:g} s")
    return run
