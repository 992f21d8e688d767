"""A generation of the edge, ``python -m edge.supervisor_main``: its supervisor's composition root."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from common.builds import read_build
from common.clock import SystemClock
from common.db.address import resolve_dsn
from common.db.outages import log_outages
from common.processes import run_role
from common.secrets import load_keyring
from common.settings import Settings
from edge.process.supervisor_process import supervise
from edge.proxy import access_log
from edge.replica.replicator import Replicator
from edge.replica.traffic_reporter import TrafficReporter

SERVICE = "edge.process.worker_service:compose"


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Run a generation until `stop` is set."""
    # A missing key or an unwritable log is for the operator now, not for every worker later.
    keyring = load_keyring(settings.key_file)
    access_log.check(settings.edge_access_log)
    log_outages()
    build = read_build()  # now: another one may be installed while this one runs

    def replica(on_applied: Callable[[int], None]) -> Replicator:
        return Replicator(
            settings,
            lambda: resolve_dsn(settings),
            on_applied,
            SystemClock(),
            keyring=keyring,
            software_version=str(build),
        )

    traffic = TrafficReporter(lambda: resolve_dsn(settings), SystemClock())
    await supervise(settings, stop, service=SERVICE, replica=replica, traffic=traffic, build=build)


def main() -> None:
    """Run a generation's supervisor."""
    run_role("edge", serve)


if __name__ == "__main__":
    main()
