"""`frontage`: the command line's root. Assembles the commands and renders errors; decides nothing itself.

Commands import what they need when they run, so that `--help` and completion stay quick.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from common.cli import (
    alarms,
    applications,
    audit,
    backup,
    certificates,
    database,
    demo,
    domains,
    master_key,
    organisations,
    roles,
    status,
    up,
    users,
)
from common.cli.doctor.command import doctor
from common.cli.service import command as service
from common.errors import FrontageError

_HELP = "Frontage puts a partner's application on its customers' own domains, with HTTPS."


class _Root(TyperGroup):
    """Reports an invalid argument with our message alone, without the library's prefix."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise


app = typer.Typer(
    cls=_Root,
    help=_HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("up")(up.up)
app.command("edge")(roles.edge)
app.command("api")(roles.api)
app.command("monitor")(roles.monitor)
app.command("migrate")(database.migrate)
app.command("doctor")(doctor)
app.command("audit")(audit.audit)
app.command("status")(status.status)
app.command("backup")(backup.backup)
app.command("restore")(backup.restore)
app.command("token")(applications.token)
app.add_typer(applications.app, name="app")
app.add_typer(domains.app, name="domain")
app.add_typer(users.app, name="user")
app.add_typer(organisations.app, name="organisation")
app.add_typer(alarms.app, name="alarms")
app.add_typer(certificates.app, name="certificate")
app.add_typer(master_key.app, name="master-key")
app.add_typer(service.app, name="service")


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from importlib.metadata import version

        typer.echo(f"frontage {version('frontage')}")
        raise typer.Exit


@app.callback(help=_HELP)
def _root(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Exit with status 1 and one line for an `OperatorError`; with 2 for an invalid command line."""
    try:
        app(prog_name="frontage")
    except FrontageError as error:
        print(f"frontage: {error}", file=sys.stderr)  # noqa: T201 - the command line's own voice
        sys.exit(1)


if __name__ == "__main__":
    main()
