"""``python -m bench.pipelining``: a thousand requests sent at once on one connection, plain and over TLS.

For each peer the milliseconds until the last response has come, and CPU microseconds of the proxy for each request;
medians of rounds in which the peers take turns. Responses come in the order of the requests, so that each waits for
the origin's response to the one before: no peer asks for two at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import ssl
import statistics
import sys
import time
from collections import defaultdict
from typing import Final

from bench import heads, output
from bench.peers import HOST, LOAD_CORE, RunningProxy
from bench.peers.side_by_side import side_by_side
from bench.process_tree import cpu_seconds
from common.errors import FrontageError, OperatorError

_PATIENCE_SECONDS: Final = 60.0
_BODY: Final = b"\r\n\r\nok"

Run = tuple[float, float]
"""Seconds until the last response; CPU seconds of the proxy."""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.pipelining", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=1_000, help="on one connection (1000)")
    parser.add_argument("--rounds", type=int, default=15, help="connections to each peer, plain and TLS (15)")
    arguments = parser.parse_args()
    try:
        runs = asyncio.run(_measure(arguments.requests, arguments.rounds))
    except FrontageError as error:
        sys.exit(f"bench.pipelining: {error}")
    figures: dict[str, dict[str, dict[str, float]]] = {}
    print(f"{arguments.requests} at once   {'ms':>14} {'CPU µs a request':>18}")
    for (scheme, name), each in runs.items():
        seconds, busy = (statistics.median(values) for values in zip(*each, strict=True))
        figure = {"milliseconds": seconds * 1e3, "microseconds_a_request": busy / arguments.requests * 1e6}
        figures.setdefault(scheme, {})[name] = figure
        print(f"{scheme:6} {name:10} {figure['milliseconds']:12.0f} {figure['microseconds_a_request']:18.1f}")
    print(f"written to {output.write('pipelining', figures)}")


async def _measure(requests: int, rounds: int) -> dict[tuple[str, str], list[Run]]:
    """Runs by scheme and peer. Raises: `OperatorError`."""
    runs: dict[tuple[str, str], list[Run]] = defaultdict(list)
    async with side_by_side({}) as started:
        os.sched_setaffinity(0, {LOAD_CORE})
        for number in range(1 + rounds):
            for scheme in ("http", "https"):
                for peer_name, serving in started:
                    run = await _pipeline(serving, scheme, requests)
                    if number:  # the first one opens connections to the origin
                        runs[scheme, peer_name].append(run)
    return runs


async def _pipeline(serving: RunningProxy, scheme: str, requests: int) -> Run:
    """Raises: `OperatorError` when the connection ends before the last response."""
    port, context = (serving.https_port, _trusting()) if scheme == "https" else (serving.http_port, None)
    name = HOST if context else None
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name)
    busy, begun_at = cpu_seconds(serving.pid), time.perf_counter()
    writer.write(heads.same(HOST, "/")[0] * requests)
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            for _ in range(requests):
                await reader.readuntil(_BODY)
    except (OSError, EOFError, TimeoutError) as error:
        raise OperatorError(f"not every request was answered: {error!r}") from error
    finally:
        writer.transport.abort()
    return time.perf_counter() - begun_at, cpu_seconds(serving.pid) - busy


def _trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


if __name__ == "__main__":
    main()
