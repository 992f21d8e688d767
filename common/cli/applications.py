"""`frontage app …` and `frontage token`: applications, their secrets, and tokens to try the API with.

Everything is printed as JSON, for people and scripts alike. A secret is printed by the command that mints it and
by no other.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from common.errors import InvalidName, OperatorError

if TYPE_CHECKING:
    from common.db.applications import Application, ApplicationChanges
    from common.db.session import Connection
    from common.secrets import Keyring

T = TypeVar("T")

app = typer.Typer(help="Applications: a partner's account units.", no_args_is_help=True)


class ServiceAuth(StrEnum):
    ON = "on"
    OFF = "off"
    ROTATE = "rotate"


class Tier(StrEnum):
    """What an application has subscribed to; SPEC 4.5 asks for premium or above."""

    BASIC = "basic"
    PREMIUM = "premium"
    ENTERPRISE = "enterprise"


# Options -------------------------------------------------------------------------------------------------


def _domain_name(text: str | None) -> str | None:
    from common.names import parse_domain

    try:
        return parse_domain(text).text if text is not None else None
    except InvalidName as error:
        raise typer.BadParameter(str(error)) from None


def _web_address(text: str | None) -> str | None:
    from common.applications import parse_web_address

    try:
        return parse_web_address(text) if text is not None else None
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _root_paths(paths: list[str] | None) -> list[str] | None:
    for path in paths or ():
        is_plain = path.isascii() and path.isprintable() and not set(path) & set(" ?#\\")
        if path and not (path.startswith("/") and is_plain):
            raise typer.BadParameter(f"{path!r}: a path begins with / and has neither blanks, query nor fragment")
    return paths


def _or_empty(parse: Callable[[str | None], str | None]) -> Callable[[str | None], str | None]:
    """For options whose empty value takes a setting away."""

    def parse_unless_empty(text: str | None) -> str | None:
        return parse(text) if text else text

    return parse_unless_empty


Id = Annotated[str, typer.Argument(metavar="ID", help="The applicationId.")]
Name = Annotated[str, typer.Option(help="What people call it.")]
CnameTarget = Annotated[
    str, typer.Option(help="The name customers' domains point to; it leads to us.", callback=_domain_name)
]
_SECURE_HELP = "A target of its own for Secure; without one, the cname target serves both products."
_ORIGIN_HELP = "The origin of Secure's domains that name none."
_WEBHOOK_HELP = "Where events are delivered to."


@app.command()
def create(
    name: Name,
    cname_target: CnameTarget,
    secure_cname_target: Annotated[str | None, typer.Option(help=_SECURE_HELP, callback=_domain_name)] = None,
    application_url: Annotated[str | None, typer.Option(help=_ORIGIN_HELP, callback=_web_address)] = None,
    webhook_url: Annotated[str | None, typer.Option(help=_WEBHOOK_HELP, callback=_web_address)] = None,
) -> None:
    """Make an application and print its id and secrets, this once."""
    from common import applications as minting
    from common.db import applications as db

    new_id, client_secret, webhook_secret = (
        minting.mint_id(),
        minting.mint_client_secret(),
        minting.mint_webhook_secret(),
    )

    async def work(connection: Connection, keyring: Keyring) -> None:
        await db.create_application(
            connection,
            db.NewApplication(
                id=new_id,
                name=name,
                cname_target=cname_target,
                client_secret=keyring.seal(client_secret.encode(), db.client_secret_identity(new_id)),
                webhook_secret=keyring.seal(webhook_secret.encode(), db.webhook_secret_identity(new_id)),
                secure_cname_target=secure_cname_target,
                application_url=application_url,
                webhook_url=webhook_url,
            ),
        )

    _in_database(work)
    _print({"applicationId": new_id, "clientSecret": client_secret, "webhookSecret": webhook_secret})


@app.command("list")
def list_() -> None:
    """Print all applications, oldest first; no secrets."""
    from common.db import applications as db

    async def work(connection: Connection, _: Keyring) -> list[Application]:
        return await db.list_applications(connection)

    _print([_shown(application) for application in _in_database(work)])


@app.command()
def show(application_id: Id) -> None:
    """Print an application; no secrets."""

    async def work(connection: Connection, _: Keyring) -> Application:
        return await _get(connection, application_id)

    _print(_shown(_in_database(work)))


@app.command("set")
def set_(
    application_id: Id,
    name: Annotated[str | None, typer.Option(help="What people call it.")] = None,
    cname_target: Annotated[
        str | None, typer.Option(help="The name customers' domains point to.", callback=_domain_name)
    ] = None,
    secure_cname_target: Annotated[
        str | None, typer.Option(help=f'{_SECURE_HELP} "" removes it.', callback=_or_empty(_domain_name))
    ] = None,
    application_url: Annotated[
        str | None, typer.Option(help=f'{_ORIGIN_HELP} "" removes it.', callback=_or_empty(_web_address))
    ] = None,
    webhook_url: Annotated[
        str | None, typer.Option(help=f'{_WEBHOOK_HELP} "" removes it.', callback=_or_empty(_web_address))
    ] = None,
    root_path_access: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH",
            help='A path served from the origin\'s root; repeat it. "" removes all.',
            callback=_root_paths,
        ),
    ] = None,
    service_auth: Annotated[
        ServiceAuth | None,
        typer.Option(help="X-Service-Auth on what is forwarded; a new token is printed, this once."),
    ] = None,
    tier: Annotated[Tier | None, typer.Option(help="What it has subscribed to.")] = None,
) -> None:
    """Change what is given, leave the rest, and print the result."""
    from common import applications as minting
    from common.db import applications as db

    changes: ApplicationChanges = {}
    if name is not None:
        changes["name"] = name
    if cname_target is not None:
        changes["cname_target"] = cname_target
    if secure_cname_target is not None:
        changes["secure_cname_target"] = secure_cname_target or None
    if application_url is not None:
        changes["application_url"] = application_url or None
    if webhook_url is not None:
        changes["webhook_url"] = webhook_url or None
    if root_path_access:
        changes["root_path_access"] = tuple(filter(None, root_path_access))
    if tier is not None:
        changes["tier"] = tier.value
    fresh_token = minting.mint_service_auth()

    async def work(connection: Connection, keyring: Keyring) -> tuple[Application, bool]:
        before = await _get(connection, application_id)
        mints = service_auth is ServiceAuth.ROTATE or (service_auth is ServiceAuth.ON and before.service_auth is None)
        if mints:
            changes["service_auth"] = keyring.seal(fresh_token.encode(), db.service_auth_identity(application_id))
        elif service_auth is ServiceAuth.OFF:
            changes["service_auth"] = None
        return await db.update_application(connection, application_id, **changes) or before, mints

    application, mints = _in_database(work)
    _print(_shown(application) | ({"serviceAuthToken": fresh_token} if mints else {}))


@app.command("rotate-secret")
def rotate_secret(application_id: Id) -> None:
    """Print a new client secret. The old one works for another 24 hours; rotate twice to end it at once."""
    from common import applications as minting
    from common.db import applications as db

    client_secret = minting.mint_client_secret()

    async def work(connection: Connection, keyring: Keyring) -> None:
        sealed = keyring.seal(client_secret.encode(), db.client_secret_identity(application_id))
        if not await db.rotate_client_secret(connection, application_id, sealed, minting.PREVIOUS_SECRET_LIFETIME):
            raise _unknown(application_id)

    _in_database(work)
    until = datetime.now(UTC) + minting.PREVIOUS_SECRET_LIFETIME
    _print(
        {
            "applicationId": application_id,
            "clientSecret": client_secret,
            "previousSecretWorksUntil": until.isoformat(timespec="seconds"),
        }
    )


def token(application_id: Id) -> None:
    """Print a JWT that opens the API for 60 minutes, as the application would sign it."""
    from common import applications as minting
    from common.db import applications as db

    async def work(connection: Connection, keyring: Keyring) -> str:
        application = await _get(connection, application_id)
        return keyring.open(application.client_secret, db.client_secret_identity(application_id)).decode()

    typer.echo(minting.mint_token(application_id, _in_database(work), datetime.now(UTC)))


# Parts ---------------------------------------------------------------------------------------------------


def _in_database(work: Callable[[Connection, Keyring], Awaitable[T]]) -> T:
    from common.cli.database import run_in_database

    return run_in_database(work)


async def _get(connection: Connection, application_id: str) -> Application:
    from common.db.applications import get_application

    application = await get_application(connection, application_id)
    if application is None:
        raise _unknown(application_id)
    return application


def _unknown(application_id: str) -> OperatorError:
    return OperatorError(f"there is no application {application_id}: `frontage app list` prints them")


def _shown(application: Application) -> dict[str, Any]:
    """All of an application but its secrets."""
    return {
        "applicationId": application.id,
        "name": application.name,
        "cnameTarget": application.cname_target,
        "secureCnameTarget": application.secure_cname_target,
        "applicationUrl": application.application_url,
        "webhookUrl": application.webhook_url,
        "rootPathAccess": list(application.root_path_access),
        "serviceAuth": ServiceAuth.OFF if application.service_auth is None else ServiceAuth.ON,
        "tier": application.tier,
        "previousSecretWorks": application.previous_client_secret is not None,
        "createdAt": application.created_at.isoformat(timespec="seconds"),
    }


def _print(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))
