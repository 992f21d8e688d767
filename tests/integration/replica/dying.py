"""A replicator that kills itself (SIGKILL) at a chosen moment of its work: ``python -m … DSN STATE_DIR MOMENT``."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common.db.session import open_session
from edge.replica.store import Copy, Store, Update

from .parts import add_routes, make_replicator

MOMENTS = ("copy is half written", "swap is not committed", "changes are put", "changes are not committed")


def die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_after(work: Callable[..., Any]) -> Callable[..., Any]:
    def method(*arguments: Any) -> None:
        work(*arguments)
        die()

    return method


def arm(moment: str) -> None:
    match moment:
        case "copy is half written":
            Copy.put = die_after(Copy.put)  # type: ignore[method-assign]
        case "changes are put":
            Update.put = die_after(Update.put)  # type: ignore[method-assign]
        case _:
            Store.write_state = die_after(Store.write_state)  # type: ignore[method-assign]


async def main(dsn: str, state_dir: Path, moment: str) -> None:
    replicator = make_replicator(dsn, state_dir)
    if moment.startswith("changes"):
        await replicator.catch_up()
        connection = await open_session(dsn, "writer")
        await add_routes(connection, ["change.example"])
        connection.terminate()
    arm(moment)
    await replicator.catch_up()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
