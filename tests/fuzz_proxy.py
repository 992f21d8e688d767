"""``python -m tests.fuzz_proxy --messages 200000``: the oracle's tests, for as many generated messages as wanted.

Half of them are what clients send, some as browsers do, and half what origins answer. A disagreement ends the run and
tells its seed, which ``--seed`` repeats.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from pathlib import Path
from random import Random

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tests.unit.edge import messages
from tests.unit.edge.link import Link
from tests.unit.edge.oracle import Tally, judge_requests
from tests.unit.edge.response_oracle import judge_responses

_CAPACITIES = (20, 300, 1 << 30, 1 << 30)


def judge(link: Link, seed: int) -> tuple[int, Tally]:
    """One conversation: how many messages were generated for it, and what became of them."""
    rng = Random(seed)
    client_capacity, upstream_capacity = rng.choice(_CAPACITIES), rng.choice(_CAPACITIES)
    if seed % 2:
        requests, scripts = messages.conversation(rng)
        return len(scripts), judge_responses(
            link, requests, scripts, client_capacity=client_capacity, upstream_capacity=upstream_capacity
        )
    if seed % 6 == 0:
        pieces = messages.visit(rng)
        count = len(pieces)
    else:
        stream, count = messages.counted_stream(rng)
        pieces = messages.split(rng, stream)
    return count, judge_requests(link, pieces, client_capacity=client_capacity, upstream_capacity=upstream_capacity)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz_proxy", description=__doc__)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0, help="the first conversation's")
    arguments = parser.parse_args()
    logging.disable()
    seed, generated, forwarded, refused = arguments.seed, 0, 0, 0
    columns = (TextColumn("messages"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with tempfile.TemporaryDirectory() as directory, Progress(*columns) as progress:
        bar = progress.add_task("", total=arguments.messages)
        link = Link(Path(directory))
        while generated < arguments.messages:
            try:
                count, tally = judge(link, seed)
            except BaseException:
                progress.print(f"seed {seed}")
                raise
            seed += 1
            generated += count
            forwarded += tally.forwarded
            refused += tally.refused
            progress.update(bar, completed=min(generated, arguments.messages))
    print(f"{generated} messages, {forwarded} passed on, {refused} refused, no disagreement")
    return 0


if __name__ == "__main__":
    sys.exit(main())
