"""The command `frontage doctor`."""

from __future__ import annotations

import typer

from api.cli.printing import AsJson


def doctor(
    as_json: AsJson = False,
) -> None:
    """Check this installation and say what to do; exits 1 when something is broken."""
    from api.cli.doctor.examination import examine
    from api.cli.doctor.findings import FindingState
    from api.cli.doctor.rendering import show

    findings = examine()
    show(findings, as_json=as_json)
    if any(finding.state is FindingState.BROKEN for finding in findings):
        raise typer.Exit(1)
