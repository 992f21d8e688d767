"""``python -m api``: the composition root of the management API."""

from __future__ import annotations

import asyncio
import os
import socket
from functools import partial

from api.app import build_app
from api.counters import Counters
from api.rules.plain_text import find_exposure
from api.serving import serving
from common.addresses import tenant_policy
from common.admin_listener import check_database, serving_admin
from common.builds import Build, read_build
from common.clock import SystemClock
from common.db.address import resolve_dsn
from common.db.pool import Database, open_pool
from common.db.start import check_start
from common.dns import Resolver
from common.logs import get_logger
from common.machine_metrics import measure_machine
from common.metrics import Family
from common.names import load_public_suffixes
from common.processes import announce_ready, run_role, settle_garbage_collector
from common.secrets import load_keyring
from common.settings import Settings
from common.socket_activation import check_address, take_passed_sockets

_CONNECTIONS = 10
SOCKET = "api"
"""The name of the socket that systemd passes."""


def main() -> None:
    """Run the API until a signal stops it."""
    run_role("api", serve)


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Serve until `stop`. Raises: `OperatorError`."""
    passed = _take_socket(settings)
    keyring = load_keyring(settings.key_file)
    resolver = Resolver(settings.dns_servers, tenant_policy(settings))
    async with open_pool(resolve_dsn(settings), size=_CONNECTIONS, application_name="frontage api") as database:
        await check_start(database, keyring)
        build, counters = read_build(), Counters()
        app = build_app(settings, database, keyring, resolver, SystemClock(), counters)
        load_public_suffixes()
        async with (
            serving(app, settings.api_listen, settings.api_trusted_proxies, passed=passed),
            serving_admin(
                settings.api_admin,
                "FRONTAGE_API_ADMIN",
                partial(check_database, database),
                partial(_measure, settings, database, counters, build),
            ),
        ):
            _warn_of_plain_text(settings)
            settle_garbage_collector()
            announce_ready()
            await stop.wait()


def _take_socket(settings: Settings) -> socket.socket | None:
    """Return the listening socket that systemd holds, if it does. Raises: `OperatorError`."""
    passed = take_passed_sockets(os.environ, os.getpid(), "API", needed=(SOCKET,))
    if not passed:
        return None
    check_address(passed[SOCKET], settings.api_listen, "API_LISTEN")
    return passed[SOCKET][0]


def _warn_of_plain_text(settings: Settings) -> None:
    if (exposure := find_exposure(settings)) is not None:
        get_logger("api").warning("secrets cross a network in plain text", seen=exposure.seen, remedy=exposure.remedy)


async def _measure(settings: Settings, database: Database, counters: Counters, build: Build) -> list[Family]:
    return [build.family(), *counters.families(), *database.families(), *measure_machine(settings.state_dir)]


if __name__ == "__main__":
    main()
