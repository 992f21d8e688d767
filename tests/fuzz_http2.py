"""``python -m tests.fuzz_http2 --cases 100000``: HTTP/2 and HPACK against `h2` and `hpack`, by generated input.

A disagreement ends the run and tells its seed, which ``--seed`` repeats.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from rich.progress import track

from tests.unit.edge.http2.oracles import JUDGES


def main() -> int:
    judges: dict[str, Callable[[int], None]] = {judge.__name__.removeprefix("judge_"): judge for judge in JUDGES}
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz_http2", description=__doc__)
    parser.add_argument("--cases", type=int, default=1_000, help="of each kind")
    parser.add_argument("--seed", type=int, default=0, help="the first case's")
    parser.add_argument("--only", choices=judges, help="one kind of input")
    arguments = parser.parse_args()
    for name, judge in judges.items():
        if arguments.only not in (None, name):
            continue
        for seed in track(range(arguments.seed, arguments.seed + arguments.cases), name):
            try:
                judge(seed)
            except BaseException:
                print(f"{name}: seed {seed}")
                raise
    return 0


if __name__ == "__main__":
    sys.exit(main())
