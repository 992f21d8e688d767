"""`frontage domain-connect …`: what an operator publishes, so that DNS providers accept our Domain Connect requests.

The key that signs requests is made once an installation. To rotate it: `rotate` makes the next one and prints its
records; once they are published everywhere, `rotate --finish` signs with it and forgets the old one. It asks the zone's
own name servers first.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli.printing import AsJson, print_json, print_result
from common.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from common.db.domain_connect_keys import SigningKey
    from common.db.session import Connection
    from common.secrets import Keyring
    from common.settings import Settings

app = typer.Typer(
    help="Domain Connect: the key that signs requests, and the templates for DNS providers.", no_args_is_help=True
)
Finish = Annotated[bool, typer.Option("--finish", help="Sign with the next key, and forget the one that signed.")]
Force = Annotated[bool, typer.Option("--force", help="With --finish: whether or not its records are published.")]

_MOST_QUESTIONS = 32
_SERVERS = 4  # of the zone, asked at once
_OR_FORCE = "Providers refuse what a key without its records signs: try again later, or use --force"


@app.command()
def key(as_json: AsJson = False) -> None:
    """Print the TXT records to publish. Makes the key that signs when there is none."""
    settings = _settings()
    _print_records(settings, asyncio.run(ensure_key(settings)), as_json=as_json)


@app.command()
def rotate(finish: Finish = False, force: Force = False, as_json: AsJson = False) -> None:
    """Make the next key and print its records; once they are published, run it again with --finish."""
    settings = _settings()
    if force and not finish:
        raise OperatorError("--force belongs to --finish")
    if finish and not force:
        asyncio.run(_require_published(settings))
    _print_records(settings, asyncio.run(_changed(settings, _finish if finish else _begin)), as_json=as_json)


@app.command()
def templates(
    directory: Annotated[Path, typer.Argument(metavar="DIRECTORY", help="Where to write them, one file each.")],
    name: Annotated[str, typer.Option(help="Your name, as people know it.")] = "Frontage",
    as_json: AsJson = False,
) -> None:
    """Write the templates to hand to DNS providers, with this installation's id."""
    from urllib.parse import urlsplit

    from common.connect.domain_connect.templates import SERVICES, for_installation

    settings = _settings()
    provider_id, host = settings.domain_connect_provider_id or "", urlsplit(settings.base_url).hostname or ""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        paths = {service: directory / f"{provider_id}.{service}.json" for service in SERVICES}
        for service, path in paths.items():
            content = for_installation(service, provider_id, name, host)
            path.write_text(json.dumps(content, indent=2) + "\n", "utf-8")
    except OSError as error:
        raise OperatorError(f"cannot write {directory}: {error.strerror or error}") from error
    print_result({"templates": paths}, "\n".join(map(str, paths.values())), as_json=as_json)


def _settings() -> Settings:
    from common.settings import load

    settings = load(os.environ)
    if settings.domain_connect_provider_id is None:
        raise OperatorError("FRONTAGE_DOMAIN_CONNECT_PROVIDER_ID is not set: choose a domain of yours as the id")
    return settings


def _print_records(settings: Settings, keys: list[tuple[str, list[str], bool]], *, as_json: bool) -> None:
    if as_json:
        names = ("label", "texts", "signs")
        print_json([dict(zip(names, each, strict=True)) for each in keys])
        return
    for label, texts, signs in keys:
        typer.echo(f"; {label} {'signs' if signs else 'is the next key: publish it, then `rotate --finish`'}")
        for text in texts:
            typer.echo(f'{label}.{settings.domain_connect_provider_id}. 3600 IN TXT "{text}"')


# The keys --------------------------------------------------------------------------------------------------


async def ensure_key(settings: Settings) -> list[tuple[str, list[str], bool]]:
    """Label, texts of the TXT records, and whether it signs, of each key; made when there is none."""
    return await _changed(settings, _ensure)


async def _changed(
    settings: Settings, change: Callable[[Connection, Keyring, list[SigningKey]], Awaitable[None]]
) -> list[tuple[str, list[str], bool]]:
    """Return the keys after `change`: label, texts of the TXT records, and whether it signs."""
    from api.connect.signing import public_key_records
    from common.db import domain_connect_keys as db
    from common.db.address import resolve_dsn
    from common.db.pool import open_pool
    from common.secrets import load_keyring

    keyring = load_keyring(settings.key_file)
    async with (
        open_pool(resolve_dsn(settings), size=1, application_name="frontage domain-connect") as database,
        database.transaction() as connection,
    ):
        await db.lock(connection)
        await change(connection, keyring, await db.list_keys(connection))
        return [
            (each.label, public_key_records(keyring.open(each.private_key, db.key_identity(each.label))), each.signs)
            for each in await db.list_keys(connection)
        ]


async def _require_published(settings: Settings) -> None:
    """Refuse to sign with a key that is not published.

    Raises: `OperatorError` unless the name servers of the id's zone have the records of the next key, and no others at
    that name.
    """
    from api.connect.signing import find_publication_fault, public_key_records
    from common.addresses import tenant_policy
    from common.db import domain_connect_keys as db
    from common.db.address import resolve_dsn
    from common.db.pool import open_pool
    from common.dns import Resolver
    from common.secrets import load_keyring

    keyring = load_keyring(settings.key_file)
    async with (
        open_pool(resolve_dsn(settings), size=1, application_name="frontage domain-connect") as database,
        database.connection() as connection,
    ):
        following = _following(await db.list_keys(connection))
    texts = public_key_records(keyring.open(following.private_key, db.key_identity(following.label)))
    name = f"{following.label}.{settings.domain_connect_provider_id}"
    async with Resolver(settings.dns_servers, tenant_policy(settings)).open_pass() as questions:
        found = await questions.zone_questions(_MOST_QUESTIONS, servers_at_once=_SERVERS).ask(name, "TXT")
    if (fault := find_publication_fault(texts, found)) is not None:
        raise OperatorError(f"{name}: {fault}. {_OR_FORCE}")


async def _ensure(connection: Connection, keyring: Keyring, keys: list[SigningKey]) -> None:
    if not keys:
        await _add(connection, keyring, signs=True)


async def _begin(connection: Connection, keyring: Keyring, keys: list[SigningKey]) -> None:
    if all(each.signs for each in keys):
        await _add(connection, keyring, signs=not keys)


async def _finish(connection: Connection, _: Keyring, keys: list[SigningKey]) -> None:
    from common.db import domain_connect_keys as db

    await db.sign_with(connection, _following(keys).label)


def _following(keys: list[SigningKey]) -> SigningKey:
    """Return the next key. Raises: `OperatorError`."""
    following = next((each for each in keys if not each.signs), None)
    if following is None:
        raise OperatorError("there is no next key: `frontage domain-connect rotate` makes one")
    return following


async def _add(connection: Connection, keyring: Keyring, *, signs: bool) -> None:
    from api.connect.signing import new_private_key
    from common.db import domain_connect_keys as db

    number = await db.next_number(connection)
    envelope = keyring.seal(new_private_key(), db.key_identity(db.label_of(number)))
    await db.add(connection, number, envelope, signs=signs)
