"""The command line of the fault run."""

from __future__ import annotations

import argparse
import asyncio
import sys
from dataclasses import asdict

from rich.console import Console

import bench.monitor_faults
from bench import output
from bench.monitor_faults.running import run
from common.errors import FrontageError
from common.processes import loop_factory


def main() -> None:
    """Run the fault run and print its counts; exit with 1 if something went wrong."""
    arguments = _parse()
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            counts = runner.run(
                run(
                    seconds=60 * arguments.minutes,
                    domains=arguments.domains,
                    changing=arguments.changing,
                    partners=arguments.partners,
                    seed=arguments.seed,
                )
            )
    except FrontageError as error:
        sys.exit(f"bench.monitor_faults: {error}")
    except KeyboardInterrupt:
        sys.exit(1)
    console = Console(soft_wrap=True)
    console.print(counts.table())
    for detail in counts.details:
        console.print(detail, highlight=False)
    console.print(f"written to {output.write('monitor_faults', asdict(counts))}")
    sys.exit(1 if counts.wrong else 0)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.monitor_faults",
        description=bench.monitor_faults.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=3.0, help="how long everything fails (3)")
    parser.add_argument("--domains", type=int, default=150, help="monitored domains, of two records each (150)")
    parser.add_argument("--changing", type=int, default=20, help="of them those whose records go and come back (20)")
    parser.add_argument("--partners", type=int, default=10, help="domains changed through the API meanwhile (10)")
    parser.add_argument("--seed", type=int, default=1, help="of the faults (1)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
