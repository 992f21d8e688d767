"""`frontage webhook …`: sends deliveries again, sends a test, enables an endpoint."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli.printing import AsJson, print_result
from common.errors import OperatorError

if TYPE_CHECKING:
    from common.db.pool import Database
    from common.db.session import Connection
    from common.secrets import Keyring

app = typer.Typer(help="Deliveries of events to applications.", no_args_is_help=True)

_AT_ONCE = 1000
_FORMATS = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]


ApplicationId = Annotated[str, typer.Argument(metavar="ID", help="The applicationId.")]


@app.command()
def replay(
    application_id: ApplicationId,
    since: Annotated[datetime, typer.Option("--from", formats=_FORMATS, help="Events from then on, in UTC.")],
    until: Annotated[
        datetime | None, typer.Option("--to", formats=_FORMATS, help="Events before then, in UTC.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Send again every delivery that failed, of the events of a range of time. An interrupted replay is continued by
    the same command."""
    from api.cli.database import run_with_database

    start, end = since.replace(tzinfo=UTC), until and until.replace(tzinfo=UTC)

    async def work(database: Database) -> int:
        return await _replay(database, application_id, start, end)

    count = run_with_database(work)
    shown = {"applicationId": application_id, "sentAgain": count}
    print_result(shown, f"{count} deliveries are sent again", as_json=as_json)


async def _replay(database: Database, application_id: str, since: datetime, until: datetime | None) -> int:
    from common.db import deliveries

    async with database.connection() as connection:
        await _require_url(connection, application_id)
    total = 0
    while True:
        async with database.transaction() as connection:
            count = await deliveries.replay_settled(connection, application_id, since, until, most=_AT_ONCE)
        total += count
        if count < _AT_ONCE:
            return total


@app.command("replay-event")
def replay_event(
    application_id: ApplicationId,
    event: Annotated[str, typer.Argument(metavar="EVENT", help="The event's id.")],
    as_json: AsJson = False,
) -> None:
    """Send one event again, whatever became of it."""
    from api.cli.database import run_in_database
    from common.db import deliveries, events

    async def work(connection: Connection, _: Keyring) -> None:
        await _require_open(connection, application_id)
        if not await events.has_event(connection, application_id, event):
            raise OperatorError(f"application {application_id} has no event {event[:100]}")
        await deliveries.replay(connection, event, application_id)

    run_in_database(work)
    print_result({"applicationId": application_id, "event": event}, f"{event} is sent again", as_json=as_json)


@app.command("test")
def send_test(application_id: ApplicationId, as_json: AsJson = False) -> None:
    """Send a test event to an application's webhook."""
    from api.cli.database import run_in_database
    from common.db import audit, events
    from common.db.events import NewEvent

    async def work(connection: Connection, _: Keyring) -> str:
        await _require_open(connection, application_id)
        event = await events.record(connection, NewEvent(application_id, events.TEST, None, None, {}))
        await audit.record(connection, "webhook.test", event, application_id=application_id)
        return event

    event = run_in_database(work)
    shown = {"applicationId": application_id, "event": event}
    print_result(shown, f"the test event {event} is sent", as_json=as_json)


@app.command()
def enable(application_id: ApplicationId, as_json: AsJson = False) -> None:
    """Enable an endpoint that was disabled, and send what is pending."""
    from api.cli.database import run_in_database
    from common.db import audit, webhook_endpoints

    async def work(connection: Connection, _: Keyring) -> None:
        await _require_url(connection, application_id)
        await webhook_endpoints.begin_anew(connection, application_id)
        await audit.record(connection, "webhook.enable", application_id, application_id=application_id)

    run_in_database(work)
    print_result({"applicationId": application_id}, "enabled; what is pending is sent first", as_json=as_json)


async def _require_open(connection: Connection, application_id: str) -> None:
    """Raises: `OperatorError`."""
    from common.db import webhook_endpoints

    await _require_url(connection, application_id)
    if (await webhook_endpoints.get_endpoint(connection, application_id)).disabled_at is not None:
        raise OperatorError(f"the webhook is disabled: `frontage webhook enable {application_id}` enables it")


async def _require_url(connection: Connection, application_id: str) -> None:
    """Raises: `OperatorError`."""
    from common.db import applications

    application = await applications.get_application(connection, application_id)
    if application is None:
        raise OperatorError(f"there is no application {application_id}: `frontage app list` prints them")
    if application.webhook_url is None:
        raise OperatorError(f"application {application_id} has no webhook URL: there is nowhere to send to")
