"""`frontage webhook …`: sends deliveries again."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from common.cli.printing import AsJson, print_result
from common.errors import OperatorError

if TYPE_CHECKING:
    from common.db.pool import Database

app = typer.Typer(help="Deliveries of events to applications.", no_args_is_help=True)

_AT_ONCE = 1000
_FORMATS = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]


@app.command()
def replay(
    application_id: Annotated[str, typer.Argument(metavar="ID", help="The applicationId.")],
    since: Annotated[datetime, typer.Option("--from", formats=_FORMATS, help="Events from then on, in UTC.")],
    until: Annotated[
        datetime | None, typer.Option("--to", formats=_FORMATS, help="Events before then, in UTC.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Send again every delivery that failed, of the events of a range of time. An interrupted replay is continued by
    the same command."""
    from common.cli.database import run_with_database

    start, end = since.replace(tzinfo=UTC), until and until.replace(tzinfo=UTC)

    async def work(database: Database) -> int:
        return await _replay(database, application_id, start, end)

    count = run_with_database(work)
    shown = {"applicationId": application_id, "sentAgain": count}
    print_result(shown, f"{count} deliveries are sent again", as_json=as_json)


async def _replay(database: Database, application_id: str, since: datetime, until: datetime | None) -> int:
    from common.db import applications, deliveries

    async with database.connection() as connection:
        application = await applications.get_application(connection, application_id)
    if application is None:
        raise OperatorError(f"there is no application {application_id}: `frontage app list` prints them")
    if application.webhook_url is None:
        raise OperatorError(f"application {application_id} has no webhook URL: there is nowhere to send to")
    total = 0
    while True:
        async with database.transaction() as connection:
            count = await deliveries.replay_settled(connection, application_id, since, until, most=_AT_ONCE)
        total += count
        if count < _AT_ONCE:
            return total
