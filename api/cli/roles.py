"""`frontage edge`, `api` and `monitor`: become the role. The command line imports none of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli.printing import AsJson, print_result

if TYPE_CHECKING:
    from common.db.session import Connection
    from common.secrets import Keyring

edge = typer.Typer(help="Run the proxy: it serves domains, from its own copy when the database is away.")

_SHORTEST_ID = 4


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
    from api.cli.database import run_in_database
    from common.db import audit, edge_nodes
    from common.errors import OperatorError

    async def work(connection: Connection, _: Keyring) -> str:
        found = await edge_nodes.find(connection, node) if len(node) >= _SHORTEST_ID else []
        if len(found) != 1:
            seen = f"{len(found)} edges have an id" if found else "no edge of the last day has an id"
            raise OperatorError(f"{seen} that begins with {node}: `frontage status` lists the edges")
        lost = found[0][0]
        if not await edge_nodes.forget(connection, lost.node_id):
            raise OperatorError(f"edge {lost.label} on {lost.host} runs: stop it first, and it signs off by itself")
        await audit.record(connection, "edge.forget", lost.label, before={"host": lost.host, "nodeId": lost.node_id})
        return lost.node_id

    node_id = run_in_database(work)
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
