"""`frontage domain …`: which application holds a name, freeing it, moving it by hand, checking its DNS again.

Enrolling is `api.cli.enrolment`'s.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli.api_domain import publish_api
from api.cli.domain_names import DomainArgument, name_of
from api.cli.enrolment import monitor, power, remove, secure
from api.cli.policies import Legal, Reason, shown_reason
from api.cli.preparing import prepare, prepared, unprepare
from api.cli.printing import AsJson, in_camel_case, print_json, print_list, print_result
from api.cli.status_page import status_link
from common.errors import OperatorError

if TYPE_CHECKING:
    from api.cli.services import CommandServices
    from api.services.operator_domains import DescribedDomain
    from common.db.certificates import InService
    from common.db.domains import Domain
    from common.db.orders import OrderState
    from common.db.ownership import FormerHolder
    from common.db.policies import Policy
    from common.names import DomainName

app = typer.Typer(help="Domains: enrolled, changed, shown, released and moved by hand.", no_args_is_help=True)

_LARGEST_PAGE = 10_000


class ProductOption(StrEnum):
    """A product that a domain is in."""

    POWER = "power"
    SECURE = "secure"


class StatusOption(StrEnum):
    """Whether a domain is served."""

    ACTIVE = "active"
    INACTIVE = "inactive"


@app.command("list")
def list_(
    application: Annotated[str | None, typer.Option(metavar="ID", help="Of this application only.")] = None,
    product: Annotated[ProductOption | None, typer.Option(help="In this product only.")] = None,
    status: Annotated[StatusOption | None, typer.Option(help="With this status only.")] = None,
    after: Annotated[str, typer.Option(metavar="DOMAIN", help="Begin after this name: the next page.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=_LARGEST_PAGE, help="How many names at most.")] = 100,
    blocked: Annotated[bool, typer.Option("--blocked", help="The blocked names instead, enrolled or not.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print enrolled domains by name: product, status, application."""
    from api.cli.services import run_with_services
    from api.rights import OPERATOR

    start = name_of(after).text if after else ""
    if blocked:
        if application or product or status:
            raise OperatorError("--blocked lists the blocked names of all applications: give it alone")
        _list_blocked(start, limit, as_json=as_json)
        return

    async def work(services: CommandServices) -> list[Domain]:
        if application is not None:
            await services.application(application)
        return await services.domains.list_part(
            OPERATOR,
            application_id=application,
            product=None if product is None else product.value,
            status=None if status is None else status.value,
            after=start,
            most=limit,
        )

    found = run_with_services(work)
    names = list(dict.fromkeys(each.domain for each in found))
    next_page = names[-1] if len(names) == limit else None
    if as_json:
        print_json({"domains": [_shown(each) for each in found], "next": next_page})
        return
    lines = [f"{each.domain}  {each.product}  {each.status}  {each.application_id}" for each in found]
    print_list(lines, none="no enrolled domain matches", more=next_page and f"--after {next_page}")


@app.command()
def show(domain: DomainArgument, as_json: AsJson = False) -> None:
    """Print all that is known of a name: its holder, claims, certificate and order, and who held it before."""
    from api.cli.services import run_with_services
    from api.rights import OPERATOR

    name = name_of(domain)

    async def work(services: CommandServices) -> DescribedDomain:
        return await services.domains.describe(OPERATOR, name)

    shown = _described(name, run_with_services(work))
    if as_json:
        print_json(shown)
    else:
        for line in _lines(shown):
            typer.echo(line)


@app.command()
def ended(
    application_id: Annotated[str, typer.Argument(metavar="ID", help="The applicationId.")],
    after: Annotated[str, typer.Option(metavar="DOMAIN", help="Begin after this name: the next part.")] = "",
    as_json: AsJson = False,
) -> None:
    """Print an application's domains that ended in the last 30 days, and whether their DNS still leads here."""
    from api.answers.ended_domains import ended_domain
    from api.cli.services import run_with_services
    from api.services.ended_domains import MOST_LISTED, EndedDomain

    start = name_of(after).text if after else ""

    async def work(services: CommandServices) -> list[EndedDomain]:
        application = await services.application(application_id)
        return await services.ended_domains.list_part(application, after=start, limit=MOST_LISTED)

    found = run_with_services(work)
    next_part = found[-1].domain if len(found) == MOST_LISTED else None
    if as_json:
        print_json(in_camel_case({"items": list(map(ended_domain, found)), "next": next_part}))
        return
    words = {True: "still leads here", False: "leads elsewhere", None: "could not be asked"}
    lines = [f"{each.domain}  ended {each.ended_at:%Y-%m-%d}  {words[each.leads_here]}" for each in found]
    none = "no domain of the application ended in the last 30 days"
    print_list(lines, none=none, more=next_part and f"--after {next_part}")


