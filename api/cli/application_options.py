"""What can be said about an application on the command line: the values options take, and how they are read."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

NONE = "none"


class Switch(StrEnum):
    """A setting that is on or off."""

    ON = "on"
    OFF = "off"


class SecretSwitch(StrEnum):
    """For what works by a secret: `ROTATE` makes a new one, `ON` does where there is none."""

    ON = "on"
    OFF = "off"
    ROTATE = "rotate"


class ServiceAuthOption(StrEnum):
    """`ROTATE` makes the next value; edges send it from `FINISH` on, unless `CANCEL` forgets it."""

    ON = "on"
    OFF = "off"
    ROTATE = "rotate"
    FINISH = "finish"
    CANCEL = "cancel"


class MinimumTlsOption(StrEnum):
    """The oldest version of TLS."""

    TLS_1_2 = "1.2"
    TLS_1_3 = "1.3"


class ErrorStatusOption(StrEnum):
    """The status of refused changes of Power and Secure."""

    ALWAYS_502 = "502"
    HTTP = "http"


class SentHost(StrEnum):
    """Whose name the origin finds in ``Host``."""

    ORIGIN = "origin"
    CUSTOMER = "customer"


class Tier(StrEnum):
    """What an application has subscribed to; the domain check needs premium or above."""

    BASIC = "basic"
    PREMIUM = "premium"
    ENTERPRISE = "enterprise"


def switched(value: bool) -> Switch:
    """Return the option for what is stored."""
    return Switch.ON if value else Switch.OFF


# Reading. Where a value takes a setting away, what is read is the empty text. ------------------------------


def cname_target(text: str | None) -> str | None:
    """Read a cname target. Raises: `typer.BadParameter`."""
    from api.rules import application_settings as rules
    from common.enrolment.ownership import OwnNames
    from common.settings import load

    return _read(text, lambda given: rules.read_cname_target(given, OwnNames.of(load(os.environ))))


def application_url(text: str | None) -> str | None:
    """Read the URL of an origin. Raises: `typer.BadParameter`."""
    from api.rules import application_settings as rules

    return _read(text, rules.read_application_url)


def webhook_url(text: str | None) -> str | None:
    """Read the URL of a webhook. Raises: `typer.BadParameter`."""
    from api.rules import application_settings as rules
    from common.addresses import tenant_policy
    from common.settings import load

    return _read(text, lambda given: rules.read_webhook_url(given, tenant_policy(load(os.environ))))


def or_empty(parse: Callable[[str | None], str | None]) -> Callable[[str | None], str | None]:
    """Return a reader that leaves the empty text as it is."""

    def parse_unless_empty(text: str | None) -> str | None:
        return parse(text) if text else text

    return parse_unless_empty


def not_empty(text: str | None) -> str | None:
    """Read a display name. Raises: `typer.BadParameter`."""
    from api.rules import application_settings as rules

    return _read(text, rules.read_name)


def server_name(text: str | None) -> str | None:
    """Read the name expected in an origin's certificate. Raises: `typer.BadParameter`."""
    from api.rules import application_settings as rules

    if text is None or text == NONE:
        return text and ""
    return _read(text, rules.read_server_name)


def error_page(file: str | None) -> str | None:
    """Return the page that the file holds. Raises: `typer.BadParameter`."""
    from api.rules import application_settings as rules
    from common.db.error_pages import MAX_PAGE_BYTES

    if file is None or file == NONE:
        return file and ""
    try:
        with Path(file).open("rb") as opened:
            return rules.read_error_page(opened.read(MAX_PAGE_BYTES + 1))
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be read: {error.strerror or error}") from None
    except rules.InvalidSetting as error:
        raise typer.BadParameter(f"{file}: {error}") from None


def response_policy(file: str | None) -> str | None:
    """Return the JSON object that the file holds, as text; an empty one for none. Raises: `typer.BadParameter`."""
    if file is None or file == NONE:
        return file and "{}"
    import orjson

    try:
        text = Path(file).read_text("utf-8")
        orjson.loads(text)
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise typer.BadParameter(f"{file} is not UTF-8 text: save it as UTF-8") from None
    except orjson.JSONDecodeError as error:
        raise typer.BadParameter(f"{file} is not JSON: {error}") from None
    return text


