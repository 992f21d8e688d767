"""Restarts work that has ended with an unexpected error; the other work of the monitor goes on meanwhile.

The likeliest cause is a schema newer than this program, during an upgrade. A monitor refuses to start with one that
breaks it; a monitor that is running stops only the work that the change breaks, and logs the reason until it is
replaced.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NoReturn

from common.clock import Clock
from common.db.outages import level_of
from common.db.pool import Database
from common.db.schema import find_newer_schema
from common.errors import DatabaseUnavailable, OperatorError
from common.logs import get_logger
from common.retry_pauses import RetryPauses

_log = get_logger("monitor.restarts")

_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0
_LASTING_SECONDS = 60.0  # work that ran this long did not fail at its start
_STEADY_SECONDS = 5.0


async def restart_on_failure(
    name: str, run: Callable[[], Awaitable[None]], database: Database, clock: Clock, stopped: set[str]
) -> NoReturn:
    """Run the work until cancelled; after a failure restart it, after longer pauses while it fails soon.

    `stopped` holds `name` from a failure until the work has run for `_STEADY_SECONDS` again.
    """
    pauses = RetryPauses(first=_FIRST_PAUSE_SECONDS, longest=_LONGEST_PAUSE_SECONDS)
    loop = asyncio.get_running_loop()
    while True:
        began_at = clock.monotonic()
        recovery = loop.call_later(_STEADY_SECONDS, stopped.discard, name)
        try:
            await run()
        except Exception as error:  # noqa: BLE001 - the task's root
            recovery.cancel()
            stopped.add(name)
            if clock.monotonic() - began_at > _LASTING_SECONDS:
                pauses.reset()
            pause = pauses.next_seconds()
            if (reason := await _schema_problem(database)) is not None:
                _log.error("work has stopped and is tried again", work=name, pause_seconds=pause, reason=reason)
            elif isinstance(error, DatabaseUnavailable):
                words = "work has stopped and is tried again"
                _log.log(level_of(error), words, work=name, pause_seconds=pause, error=str(error))
            else:
                _log.exception("work has stopped and is tried again", work=name, pause_seconds=pause)
            await asyncio.sleep(pause)
        finally:
            recovery.cancel()


async def _schema_problem(database: Database) -> str | None:
    """Return what is wrong with the schema; None if nothing is, or if Postgres cannot be asked."""
    try:
        async with database.connection() as connection:
            return await find_newer_schema(connection)
    except OperatorError as error:
        return str(error)
    except DatabaseUnavailable:
        pass
    return None
