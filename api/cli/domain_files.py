"""`frontage import` and `frontage export`: an application's domains from a file, and into one.

An import writes some rows at a time, each batch in a transaction of its own, so that other applications wait for none
of it. One that was interrupted is run again: what is there already is left as it is.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, TextIO

import typer

from api.cli.printing import AsJson, print_json
from common.errors import OperatorError

if TYPE_CHECKING:
    from rich.progress import Progress

    from api.cli.services import CommandServices
    from api.services.domain_import import DomainImport
    from api.services.preparation_import import PreparationImport
    from common.db.applications import Application
    from common.db.domain_rows import Row
    from common.db.pool import Database

_AT_ONCE = 50
_MOST_REPORTED = 1000
_STANDARD = "-"


class FormatOption(StrEnum):
    """How a file of domains is written."""

    CSV = "csv"
    JSON = "json"


ApplicationOption = Annotated[str, typer.Option("--application", metavar="ID", help="Whose domains they are.")]
FormatChoice = Annotated[
    FormatOption | None, typer.Option("--format", help="Where the file's name does not end in .csv or .json.")
]


def import_domains(
    file: Annotated[str, typer.Argument(metavar="FILE", help="CSV or JSON; - is the standard input.")],
    application: ApplicationOption,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    prepare: Annotated[
        bool,
        typer.Option(
            "--prepare",
            help="Serve each before its DNS leads here, as `frontage domain prepare` does.",
        ),
    ] = False,
    file_format: FormatChoice = None,
    as_json: AsJson = False,
) -> None:
    """Add an application's domains from a file, and change existing ones to match it.

    A row has product (power, secure or monitor) and domain, and the fields of the API's body for it. No DNS is asked.
    The command may be interrupted, and run again: rows that are there already are left as they are.
    """
    from api.cli.services import run_with_services
    from api.services.domain_files import format_of

    chosen = file_format.value if file_format else format_of(file)
    with _reading(file) as (source, size):
        run = _Import(source, chosen, size, is_dry=dry_run, prepares=prepare)
        run_with_services(lambda services: run.perform(services, application))
    _report(run, dry_run, as_json)
    if run.counts["refused"]:
        raise typer.Exit(1)


def export_domains(
    application: ApplicationOption,
    file: Annotated[str, typer.Argument(metavar="FILE", help="CSV or JSON; - is the standard output.")] = _STANDARD,
    file_format: FormatChoice = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print how many rows a file got; on the standard output, rows as JSON.")
    ] = False,
) -> None:
    """Write an application's domains into a file that `frontage import` reads."""
    from api.cli.database import run_with_database
    from api.services.domain_files import format_of

    if file != _STANDARD:
        chosen = file_format.value if file_format else format_of(file)
    elif as_json and file_format is FormatOption.CSV:
        raise typer.BadParameter("--json prints JSON, --format csv CSV: leave one of them out")
    else:
        chosen = file_format.value if file_format else "json" if as_json else "csv"
    with _writing(file) as target:
        written = run_with_database(lambda database: _export(database, application, chosen, target))
    if as_json and file != _STANDARD:
        print_json({"file": file, "format": chosen, "rows": written})
    else:
        typer.echo(f"{written:,} rows", err=True)


# Import -----------------------------------------------------------------------------------------------------------