@app.command()
def release(domain: DomainArgument, as_json: AsJson = False) -> None:
    """Free a name at once: it is served no more, and no application is remembered as its holder."""
    from api.cli.services import run_with_services
    from api.rights import OPERATOR

    name = name_of(domain)

    async def work(services: CommandServices) -> str | None:
        return await services.operations.release(OPERATOR, name)

    holder = run_with_services(work)
    words = f"{name} is free" + (f": application {holder} has lost it, and is being notified" if holder else "")
    print_result({"domain": name.text, "formerHolder": holder}, words, as_json=as_json)


@app.command()
def block(
    domain: DomainArgument,
    reason: Reason,
    legal: Legal = False,
    as_json: AsJson = False,
) -> None:
    """Answer every request of a name with a reason page, at every edge at once.

    Its enrolment stays, and no application can enrol it anew.
    """
    from api.cli.services import run_with_services
    from api.rights import OPERATOR

    name = name_of(domain)

    async def work(services: CommandServices) -> int:
        return await services.operations.block(OPERATOR, name, reason, is_legal=legal)

    status = run_with_services(work)
    words = f"{name} is blocked: every request is answered {status} with the reason"
    shown = {"domain": name.text, "status": status, "reason": shown_reason(reason)}
    print_result(shown, words, as_json=as_json)


@app.command()
def unblock(domain: DomainArgument, as_json: AsJson = False) -> None:
    """End the block of a name: if it is enrolled, it is served again at once."""
    from api.cli.services import run_with_services
    from api.rights import OPERATOR

    name = name_of(domain)

    async def work(services: CommandServices) -> None:
        await services.operations.unblock(OPERATOR, name)

    run_with_services(work)
    print_result({"domain": name.text, "blocked": False}, f"{name} is no longer blocked", as_json=as_json)