def upload_size(text: str | None) -> str | None:
    """Return bytes in decimal digits, from a number with or without K, M or G (powers of 1024)."""
    if text is None or text == Switch.OFF:
        return text and ""
    from api.rules import application_settings as rules

    try:
        return str(rules.read_upload_size(text))
    except rules.InvalidSetting as error:
        raise typer.BadParameter(f"expected off, or {str(error).removeprefix('expected ')}") from None


def root_paths(paths: list[str] | None) -> list[str] | None:
    """With empty ones, which say that a path was given at all."""
    from api.rules import application_settings as rules

    try:
        rules.read_root_paths(paths or ())
    except rules.InvalidSetting as error:
        raise typer.BadParameter(str(error)) from None
    return paths


def metadata_fields(keys: list[str] | None) -> list[str] | None:
    """With empty ones, which say that a key was given at all."""
    from api.rules import application_settings as rules

    try:
        rules.read_metadata_fields(keys or ())
    except rules.InvalidSetting as error:
        raise typer.BadParameter(str(error)) from None
    return keys


def _read(text: str | None, read: Callable[[str], str]) -> str | None:
    from api.rules.application_settings import InvalidSetting

    try:
        return None if text is None else read(text)
    except InvalidSetting as error:
        raise typer.BadParameter(str(error)) from None


# Arguments and options --------------------------------------------------------------------------------------

_NAME_HELP = "A display name."
_SECURE_HELP = "A target of its own for Secure; without one, the cname target serves both products."
_ORIGIN_HELP = "The origin of Secure's domains that name none."
_WEBHOOK_HELP = "Where events are delivered to."
_ERROR_STATUS_HELP = "Of refused changes of Power and Secure: always 502, or http: 400, 403, 404, 409, 429 as it is."
_ORGANISATION_HELP = "The organisation, by name or id, whose members see it in the dashboard."

Id = Annotated[str, typer.Argument(metavar="ID", help="The applicationId.")]
Name = Annotated[str, typer.Option(help=_NAME_HELP, callback=not_empty)]
CnameTarget = Annotated[
    str, typer.Option(help="The name customers' domains point to; it leads to us.", callback=cname_target)
]
TargetOfApplication = Annotated[
    str, typer.Argument(metavar="NAME", help="Its cname target, of either product.", callback=cname_target)
]
SecureCnameTarget = Annotated[str | None, typer.Option(help=_SECURE_HELP, callback=cname_target)]
ApplicationUrl = Annotated[str | None, typer.Option(help=_ORIGIN_HELP, callback=application_url)]
WebhookUrl = Annotated[str | None, typer.Option(help=_WEBHOOK_HELP, callback=webhook_url)]

