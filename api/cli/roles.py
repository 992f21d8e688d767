"""`frontage edge`, `api` and `monitor`: become the role. The command line imports none of them."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from api.cli.printing import AsJson, print_result

edge = typer.Typer(help="Run the proxy: it serves domains, from its own copy when the database is away.")


@edge.callback(invoke_without_command=True)
def run_edge(context: typer.Context) -> None:
    """Run the proxy: it serves domains, from its own copy when the database is away."""
    if context.invoked_subcommand is None:
        _become("edge")


@edge.command()
def forget(
    node: Annotated[str, typer.Argument(metavar="NODE", help="Its id, or the start that `frontage status` prints.")],
    as_json: AsJson = False,
) -> None:
    """Forget an edge that was removed without a stop: nothing warns of it any more.

    An edge that is stopped (SIGTERM) signs off by itself, and one that is lost is forgotten after a day. One that was
    only cut off from the database appears again when it is back.
    """
    from api.cli.services import CommandServices, run_with_services
    from api.rights import OPERATOR

    async def work(services: CommandServices) -> str:
        return await services.operations.forget_edge(OPERATOR, node)

    node_id = run_with_services(work)
    print_result({"forgotten": node_id}, f"edge {node_id[:8]} is forgotten", as_json=as_json)


def api() -> None:
    """Run the management API."""
    _become("api")


def monitor() -> None:
    """Run the background work: certificates, checks, deliveries. Run any number of them."""
    _become("monitor")


def _become(role: str) -> None:
    from common.processes import role_argv

    argv = role_argv(role)
    os.execv(argv[0], argv)  # noqa: S606 - the same process, so that its parent's signals reach the role
