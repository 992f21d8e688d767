"""The command line."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

import bench.tenants
from bench import output
from bench.tenants.offences import ask_beside_dead_dns, ask_beside_slow_connections, list_beside_lists
from bench.tenants.waits import Waits, table
from bench.tenants.world import two_tenants
from common.errors import FrontageError
from common.processes import loop_factory, settle_garbage_collector

_OFFENCES = ("dns", "bodies", "lists")
_DOMAINS = 1_000_000
_LEAST_DOMAINS = 1000
_PAGE_COLUMNS = 120  # where there is no terminal to ask


def main() -> None:
    """Run the bench and print its table."""
    arguments = _parse()
    console = Console(soft_wrap=True, width=None if sys.stdout.isatty() else _PAGE_COLUMNS)
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            measured = runner.run(_measure(console, arguments.offences, arguments.domains, arguments.directory))
    except FrontageError as error:
        sys.exit(f"bench.tenants: {error}")
    except KeyboardInterrupt:
        sys.exit(1)
    console.print(table(measured, arguments.domains))
    figures = {"domains": arguments.domains, "figures": [waits.as_json() for waits in measured]}
    console.print(f"written to {output.write('tenants', figures)}")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.tenants",
        description=bench.tenants.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--offences", nargs="+", choices=_OFFENCES, default=_OFFENCES, help="measure these only (all)")
    parser.add_argument("--domains", type=int, default=_DOMAINS, help="of the application that lists them (1,000,000)")
    parser.add_argument("--directory", type=Path, help="where the database is made (TMPDIR)")
    arguments = parser.parse_args()
    if arguments.domains < _LEAST_DOMAINS:
        parser.error(f"--domains must be at least {_LEAST_DOMAINS}")
    return arguments


async def _measure(console: Console, offences: Sequence[str], domains: int, directory: Path | None) -> list[Waits]:
    settle_garbage_collector()
    with Progress(console=console, transient=True) as progress:
        async with two_tenants(directory) as world:
            measured: list[Waits] = []
            for offence in offences:
                match offence:
                    case "dns":
                        measured += await ask_beside_dead_dns(world, progress)
                    case "bodies":
                        measured += await ask_beside_slow_connections(world, progress)
                    case "lists":
                        measured += await list_beside_lists(world, progress, domains)
            return measured


if __name__ == "__main__":
    main()
