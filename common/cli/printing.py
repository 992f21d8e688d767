"""How commands print: words for people or, with `--json`, one JSON document on standard output for programs.

A command that fails prints ``{"message"[, "code", "hint"]}`` there (`common.cli.__main__`) and exits with a status
other than 0; standard error has the words for people in any case.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document, for programs.")]
AlwaysJson = Annotated[bool, typer.Option("--json", help="Changes nothing: JSON is printed in any case.")]


def print_json(value: Any) -> None:
    """Times and paths become strings."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def print_result(value: Any, words: str, *, as_json: bool) -> None:
    if as_json:
        print_json(value)
    else:
        typer.echo(words)
