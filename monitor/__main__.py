"""The monitor's process put together: everything that is due, claimed and done. Any number of them may run."""

from __future__ import annotations

import asyncio
from random import Random

from common.claims import Runner
from common.clock import Clock, SystemClock
from common.db import orders
from common.db.listener import Listener
from common.db.pool import Database, open_pool, resolve_dsn
from common.db.schema import check_schema
from common.db.secrets_canary import ensure_canary
from common.errors import DatabaseUnavailable, OperatorError
from common.logs import get_logger
from common.processes import announce_ready, run_role
from common.secrets import Keyring, load_keyring
from common.settings import Settings
from monitor.certificates.internal import open_internal, root_path
from monitor.certificates.issuance import Issuance
from monitor.certificates.issuer import Issuer
from monitor.retention import sweep_for_ever

_log = get_logger("monitor")

_ORDERS_AT_ONCE = 16
_CONNECTIONS = 8


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Raises: `OperatorError` when something must be put right before any work can be done."""
    clock, random = SystemClock(), Random()  # noqa: S311 - it spreads due times
    keyring = load_keyring(settings.key_file)
    dsn = resolve_dsn(settings)
    async with open_pool(dsn, size=_CONNECTIONS, application_name="frontage monitor") as database:
        await _check(database, keyring)
        issuance = Issuance(database, _open_issuer(settings, keyring, clock), keyring, clock, random)
        certificates = Runner(database, orders, issuance.perform, concurrency=_ORDERS_AT_ONCE, random=random)
        listener = Listener(dsn, certificates.wake, application_name="frontage monitor listener")
        async with asyncio.TaskGroup() as tasks:
            roots = [
                tasks.create_task(certificates.run(), name="certificates"),
                tasks.create_task(listener.run(), name="listener"),
                tasks.create_task(sweep_for_ever(database, random), name="retention"),
            ]
            announce_ready()
            await stop.wait()
            for root in roots:
                root.cancel()


async def _check(database: Database, keyring: Keyring) -> None:
    try:
        async with database.transaction() as connection:
            await check_schema(connection)
            await ensure_canary(connection, keyring)
    except DatabaseUnavailable as error:
        raise OperatorError(f"{error}: start it, or check FRONTAGE_DATABASE_URL") from error


def _open_issuer(settings: Settings, keyring: Keyring, clock: Clock) -> Issuer:
    if settings.issuer == "acme":
        raise OperatorError("FRONTAGE_ISSUER=acme is not available yet: set it to internal, or leave it out")
    issuer = open_internal(settings.state_dir, keyring, clock)
    _log.info("clients that trust this root accept our certificates", root=str(root_path(settings.state_dir)))
    return issuer


def main() -> None:
    run_role("monitor", serve)


if __name__ == "__main__":
    main()