@app.command()
def transfer(
    application_id: Annotated[str, typer.Argument(metavar="ID", help="The application that gets the name.")],
    domain: DomainArgument,
    application_url: Annotated[
        str | None, typer.Option(help="The origin to serve it from; without one, the application's.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Move a name to another application, whatever the DNS proves.

    It keeps its products and nothing else: settings and certificate are new.
    """
    from api.cli.application_options import application_url as parse_url
    from api.cli.services import run_with_services
    from api.rights import OPERATOR

    name, url = name_of(domain), parse_url(application_url)

    async def work(services: CommandServices) -> tuple[str, str]:
        application = await services.application(application_id)
        return await services.operations.transfer(OPERATOR, name, application, url), application.cname_target

    holder, cname_target = run_with_services(work)
    lead = "the edges" if name.is_root else cname_target
    words = (
        f"{name} has moved from application {holder} to {application_id}; its certificate comes once its DNS leads to"
        f" {lead}, and `frontage domain show {name}` prints how it stands"
    )
    shown = {
        "domain": name.text,
        "formerHolder": holder,
        "applicationId": application_id,
        "cnameTarget": None if name.is_root else cname_target,
    }
    print_result(shown, words, as_json=as_json)


@app.command()
def recheck(
    domain: Annotated[
        str | None, typer.Argument(metavar="DOMAIN", help="The host name; without one, give --application.")
    ] = None,
    application: Annotated[
        str | None, typer.Option("--application", metavar="ID", help="All its names whose DNS led elsewhere.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Have a monitor check a name's DNS again at once: a domain whose DNS is back becomes active."""
    from api.cli.database import warn_without_issuer
    from api.cli.services import run_with_services
    from api.rights import OPERATOR

    if (domain is None) == (application is None):
        raise OperatorError("give a domain, or --application ID for all names of one whose DNS led elsewhere")
    if application is not None:

        async def work_on_all(services: CommandServices) -> int:
            return await services.operations.recheck_all(OPERATOR, await services.application(application))

        count = run_with_services(work_on_all)
        words = f"monitors check the DNS of {count:,} names now: those that lead here by now get their certificates"
        print_result({"applicationId": application, "rechecking": count}, words, as_json=as_json)
        return
    assert domain is not None, "one of both is given"
    name = name_of(domain)

    async def work(services: CommandServices) -> None:
        await services.operations.recheck(OPERATOR, name)
        async with services.database.connection() as connection:
            await warn_without_issuer(connection)

    run_with_services(work)
    words = f"a monitor checks the DNS of {name} now; `frontage domain show {name}` prints how it stands"
    print_result({"domain": name.text, "rechecking": True}, words, as_json=as_json)


for _command in (power, secure, monitor, remove, prepare, prepared, unprepare):
    app.command()(_command)
app.command("publish-api")(publish_api)
app.command("status-link")(status_link)


# Parts ---------------------------------------------------------------------------------------------------


def _list_blocked(after: str, limit: int, *, as_json: bool) -> None:
    from api.cli.services import run_with_services
    from api.rights import OPERATOR

    async def work(services: CommandServices) -> list[Policy]:
        return await services.domains.list_blocked(OPERATOR, after=after, most=limit)

    found = run_with_services(work)
    next_page = found[-1].subject if len(found) == limit else None
    if as_json:
        print_json({"domains": [{"domain": each.subject, **each.as_json()} for each in found], "next": next_page})
        return
    lines = [f"{each.subject}  {each.status}  {each.reason}" for each in found]
    print_list(lines, none="no name is blocked", more=next_page and f"--after {next_page}")


def _described(name: DomainName, found: DescribedDomain) -> dict[str, Any]:
    application, blocked = found.application, found.blocked
    return {
        "domain": name.text,
        "application": {"applicationId": application.id, "name": application.name} if application else None,
        "isCnameTarget": found.is_target,
        "blocked": blocked.as_json() | {"scope": blocked.scope} if blocked else None,
        "products": [_shown(each) | _stated(each) for each in found.domains],
        "certificate": _certificate(found.certificate),
        "order": _order(found.order),
        "formerHolders": [_former(each) for each in found.former_holders],
    }


def _lines(shown: dict[str, Any]) -> Iterable[str]:
    application = shown["application"]
    yield f"{shown['domain']}: " + (
        f"held by {application['applicationId']} ({application['name']})" if application else "held by no application"
    )
    if shown["isCnameTarget"]:
        yield "  it is an application's cname target"
    if blocked := shown["blocked"]:
        whose = "its application is suspended" if blocked["scope"] == "application" else "blocked"
        yield f"  {whose} since {blocked['since']}, requests are answered {blocked['status']}: {blocked['reason']}"
    for each in shown["products"]:
        yield f"  {each['product']}: {each['status']}, claimed by {each['claim'] or 'unknown'}"
        for option, stated in (
            ("metadata", "metadata"),
            ("visitors", "visitors"),
            ("response policy", "responsePolicy"),
        ):
            if each[stated]:
                yield f"    {option}: {json.dumps(each[stated], ensure_ascii=False)}"
    for part in ("certificate", "order"):
        if shown[part]:
            known = dict(shown[part])
            until = known.pop("waitsUntil", None)
            waits = f"; waits until {until}: {known.pop('lastError')}" if until else ""
            yield (
                f"  {part}: " + ", ".join(f"{key} {value}" for key, value in known.items() if value is not None) + waits
            )
    for each in shown["formerHolders"]:
        yield (
            f"  held by {each['applicationId']} until {each['releasedAt']}, remembered until {each['rememberedUntil']}"
        )


def _shown(each: Domain) -> dict[str, Any]:
    return {
        "domain": each.domain,
        "product": each.product,
        "status": each.status,
        "applicationId": each.application_id,
        "applicationUrl": each.application_url,
        "redirectTo": each.redirect_to,
        "claim": each.claim,
        "departedAt": _time(each.departed_at),
    }


def _stated(each: Domain) -> dict[str, Any]:
    """Return what was stated for this domain alone, under the API's names."""
    return {
        "metadata": dict(each.metadata or {}),
        "visitors": dict(each.visitors) if each.visitors else None,
        "responsePolicy": dict(each.response_policy) if each.response_policy else None,
    }


def _certificate(certificate: InService | None) -> dict[str, Any] | None:
    if certificate is None:
        return None
    return {
        "issuer": certificate.issuer,
        "notAfter": _time(certificate.not_after),
        "liveAt": _time(certificate.live_at),
    }


def _order(order: OrderState | None) -> dict[str, Any] | None:
    if order is None:
        return None
    return {
        "state": order.state,
        "kind": order.kind,
        "dueAt": _time(order.due_at),
        "waitsUntil": _time(order.waits_until(datetime.now(UTC))),
        "lastError": order.last_error,
    }


def _former(each: FormerHolder) -> dict[str, Any]:
    return {
        "applicationId": each.application_id,
        "releasedAt": _time(each.released_at),
        "rememberedUntil": _time(each.remembered_until),
    }


def _time(at: datetime | None) -> str | None:
    return at.isoformat(timespec="seconds") if at else None
