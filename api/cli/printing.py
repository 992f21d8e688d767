"""How commands print: words for people or, with `--json`, one JSON document on standard output for programs.

A command that fails prints ``{"message"[, "code", "hint"]}`` there (`api.cli.__main__`) and exits with a status
other than 0; standard error has the words for people in any case.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document, for programs.")]
AlwaysJson = Annotated[bool, typer.Option("--json", help="Changes nothing: JSON is printed in any case.")]

UNBOUNDED = 100_000
"""Columns of an output that is no terminal: programs and searches read whole lines."""


def make_console() -> Console:
    """Make a console for tables: it fits a terminal, and wraps nothing in a pipe or a file."""
    from rich.console import Console

    return Console(file=sys.stdout, width=None if sys.stdout.isatty() else UNBOUNDED)


def print_json(value: Any) -> None:
    """Print one JSON document; times and paths become strings."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def in_camel_case(answer: Any) -> Any:
    """Return an answer of the API with the names that commands give its fields: `ended_at` as `endedAt`."""
    if isinstance(answer, dict):
        return {_camel(name): in_camel_case(each) for name, each in answer.items()}
    return list(map(in_camel_case, answer)) if isinstance(answer, list) else answer


def _camel(name: str) -> str:
    first, *more = name.split("_")
    return first + "".join(map(str.capitalize, more))


def print_list(lines: Sequence[str], *, none: str, more: str | None) -> None:
    """Print a list line by line; on standard error the words `none` where it is empty, and `more`, the next page's."""
    if not lines:
        typer.echo(none, err=True)
    for line in lines:
        typer.echo(line)
    if more:
        typer.echo(f"there may be more: {more}", err=True)


def print_result(value: Any, words: str, *, as_json: bool) -> None:
    """Print the value as JSON, or the words for people."""
    if as_json:
        print_json(value)
    else:
        typer.echo(words)
