"""``python -m api``: the composition root of the management API."""

from __future__ import annotations

import asyncio

from api.app import build_app
from api.serving import serving
from common.addresses import own_policy
from common.clock import SystemClock
from common.db.pool import Database, open_pool, resolve_dsn
from common.db.schema import check_schema
from common.db.secrets_canary import ensure_canary
from common.dns import Resolver
from common.errors import DatabaseUnavailable, OperatorError
from common.processes import announce_ready, run_role
from common.secrets import Keyring, load_keyring
from common.settings import Settings

_CONNECTIONS = 10


def main() -> None:
    run_role("api", serve)


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Serve until `stop`. Raises: `OperatorError`."""
    keyring = load_keyring(settings.key_file)
    resolver = Resolver(settings.dns_servers, own_policy(settings))
    async with open_pool(resolve_dsn(settings), size=_CONNECTIONS, application_name="frontage api") as database:
        await _check(database, keyring)
        app = build_app(settings, database, keyring, resolver, SystemClock())
        async with serving(app, settings.api_listen):
            announce_ready()
            await stop.wait()


async def _check(database: Database, keyring: Keyring) -> None:
    """Raises: `OperatorError`."""
    try:
        async with database.transaction() as connection:
            await check_schema(connection)
            await ensure_canary(connection, keyring)
    except DatabaseUnavailable as error:
        raise OperatorError(f"{error}: start it, or check FRONTAGE_DATABASE_URL") from error


if __name__ == "__main__":
    main()
