"""`frontage metrics alerts` and `frontage metrics dashboard`."""

from __future__ import annotations

import os

import typer

from api.cli.printing import AlwaysJson, AsJson, print_json

app = typer.Typer(help="Rules for Prometheus and charts for Grafana.", no_args_is_help=True)


@app.command()
def alerts(as_json: AsJson = False) -> None:
    """Print alerting rules for Prometheus; each links to this handbook below PUBLIC_URL."""
    from api.cli.metrics.alerts import in_yaml, rules
    from common.settings import load

    found = rules(f"{load(os.environ).base_url}/docs")
    if as_json:
        print_json(found)
    else:
        typer.echo(in_yaml(found), nl=False)


@app.command()
def dashboard(_: AlwaysJson = False) -> None:
    """Print a dashboard for Grafana to import."""
    from api.cli.metrics.dashboard import dashboard as definition

    typer.echo(definition(), nl=False)
