"""`frontage domain power|secure|monitor|remove`: one name of an application enrolled, changed, and taken out again.

A command does what `frontage import` does with one row: the same rules of ownership, no daily limit, no DNS asked. A
monitor asks the DNS before it orders a certificate.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli.domain_names import DomainArgument, name_of
from api.cli.printing import AsJson, print_result
from common.errors import OperatorError

if TYPE_CHECKING:
    from api.cli.services import CommandServices
    from api.services.domain_import import Outcome
    from common.db.applications import Application
    from common.db.pool import Database

_TTL_SECONDS = 3600
_OPTIONS = {
    "applicationUrl": "--application-url",
    "powerRootPathAccess": "--root-path-access",
    "redirectTo": "--redirect-to",
    "metadata": "--metadata",
    "visitors": "--visitors",
    "responsePolicy": "--response-policy",
    "dnsRecords": "--record",
    "userId": "--user-id",
}
_WORDS: Mapping[Outcome, str] = {"added": "is added", "changed": "is changed", "unchanged": "is as it was"}


def notes(given: list[str] | None) -> list[str] | None:
    """Refuse a note without a key. Raises: `typer.BadParameter`."""
    if any("=" not in each for each in given or ()):
        raise typer.BadParameter("a key and a text, such as plan=pro")
    return given


def json_object(given: str | None) -> str | None:
    """Refuse what is no JSON object. Raises: `typer.BadParameter`."""
    import json

    try:
        if given is not None and not isinstance(json.loads(given), dict):
            raise ValueError(given)
    except ValueError as error:
        raise typer.BadParameter("a JSON object") from error
    return given


def read_rules(metadata: list[str] | None, visitors: str | None, response_policy: str | None) -> dict[str, Any]:
    """Return the notes and rules of a domain as a row has them; None for what is not given."""
    import json

    notes = dict(each.split("=", 1) for each in metadata) if metadata else None
    objects = {"visitors": visitors, "responsePolicy": response_policy}
    return {"metadata": notes} | {name: None if text is None else json.loads(text) for name, text in objects.items()}


ApplicationOption = Annotated[str, typer.Option("--application", metavar="ID", help="Whose domain it is.")]


MetadataOption = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=TEXT", help="A note of yours, in place of all of before; once for each.", callback=notes),
]


VisitorsOption = Annotated[
    str | None,
    typer.Option(metavar="JSON", help="Rules for visitors, as the API's visitors; {} ends them.", callback=json_object),
]


ResponsePolicyOption = Annotated[
    str | None,
    typer.Option(
        metavar="JSON",
        help="What responses carry before what the application states, as the API's responsePolicy; {} ends it.",
        callback=json_object,
    ),
]


class EndedProductOption(StrEnum):
    """A product that a domain is taken out of."""

    POWER = "power"
    SECURE = "secure"
    MONITOR = "monitor"


def power(
    domain: DomainArgument,
    application: ApplicationOption,
    application_url: Annotated[
        str | None, typer.Option(help="The origin to serve it from; without one, the application's.")
    ] = None,
    root_path_access: Annotated[
        list[str] | None, typer.Option(metavar="PATH", help="A path served from the origin's root; once for each.")
    ] = None,
    metadata: MetadataOption = None,
    visitors: VisitorsOption = None,
    response_policy: ResponsePolicyOption = None,
    as_json: AsJson = False,
) -> None:
    """Serve the application on a domain, or change how; a monitor asks the DNS, then orders the certificate."""
    paths = root_path_access or None
    fields = {"domain": domain, "applicationUrl": application_url, "powerRootPathAccess": paths}
    _enrol("power", application, fields | read_rules(metadata, visitors, response_policy), as_json=as_json)


def secure(
    domain: DomainArgument,
    application: ApplicationOption,
    application_url: Annotated[
        str | None, typer.Option(help="The origin to serve it from; without one, the application's.")
    ] = None,
    redirect_to: Annotated[str | None, typer.Option(help="Where to send all visitors instead.")] = None,
    metadata: MetadataOption = None,
    visitors: VisitorsOption = None,
    response_policy: ResponsePolicyOption = None,
    as_json: AsJson = False,
) -> None:
    """Give a domain HTTPS in front of its origin, or change it; a monitor asks the DNS, then orders the certificate."""
    fields = {"domain": domain, "applicationUrl": application_url, "redirectTo": redirect_to}
    _enrol("secure", application, fields | read_rules(metadata, visitors, response_policy), as_json=as_json)


def monitor(
    domain: DomainArgument,
    application: ApplicationOption,
    record: Annotated[
        list[str],
        typer.Option(metavar="RECORD", help="TYPE HOST VALUE, such as 'A www 192.0.2.1'; MX: 'MX @ 10 HOST'. Repeat."),
    ],
    ttl: Annotated[int, typer.Option(help="The records' TTL, in seconds.")] = _TTL_SECONDS,
    user_id: Annotated[str | None, typer.Option(help="Your user's id, which events carry.")] = None,
    as_json: AsJson = False,
) -> None:
    """Watch DNS records of a domain, in place of those watched so far. Hosts are relative to the registrable domain."""
    name = name_of(domain)
    fields = {
        "domain": name.registrable,
        "subdomain": name.subdomain,
        "dnsRecords": [_record(each, ttl) for each in record],
        "userId": user_id,
    }
    _enrol("monitor", application, fields, as_json=as_json)


def remove(
    domain: DomainArgument,
    application: ApplicationOption,
    product: Annotated[EndedProductOption, typer.Option(help="What ends.")],
    as_json: AsJson = False,
) -> None:
    """Take a domain of an application out of one product; it stays in the others. `domain release` frees the name."""
    from api.cli.services import run_with_services
    from api.rights import OPERATOR

    name = name_of(domain)

    async def work(services: CommandServices) -> None:
        await services.operations.remove(OPERATOR, application, name, product.value)

    run_with_services(work)
    shown = {"domain": name.text, "product": product.value, "applicationId": application, "outcome": "removed"}
    print_result(shown, f"{name} is out of {product} of application {application}", as_json=as_json)


def _enrol(product: str, application_id: str, fields: Mapping[str, Any], *, as_json: bool) -> None:
    from api.cli.database import run_with_database

    async def work(database: Database) -> tuple[str, Outcome]:
        return await _write(database, product, application_id, fields)

    name, outcome = run_with_database(work)
    shown = {"domain": name, "product": product, "applicationId": application_id, "outcome": outcome}
    words = f"{name} {_WORDS[outcome]} in {product} of application {application_id}"
    follows = "" if product == "monitor" else f"; `frontage domain show {name}` prints how its certificate stands"
    print_result(shown, words + follows, as_json=as_json)


async def _write(
    database: Database, product: str, application_id: str, fields: Mapping[str, Any]
) -> tuple[str, Outcome]:
    """Write the row, and return the whole name and what became of it. Raises: `OperatorError`."""
    from api.cli.domain_files import find_application
    from api.services.domain_files import InvalidRow, parse_row
    from api.services.domain_import import DomainImport
    from common.db.domain_rows import MonitorRow
    from common.settings import load

    application = await find_application(database, application_id)
    given: dict[str, Any] = {"product": product, **fields}
    if product == "power" and given["applicationUrl"] is None:
        given["applicationUrl"] = await _find_origin(database, application, given["domain"])
    try:
        row = parse_row(given)
    except InvalidRow as error:
        raise _refused(fields, error) from error
    [outcome] = await DomainImport.of(load(os.environ), database, application).write([row])
    if isinstance(outcome, InvalidRow):
        raise _refused(fields, outcome)
    subdomain = row.subdomain if isinstance(row, MonitorRow) else None
    return f"{subdomain}.{row.domain}" if subdomain else row.domain, outcome


async def _find_origin(database: Database, application: Application, domain: str) -> str | None:
    """Return the origin that the domain has in Power already, or else the application's."""
    from common.db import domains

    async with database.connection() as connection:
        held = await domains.find(connection, name_of(domain).text)
    own = [each for each in held if (each.product, each.application_id) == ("power", application.id)]
    return own[0].application_url if own else application.application_url


def _refused(fields: Mapping[str, Any], error: Exception) -> OperatorError:
    """Return the error with the option's name in place of the field's."""
    field, colon, words = str(error).partition(": ")
    return OperatorError(f"{fields['domain']}: {_OPTIONS.get(field, field)}{colon}{words}")


def _record(text: str, ttl: int) -> dict[str, Any]:
    """Return the API's object for ``TYPE HOST VALUE``, whose value may have spaces. Raises: `OperatorError`."""
    words = text.split(None, 2)
    if len(words) < 3:
        raise OperatorError(f"--record {text!r}: expected TYPE HOST VALUE, such as 'A www 192.0.2.1'")
    kind, host, value = words[0].upper(), words[1], words[2]
    if kind != "MX":
        return {"type": kind, "host": host, "value": value, "ttl": ttl}
    priority, _, exchange = value.partition(" ")
    if not exchange:
        raise OperatorError(f"--record {text!r}: expected a priority first, such as 'MX @ 10 mail.example.net'")
    return {"type": kind, "host": host, "value": exchange.strip(), "ttl": ttl, "priority": priority}
