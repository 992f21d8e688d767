"""Database access of the command line: migrates the schema, and runs work in a transaction."""

from __future__ import annotations

import asyncio
import getpass
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from api.cli.printing import AsJson, print_result
from common.actors import Actor, acting

if TYPE_CHECKING:
    from common.db.pool import Database
    from common.db.session import Connection
    from common.secrets import Keyring
    from common.settings import Settings

T = TypeVar("T")


Roles = Annotated[
    bool,
    typer.Option(
        "--roles",
        help="Also create the roles frontage_edge, frontage_api and frontage_monitor, for logins with least privilege.",
    ),
]


def migrate(roles: Roles = False, as_json: AsJson = False) -> None:
    """Bring the database's schema up to date; makes the master key when there is none."""
    from common.settings import load

    asyncio.run(prepare(load(os.environ), create_roles=roles))
    print_result({"isUpToDate": True}, "the database is up to date", as_json=as_json)


async def prepare(settings: Settings, *, create_roles: bool = False) -> Keyring:
    """Bring the schema up to date, and return keys that open what is sealed in it.

    The first key is made where nothing is sealed yet. Database roles that exist get the privileges they need; with
    `create_roles`, those that do not exist are made.

    Raises: OperatorError, DatabaseUnavailable.
    """
    from common.db import roles
    from common.db.address import resolve_dsn
    from common.db.migrate import migrate as bring_up_to_date
    from common.db.pool import open_pool
    from common.db.secrets_canary import ensure_canary, known_keys
    from common.errors import OperatorError
    from common.secrets import load_keyring

    if settings.key_file.exists():
        load_keyring(settings.key_file)  # a damaged file is reported before the database is changed
    dsn = resolve_dsn(settings)
    await bring_up_to_date(dsn, on_wait=lambda words: typer.echo(words, err=True))
    async with (
        open_pool(dsn, size=1, application_name="frontage migrate") as database,
        database.transaction() as connection,
    ):
        if await known_keys(connection) and not settings.key_file.exists():
            raise OperatorError(
                f"no master key at {settings.key_file}, and this database holds secrets sealed under one: "
                "point FRONTAGE_MASTER_KEY_FILE at it, or restore it from your backup"
            )
        keyring = load_keyring(settings.key_file, create=True)
        await ensure_canary(connection, keyring)
        await roles.apply(connection, create=create_roles)
    return keyring


async def warn_without_issuer(connection: Connection) -> None:
    """Say on standard error that what a command asked for waits, where no monitor issues certificates."""
    from common.db import monitor_nodes

    if not await monitor_nodes.is_issuing(connection):
        typer.echo("it waits: no monitor runs that could do it; start `frontage monitor`", err=True)


def run_with_database(work: Callable[[Database], Awaitable[T]]) -> T:
    """Do `work`, in as many transactions as it takes.

    Raises: OperatorError, DatabaseUnavailable, and what `work` raises.
    """
    from common.settings import load

    return asyncio.run(_run_with_database(load(os.environ), work))


async def _run_with_database(settings: Settings, work: Callable[[Database], Awaitable[T]]) -> T:
    from common.db.address import resolve_dsn
    from common.db.pool import open_pool
    from common.db.schema import check_schema

    async with open_pool(resolve_dsn(settings), size=1, application_name="frontage") as database:
        async with database.connection() as connection:
            await check_schema(connection)
        with acting(Actor("command", _login_name())):
            return await work(database)


@asynccontextmanager
async def open_database(settings: Settings) -> AsyncIterator[tuple[Database, Keyring]]:
    """Open the database with keys that open what it holds; what the block changes is the operator's, by login name.

    Raises: `OperatorError`, `DatabaseUnavailable`.
    """
    from common.db.address import resolve_dsn
    from common.db.pool import open_pool
    from common.db.schema import check_schema
    from common.db.secrets_canary import ensure_canary
    from common.secrets import load_keyring

    keyring = load_keyring(settings.key_file)
    async with open_pool(resolve_dsn(settings), size=1, application_name="frontage") as database:
        async with database.transaction() as connection:
            await check_schema(connection)
            await ensure_canary(connection, keyring)
        with acting(Actor("command", _login_name())):
            yield database, keyring


def _login_name() -> str:
    """Names the operator in the audit log: the login that `sudo` was called from, else our own."""
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (OSError, KeyError):  # a container's user without a name
        return f"uid {os.getuid()}"
