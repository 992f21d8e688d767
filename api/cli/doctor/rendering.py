"""Prints findings: a table on a terminal, one line each where the output is piped, or JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import typer

from api.cli.doctor.findings import Finding, FindingState

_COLOURS = {FindingState.OK: "green", FindingState.NOTE: "yellow", FindingState.BROKEN: "red"}


def show(findings: Sequence[Finding], *, as_json: bool) -> None:
    """Print the findings, as JSON or in words."""
    if as_json:
        is_ok = all(finding.state is not FindingState.BROKEN for finding in findings)
        content = {"ok": is_ok, "findings": [finding.as_json() for finding in findings]}
        typer.echo(json.dumps(content, indent=2))
    elif sys.stdout.isatty():
        _show_table(findings)
    else:
        for finding in findings:
            typer.echo(f"{finding.state.value}: {finding.subject}: {finding.text}")


def _show_table(findings: Sequence[Finding]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("check", "", "what was seen, and what to do", box=None, pad_edge=False)
    for finding in findings:
        colour = _COLOURS[finding.state]
        table.add_row(finding.subject, f"[{colour}]{finding.state.value}[/{colour}]", escape(finding.text))
    Console().print(table)
