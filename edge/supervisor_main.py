"""A generation of the edge, ``python -m edge.supervisor_main``: its supervisor's composition root."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from common.clock import SystemClock
from common.db.pool import resolve_dsn
from common.processes import run_role
from common.secrets import load_keyring
from common.settings import Settings
from edge.replica.replicator import Replicator
from edge.supervisor_role import supervise

SERVICE = "edge.worker_service:compose"


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    load_keyring(settings.key_file)  # a missing key is for the operator now, not for every worker later

    def replica(on_applied: Callable[[int], None]) -> Replicator:
        return Replicator(settings, lambda: resolve_dsn(settings), on_applied, SystemClock())

    await supervise(settings, stop, service=SERVICE, replica=replica)


def main() -> None:
    run_role("edge", serve)


if __name__ == "__main__":
    main()
