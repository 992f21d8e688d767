"""`frontage flow …`: the flows of the connect modal, and where people give up."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli.printing import AsJson, in_camel_case, make_console, print_json, print_list

if TYPE_CHECKING:
    from common.db.connect_flow_list import FlowPart, Funnel, ListedFlow

app = typer.Typer(help="Flows of the connect modal: who connects what, and where people give up.", no_args_is_help=True)

ApplicationId = Annotated[str, typer.Argument(metavar="ID", help="The applicationId.")]


class StepOption(StrEnum):
    """A step of a flow."""

    DOMAIN = "domain"
    INSPECTION = "inspection"
    PLAN = "plan"
    WRITING = "writing"
    RECORDS = "records"
    ENROLMENT = "enrolment"
    LIVE = "live"


@app.command("list")
def list_(
    application_id: ApplicationId,
    domain: Annotated[str | None, typer.Option(help="Of this apex or whole name only.")] = None,
    user: Annotated[str | None, typer.Option(metavar="ID", help="Of this userId only.")] = None,
    step: Annotated[StepOption | None, typer.Option(help="That came so far, and no further.")] = None,
    is_open: Annotated[bool | None, typer.Option("--open/--over", help="Only those that are not over, or are.")] = None,
    after: Annotated[str | None, typer.Option(metavar="FLOW", help="Begin behind this flow: the next part.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many at most.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Print an application's flows, the newest first: how far each came, and what stopped it."""
    from api.answers.flow_list import flow_list
    from api.cli.services import CommandServices, run_with_services
    from api.schemas.flow_list import flow_filter

    which = flow_filter(domain=domain, step=None if step is None else step.value, user_id=user, is_open=is_open)

    async def work(services: CommandServices) -> FlowPart:
        application = await services.application(application_id)
        return await services.flows.list_part(application, which, after=after, limit=limit)

    part = run_with_services(work)
    if as_json:
        print_json(in_camel_case(flow_list(part, limit)))
        return
    print_list(list(map(_line, part.flows)), none="no flow matches", more=part.next and f"--after {part.next}")


def _line(each: ListedFlow) -> str:
    who = f"  {each.user_id}" if each.user_id else ""
    problem = f"  ({each.error.code})" if each.error else ""
    return (
        f"{each.updated_at:%Y-%m-%d %H:%M:%S}  {each.id}  {each.host or '-'}  {each.step}  {each.state}{who}{problem}"
    )


@app.command()
def funnel(
    application_id: ApplicationId,
    days: Annotated[int, typer.Option(min=1, max=30, help="Of flows that began in the last so many days.")] = 7,
    as_json: AsJson = False,
) -> None:
    """Count how far an application's flows came, by step and by DNS provider."""
    from api.answers.flow_list import funnel as answer
    from api.cli.services import CommandServices, run_with_services

    async def work(services: CommandServices) -> Funnel:
        return await services.flows.read_funnel(await services.application(application_id), days)

    found = run_with_services(work)
    if as_json:
        print_json(answer(found))
        return
    from rich import box
    from rich.table import Table

    table = Table("step", *(each.step for each in found.steps), box=box.SIMPLE_HEAD)
    for name in ("reached", "stopped", "open"):
        table.add_row(name, *(str(getattr(each, name)) for each in found.steps))
    for provider in found.providers:
        name = "not looked at" if provider.id is None else provider.name or "unknown provider"
        table.add_row(f"stopped, {name}", *(str(each.stopped) for each in provider.steps))
    make_console().print(table)
