"""The command line of the fault run."""

from __future__ import annotations

import argparse
import asyncio
import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import bench.connect_faults
from bench import output
from bench.connect_faults.counts import FlowCounts
from bench.connect_faults.running import run
from common.errors import FrontageError
from common.processes import loop_factory


def main() -> None:
    """Run the fault run and print its counts; exit with 1 if something went wrong."""
    arguments = _parse()
    console = Console(soft_wrap=True)
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            counts = runner.run(_measure(console, arguments.flows, arguments.seed))
    except FrontageError as error:
        sys.exit(f"bench.connect_faults: {error}")
    except KeyboardInterrupt:
        sys.exit(1)
    console.print(counts.table())
    for detail in counts.details:
        console.print(detail, highlight=False, markup=False)
    console.print(f"written to {output.write('connect_faults', counts.as_json() | {'seed': arguments.seed})}")
    sys.exit(1 if counts.wrong else 0)


async def _measure(console: Console, flows: int, seed: int) -> FlowCounts:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("flows", total=2 * (flows // 2))
        return await run(flows=flows, seed=seed, on_end=lambda: progress.advance(task))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.connect_faults",
        description=bench.connect_faults.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--flows", type=int, default=40, help="half of them by each way (40)")
    parser.add_argument("--seed", type=int, default=1, help="of the faults (1)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
