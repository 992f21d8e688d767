"""`frontage webhook …`: sends deliveries again, sends a test, enables an endpoint."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from api.cli.printing import AsJson, print_result

app = typer.Typer(help="Deliveries of events to applications.", no_args_is_help=True)

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
    """Send again every delivery that failed, of the events of a range of time.

    An interrupted replay is continued by the same command.
    """
    from api.cli.services import CommandServices, run_with_services

    start, end = since.replace(tzinfo=UTC), until and until.replace(tzinfo=UTC)

    async def work(services: CommandServices) -> int:
        application, total = await services.application(application_id), 0
        while True:
            count, has_more = await services.webhooks.replay_between(application, start, end)
            total += count
            if not has_more:
                return total

    count = run_with_services(work)
    shown = {"applicationId": application_id, "sentAgain": count}
    print_result(shown, f"{count} deliveries are sent again", as_json=as_json)


@app.command("replay-event")
def replay_event(
    application_id: ApplicationId,
    event: Annotated[str, typer.Argument(metavar="EVENT", help="The event's id.")],
    as_json: AsJson = False,
) -> None:
    """Send one event again, whatever became of it."""
    from api.cli.services import CommandServices, run_with_services

    async def work(services: CommandServices) -> None:
        await services.webhooks.replay(await services.application(application_id), event)

    run_with_services(work)
    print_result({"applicationId": application_id, "event": event}, f"{event} is sent again", as_json=as_json)


@app.command("test")
def send_test(application_id: ApplicationId, as_json: AsJson = False) -> None:
    """Send a test event to an application's webhook."""
    from api.cli.services import CommandServices, run_with_services

    async def work(services: CommandServices) -> str:
        return await services.webhooks.send_test(await services.application(application_id))

    event = run_with_services(work)
    shown = {"applicationId": application_id, "event": event}
    print_result(shown, f"the test event {event} is sent", as_json=as_json)


@app.command()
def enable(application_id: ApplicationId, as_json: AsJson = False) -> None:
    """Enable an endpoint that was disabled, and send what is pending."""
    from api.cli.services import CommandServices, run_with_services

    async def work(services: CommandServices) -> None:
        await services.webhooks.enable(await services.application(application_id))

    run_with_services(work)
    print_result({"applicationId": application_id}, "enabled; what is pending is sent first", as_json=as_json)
