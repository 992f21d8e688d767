"""``python -m tests.fuzz_tenants --sequences 20000``: near-identical requests of two tenants through one edge.

Each sequence is one connection, on which both tenants' requests follow each other; they share an origin. A crossing
ends the run and tells its seed, from which ``--seed`` begins.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from pathlib import Path

import uvloop

from tests.component.peers import edge
from tests.component.tenant_traffic import Tally, run_all, two_tenants

_SECRETS = {"a": b"secret-1", "b": b"secret-2"}


async def _run(first: int, sequences: int, at_once: int) -> Tally:
    with tempfile.TemporaryDirectory() as directory:
        async with edge(Path(directory)) as proxy, two_tenants(proxy, _SECRETS) as world:
            return await run_all(world, iter(range(first, first + sequences)), at_once=at_once)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz_tenants", description=__doc__)
    parser.add_argument("--sequences", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0, help="the first sequence's")
    parser.add_argument("--at-once", type=int, default=16, help="connections at the same time")
    arguments = parser.parse_args()
    logging.disable()
    print(uvloop.run(_run(arguments.seed, arguments.sequences, arguments.at_once)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
