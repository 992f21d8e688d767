"""`frontage domain prepare`, `prepared` and `unprepare`: domains that are served before their DNS leads here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli.domain_names import DomainArgument, name_of
from api.cli.enrolment import ApplicationOption, MetadataOption, ResponsePolicyOption, VisitorsOption, read_rules
from api.cli.printing import AsJson, print_json, print_result
from common.errors import OperatorError

if TYPE_CHECKING:
    from api.cli.services import CommandServices
    from api.services.preparations import PreparedDomain

_READ_AT_ONCE = 500


def prepare(
    domain: DomainArgument,
    application: ApplicationOption,
    product: Annotated[str, typer.Option(help="What it is to be in: power or secure.")] = "power",
    application_url: Annotated[
        str | None, typer.Option(help="The origin to serve it from; without one, the application's.")
    ] = None,
    root_path_access: Annotated[
        list[str] | None, typer.Option(metavar="PATH", help="Power: a path served from the origin's root; repeat.")
    ] = None,
    redirect_to: Annotated[str | None, typer.Option(help="Secure: where to send all visitors instead.")] = None,
    metadata: MetadataOption = None,
    visitors: VisitorsOption = None,
    response_policy: ResponsePolicyOption = None,
    await_dns: Annotated[
        bool,
        typer.Option("--await-dns", help="Serve nothing of it before its DNS leads here, and add it by itself then."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Have a domain served, with its certificate, before its DNS leads here; print the records to set.

    Once the first record is seen, every edge serves the domain. Run it again to keep it so for another 30 days.
    """
    from api.cli.services import run_with_services
    from api.services.domain_files import InvalidRow, parse_row
    from api.services.domain_import import request_of
    from common.db.domain_rows import EnrolmentRow

    given = {
        "product": product,
        "domain": domain,
        "applicationUrl": application_url,
        "powerRootPathAccess": root_path_access or None,
        "redirectTo": redirect_to,
        **read_rules(metadata, visitors, response_policy),
    }

    async def work(services: CommandServices) -> PreparedDomain:
        owner = await services.application(application)
        given["applicationUrl"] = application_url or (owner.application_url or None if redirect_to is None else None)
        try:
            row = parse_row({key: value for key, value in given.items() if value is not None})
        except InvalidRow as error:
            raise OperatorError(str(error)) from error
        if not isinstance(row, EnrolmentRow):
            raise OperatorError("--product: power or secure")
        return (await services.preparations.prepare(owner, request_of(row), awaits_dns=await_dns))[0]

    _print(run_with_services(work), as_json=as_json)


def prepared(
    application: ApplicationOption,
    domain: Annotated[str | None, typer.Argument(metavar="DOMAIN", help="One of them; without it, all.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print the prepared domains of an application: how far each is, and the records that are still to be set."""
    from api.cli.services import run_with_services

    async def work(services: CommandServices) -> list[PreparedDomain]:
        owner, service = await services.application(application), services.preparations
        if domain is not None:
            return [await service.find(owner, name_of(domain))]
        found: list[PreparedDomain] = []
        while page := await service.list_page(owner, after=found[-1].domain if found else "", most=_READ_AT_ONCE):
            found += page
        return found

    found = run_with_services(work)
    if domain is not None:
        _print(found[0], as_json=as_json)
    elif as_json:
        print_json({"domains": [_shown(each) for each in found]})
    else:
        for each in found:
            missing = (record for record in each.records if record.state == "missing")
            todo = "; ".join(f"{record.host} {record.type} {record.value}" for record in missing)
            typer.echo(f"{each.domain}  {each.preparation.state}  {todo}".rstrip())


def unprepare(domain: DomainArgument, application: ApplicationOption, as_json: AsJson = False) -> None:
    """Prepare a domain no longer, before its DNS leads here: its certificate and its settings end with that."""
    from api.cli.services import run_with_services

    name = name_of(domain)

    async def work(services: CommandServices) -> None:
        await services.preparations.end(await services.application(application), name)

    run_with_services(work)
    print_result({"domain": name.text, "prepared": False}, f"{name} is prepared no longer", as_json=as_json)


def _print(prepared: PreparedDomain, *, as_json: bool) -> None:
    if as_json:
        print_json(_shown(prepared))
        return
    typer.echo(f"{prepared.domain}: {prepared.preparation.state}")
    for record in prepared.records:
        typer.echo(f"  {record.state:<8}{record.host} {record.type} {record.value}")
    typer.echo(prepared.next_step)


def _shown(prepared: PreparedDomain) -> dict[str, Any]:
    from api.answers.preparation import preparation_answer

    return {**preparation_answer(prepared)}
