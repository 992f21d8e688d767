"""The command line of the cluster run."""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import bench.cluster
from bench import output
from bench.cluster.checker import Verdict
from bench.cluster.history import History
from bench.cluster.nemesis import FAULTS, LOSING
from bench.cluster.network import enter_namespaces
from bench.cluster.patroni import missing_programs
from bench.cluster.running import run
from common.errors import FrontageError
from common.processes import loop_factory


def main() -> None:
    """Run, and print the verdict; exit with 1 if something was wrong."""
    arguments = _parse()
    if missing := missing_programs():
        sys.exit(f"bench.cluster: not installed: {', '.join(missing)} (bench/README.md, The cluster run)")
    if not arguments.inside and not arguments.loopback:
        enter_namespaces([*sys.argv[1:], "--seed", str(arguments.seed)])
    console = Console(soft_wrap=True)
    if not arguments.inside:
        console.print("without network namespaces (root, `ip` and `nft`): on loopback addresses, and nothing is cut")
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            history, verdict = runner.run(_run(console, arguments))
    except FrontageError as error:
        sys.exit(f"bench.cluster: seed {arguments.seed}: {error}")
    except KeyboardInterrupt:
        sys.exit(1)
    console.print(_table(verdict, arguments))
    for detail in verdict.details:
        console.print(f"seed {arguments.seed}: {detail}\n", highlight=False, markup=False)
    figures = {"seed": arguments.seed, "wrong": verdict.wrong, "figures": verdict.figures, "details": verdict.details}
    console.print(f"written to {output.write(f'cluster-{arguments.seed}', figures | history.as_json())}")
    sys.exit(0 if verdict.is_right else 1)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.cluster",
        description=bench.cluster.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=3.0, help="how long things fail (3)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="for the same faults")
    parser.add_argument(
        "--only", nargs="+", default=(), choices=(*FAULTS, *LOSING), help="these faults, each at least once"
    )
    parser.add_argument("--asynchronous", action="store_true", help="Postgres does not wait for a standby")
    parser.add_argument("--loopback", action="store_true", help="use no network namespaces")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="for its files (/var/tmp)")
    parser.add_argument("--keep", action="store_true", help="keep the directory with the logs")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


async def _run(console: Console, arguments: argparse.Namespace) -> tuple[History, Verdict]:
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    seconds = arguments.minutes * 60
    directory = Path(tempfile.mkdtemp(prefix="frontage-cluster-", dir=arguments.directory))
    os.chmod(directory, 0o755)  # Postgres is another user when we are root
    console.print(f"seed {arguments.seed}, in {directory}")
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=seconds)

        def show(what: str, done: float) -> None:
            progress.update(task, description=what, completed=done)
            if not console.is_terminal:
                console.print(f"{done:7.1f} s  {what}", highlight=False)

        try:
            return await run(
                directory,
                seed=arguments.seed,
                seconds=seconds,
                has_namespaces=arguments.inside,
                is_synchronous=not arguments.asynchronous,
                only=arguments.only,
                on_step=show,
            )
        finally:
            if not arguments.keep:
                _remove(directory)


def _remove(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)


def _table(verdict: Verdict, arguments: argparse.Namespace) -> Table:
    replication = "asynchronous" if arguments.asynchronous else "synchronous"
    table = Table(title=f"Several machines, {replication}, seed {arguments.seed}", box=box.SIMPLE_HEAD)
    for title in ("", "", ""):
        table.add_column(title)
    for what, seen in verdict.figures.items():
        table.add_row(what, seen, "")
    for what, times in verdict.wrong.items():
        table.add_row(what, f"{times}", "[red]wrong[/]" if times else "[green]right[/]")
    return table


if __name__ == "__main__":
    main()