# Of `set`, where None leaves a setting as it is.
NewName = Annotated[str | None, typer.Option(help=_NAME_HELP, callback=not_empty)]
NewCnameTarget = Annotated[
    str | None, typer.Option(help="The name customers' domains point to.", callback=cname_target)
]
NewSecureCnameTarget = Annotated[
    str | None, typer.Option(help=f'{_SECURE_HELP} "" removes it.', callback=or_empty(cname_target))
]
NewApplicationUrl = Annotated[
    str | None, typer.Option(help=f'{_ORIGIN_HELP} "" removes it.', callback=or_empty(application_url))
]
NewWebhookUrl = Annotated[
    str | None, typer.Option(help=f'{_WEBHOOK_HELP} "" removes it.', callback=or_empty(webhook_url))
]
RootPaths = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATH",
        help='A path served from the origin\'s root; repeat it. "" removes all.',
        callback=root_paths,
    ),
]
ServiceAuth = Annotated[
    ServiceAuthOption | None,
    typer.Option(
        help="X-Service-Auth on what is forwarded; a new value is printed, this once. Edges send the value so far until"
        " a rotation is finished."
    ),
]
ServiceAuthStdin = Annotated[
    bool,
    typer.Option("--service-auth-stdin", help="Read the value for on or rotate from standard input; else one is made."),
]
Signature = Annotated[
    SecretSwitch | None,
    typer.Option(help="X-Service-Signature on what is forwarded; a new key is printed, this once."),
]
SendHost = Annotated[
    SentHost | None, typer.Option(help="Whose name the origin finds in Host: its own, or the customer's domain.")
]
OriginServerName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|none",
        help="The name asked for in TLS with the origin and expected in its certificate; none: its URL's host.",
        callback=server_name,
    ),
]
OriginVerify = Annotated[Switch | None, typer.Option(help="Verify the origin's certificate.")]
Http2 = Annotated[
    Switch | None,
    typer.Option("--http2", help="Offer browsers HTTP/2 at the application's domains; off offers HTTP/1.1 only."),
]
MinimumTls = Annotated[
    MinimumTlsOption | None,
    typer.Option(
        "--minimum-tls", help="The oldest version of TLS that edges speak, at domains that state none themselves."
    ),
]
ErrorStatus = Annotated[ErrorStatusOption | None, typer.Option(help=_ERROR_STATUS_HELP)]
NewErrorStatus = Annotated[ErrorStatusOption, typer.Option("--error-status", help=_ERROR_STATUS_HELP)]
Test = Annotated[
    bool,
    typer.Option("--test", help="Made for tests, which it stays: the internal authority issues for its domains."),
]
ResponsePolicy = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|none",
        help="Fields that responses carry where the origin sends none of that name: the API's responsePolicy, as JSON.",
        callback=response_policy,
    ),
]
MetadataFields = Annotated[
    list[str] | None,
    typer.Option(
        "--metadata-field",
        metavar="KEY",
        help='A key of domains\' metadata that origins get as X-Service-Metadata-KEY; repeat it. "" removes all.',
        callback=metadata_fields,
    ),
]

Maintenance = Annotated[Switch | None, typer.Option(help="Answer every request 503 instead of asking the origin.")]
Connect = Annotated[Switch | None, typer.Option(help="Its subscription to Power through the connect modal.")]
ErrorPage = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|none",
        help="HTML (64 KB) for browsers in place of our error pages; it may hold {{status}} and {{request_id}}.",
        callback=error_page,
    ),
]
BufferUploads = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE|off",
        help="Take a request's body in whole before the origin is asked, and refuse larger ones; off streams it.",
        callback=upload_size,
    ),
]
NewTier = Annotated[Tier | None, typer.Option(help="What it has subscribed to.")]
Organisation = Annotated[str | None, typer.Option(help=_ORGANISATION_HELP)]
NewOrganisation = Annotated[str | None, typer.Option(help=f'{_ORGANISATION_HELP} "" leaves it to operators.')]


class TokenScope(StrEnum):
    """What a token opens, where that is not everything."""

    CONNECT = "connect"


def registrable_domain(value: str | None) -> str | None:
    """Read an apex into its canonical form, as tokens name it. Raises: `typer.BadParameter`."""
    from common.errors import InvalidName
    from common.names import parse_domain

    if value is None:
        return None
    try:
        name = parse_domain(value)
    except InvalidName as error:
        raise typer.BadParameter(str(error)) from error
    if not name.is_root:
        raise typer.BadParameter(f"not an apex: it is {name.registrable}")
    return name.text


Scope = Annotated[TokenScope | None, typer.Option(help="What the token opens: connect, the connect modal's requests.")]
TokenDomain = Annotated[
    str | None, typer.Option(help="The only domain that it is for, an apex.", callback=registrable_domain)
]
TokenConfiguration = Annotated[
    str | None, typer.Option(metavar="ID", help="The registered configuration of its flows.")
]
TokenUser = Annotated[str | None, typer.Option(metavar="ID", help="The customer that it is given to: its userId.")]
KeepLinks = Annotated[
    bool, typer.Option("--keep-links", help="Links, configurations and flows of the old secret outlive it.")
]