class _Import:
    """One a command: reads the file once."""

    def __init__(self, source: BinaryIO, file_format: Any, size: int | None, *, is_dry: bool, prepares: bool) -> None:
        self._source = source
        self._format = file_format
        self._size = size
        self._is_dry = is_dry
        self._prepares = prepares
        self.counts: Counter[str] = Counter()
        self.errors: list[dict[str, Any]] = []
        """The first ones; all are printed."""

    async def perform(self, services: CommandServices, application_id: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        from api.services.domain_files import read_rows

        importing = self._importing(services, await find_application(services.database, application_id))
        columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
        with Progress(*columns, console=Console(stderr=True, soft_wrap=True)) as progress:
            task = progress.add_task("reading", total=self._size)
            rows = read_rows(self._source, self._format, lambda count: progress.advance(task, count))
            for batch in _batches(rows):
                await self._write(importing, batch, progress)
                done = ", ".join(f"{count:,} {words}" for words, count in sorted(self.counts.items()))
                progress.update(task, description=f"dry run: {done}" if self._is_dry else done)

    def _importing(self, services: CommandServices, application: Application) -> DomainImport | PreparationImport:
        from api.services.domain_import import DomainImport
        from api.services.preparation_import import PreparationImport

        if self._prepares:
            return PreparationImport(services.preparations, application)
        return DomainImport.of(services.settings, services.database, application)

    async def _write(
        self,
        importing: DomainImport | PreparationImport,
        batch: list[tuple[int, Row | str]],
        progress: Progress,
    ) -> None:
        rows = [(line, row) for line, row in batch if not isinstance(row, str)]
        outcomes = await importing.write([row for _, row in rows], is_dry=self._is_dry)
        refused = [(line, row) for line, row in batch if isinstance(row, str)]
        for (line, row), outcome in zip(rows, outcomes, strict=True):
            if isinstance(outcome, str):
                self.counts[outcome] += 1
            else:
                refused.append((line, f"{row.domain}: {outcome}"))
        for line, words in sorted(refused):
            self.counts["refused"] += 1
            progress.console.print(f"line {line}: {words}", markup=False, highlight=False)
            if len(self.errors) < _MOST_REPORTED:
                self.errors.append({"line": line, "error": words})


def _batches(rows: Iterable[tuple[int, Row | str]]) -> Iterator[list[tuple[int, Row | str]]]:
    batch: list[tuple[int, Row | str]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def _report(run: _Import, dry_run: bool, as_json: bool) -> None:
    counts = {words: run.counts[words] for words in ("added", "changed", "unchanged", "refused")}
    if as_json:
        typer.echo(json.dumps({"dryRun": dry_run, **counts, "errors": run.errors}))
        return
    verb = "would be " if dry_run else ""
    typer.echo(
        f"{sum(counts.values()):,} rows: {counts['added']:,} {verb}added, {counts['changed']:,} {verb}changed,"
        f" {counts['unchanged']:,} as they were, {counts['refused']:,} refused"
    )
    if counts["refused"]:
        typer.echo(
            "Mend the lines named above and run the same command again: rows that are there already are left as they"
            " are.",
            err=True,
        )
    elif dry_run:
        typer.echo("Nothing was written. Run the command without --dry-run.", err=True)


@contextlib.contextmanager
def _reading(file: str) -> Iterator[tuple[BinaryIO, int | None]]:
    """Open the file, and return its size if it has one. Raises: `OperatorError`."""
    if file == _STANDARD:
        yield sys.stdin.buffer, None
        return
    try:
        with Path(file).open("rb") as source:
            yield source, Path(file).stat().st_size
    except OSError as error:
        raise OperatorError(f"{file} cannot be read: {error.strerror}") from error


# Export -----------------------------------------------------------------------------------------------------------


async def _export(database: Database, application_id: str, file_format: Any, target: TextIO) -> int:
    from api.services.domain_files import end_of, write_rows
    from common.db import domain_rows

    await find_application(database, application_id)
    written = 0
    async for rows in domain_rows.read(database, application_id):
        for text in write_rows(rows, file_format, is_first=not written):
            target.write(text)
        written += len(rows)
    target.write(end_of(file_format, is_empty=not written))
    return written


@contextlib.contextmanager
def _writing(file: str) -> Iterator[TextIO]:
    """Open the file to write. Raises: `OperatorError`."""
    if file == _STANDARD:
        yield sys.stdout
        return
    try:
        with Path(file).open("w", encoding="utf-8", newline="") as target:
            yield target
    except OSError as error:
        raise OperatorError(f"{file} cannot be written: {error.strerror}") from error


async def find_application(database: Database, application_id: str) -> Application:
    """Return the application, which is not being deleted. Raises: `OperatorError`."""
    from common.db.applications import get_application

    async with database.connection() as connection:
        application = await get_application(connection, application_id)
    if application is None:
        raise OperatorError(f"there is no application {application_id}: `frontage app list` prints them")
    if application.deleting_at is not None:
        raise OperatorError(f"application {application_id} is being deleted")
    return application
