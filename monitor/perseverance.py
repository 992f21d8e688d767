"""Perseverance: work that ends by an error nobody foresaw is begun again; the other work goes on meanwhile.

The likeliest cause is a schema newer than this program, during an upgrade. At its start a monitor refuses that; one
that runs already stops only what a change of the schema breaks, and says so until it is replaced.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NoReturn

from common.clock import Clock
from common.db.pool import Database
from common.db.schema import check_schema
from common.errors import DatabaseUnavailable, OperatorError
from common.logs import get_logger

_log = get_logger("monitor.perseverance")

_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0  # who lived that long did not fail at its beginning
_STEADY_SECONDS = 5.0


async def persevere(
    name: str, run: Callable[[], Awaitable[None]], database: Database, clock: Clock, stopped: set[str]
) -> NoReturn:
    """Run it until cancelled, after a pause that grows while it fails soon.

    `stopped` holds `name` from a failure until the work has run for `_STEADY_SECONDS` again.
    """
    pause = _FIRST_PAUSE_SECONDS
    loop = asyncio.get_running_loop()
    while True:
        began_at = clock.monotonic()
        recovery = loop.call_later(_STEADY_SECONDS, stopped.discard, name)
        try:
            await run()
        except Exception:  # noqa: BLE001 - the task's root
            if clock.monotonic() - began_at > _LONGEST_PAUSE_SECONDS:
                pause = _FIRST_PAUSE_SECONDS
            if (complaint := await _complaint(database)) is not None:
                _log.error("work has stopped and is tried again", work=name, pause_seconds=pause, reason=complaint)
            else:
                _log.exception("work has stopped and is tried again", work=name, pause_seconds=pause)
        finally:
            recovery.cancel()
        stopped.add(name)
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


async def _complaint(database: Database) -> str | None:
    """What is wrong with the schema, if that can be told."""
    try:
        async with database.connection() as connection:
            await check_schema(connection)
    except OperatorError as error:
        return str(error)
    except DatabaseUnavailable:
        pass
    return None
