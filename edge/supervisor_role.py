"""The supervisor's process put together: listeners, supervisor, admin port and SIGHUP, whatever the workers serve."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import closing

from common.processes import announce_ready
from common.settings import Settings
from edge import admin
from edge.listeners import Listeners
from edge.supervisor import Replica, Supervisor


async def supervise(
    settings: Settings,
    stop: asyncio.Event,
    *,
    service: str,
    replica: Callable[[Callable[[int], None]], Replica],
) -> None:
    """Run the edge until `stop` is set and all is over; `service` and `replica` as in `Supervisor`.

    Raises: `OperatorError` when the edge cannot begin to serve.
    """
    with closing(Listeners(settings.edge_http, settings.edge_https, settings.edge_workers)) as listeners:
        supervisor = Supervisor(
            settings, service=service, listeners=listeners, replica=replica, announce=announce_ready
        )
        port = admin.AdminPort(supervisor.health, supervisor.measurements, supervisor.accept_held_copy)
        async with admin.listening(settings.edge_admin, port):
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, supervisor.renew_workers)
            await supervisor.run(stop)
