"""The examination: which checks there are, in the order in which their findings are shown."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING

from api.cli.doctor import authorities, clock, database, machine, names, nodes
from api.cli.doctor.findings import Finding, broken, from_error, note, ok
from common.errors import DatabaseBusy, DatabaseForbidden, DatabaseUnavailable, OperatorError

if TYPE_CHECKING:
    from common.clock import Clock
    from common.db.pool import Database
    from common.settings import Settings

_OWNERS_LOGIN = "run `frontage doctor` with the login that owns the tables"


def examine(environ: Mapping[str, str] = os.environ) -> list[Finding]:
    """Make all checks; it takes some seconds at most, and blocks."""
    from common.settings import load

    try:
        settings = load(environ)
    except OperatorError as error:
        return [from_error("settings", error)]
    return [ok("settings", "every FRONTAGE_ variable makes sense"), *asyncio.run(_examine(settings))]


async def _examine(settings: Settings) -> list[Finding]:
    from common.clock import SystemClock

    own_clock = SystemClock()
    findings = [machine.check_state_dir(settings), machine.check_disk(settings.state_dir, "disk")]
    evidence: list[clock.ClockBounds] = []
    try:
        async with database.opened(settings) as opened:
            findings += await _examine_database(settings, opened, own_clock)
            evidence += await _evidence(opened)
    except (OperatorError, DatabaseUnavailable) as error:
        findings += [machine.check_master_key(settings), _unreachable(error)]
    dns, of_root, local = await asyncio.gather(
        _examine_names(settings),
        clock.ask_root(names.resolvers_of(settings)),
        asyncio.to_thread(_examine_roles, settings),
    )
    evidence += [*of_root, *await asyncio.to_thread(clock.ask_authorities, settings)]
    return [*findings, clock.check_clock(own_clock, evidence), *dns, *local]


async def _evidence(opened: Database) -> list[clock.ClockBounds]:
    """Return what the database shows of the time; nothing where its records may not be read or are locked."""
    try:
        return await clock.ask_database(opened)
    except (DatabaseBusy, DatabaseForbidden):
        return []
    except (OperatorError, DatabaseUnavailable):
        raise
    except Exception:  # noqa: BLE001 - the check's root
        return []


async def _examine_names(settings: Settings) -> list[Finding]:
    servers, targets = await asyncio.gather(names.check_servers(settings), names.check_targets(settings))
    return [servers, *targets]


def _examine_roles(settings: Settings) -> list[Finding]:
    """Check the ports and the edges of this machine. Blocks."""
    ports = machine.check_ports(settings, is_up=machine.is_up(settings))
    return [
        ports,
        *machine.check_plain_text(settings),
        *authorities.check_authorities(settings),
        *nodes.check_edge(settings),
    ]


async def _examine_database(settings: Settings, opened: Database, own_clock: Clock) -> list[Finding]:
    """Make the checks that ask the database. Raises: `OperatorError`, `DatabaseUnavailable`."""
    return [
        await database.check_database(opened),
        *await _permitted("master key", _listed(database.check_keys(settings, opened))),
        *await database.check_space(opened),
        *await _permitted("database's sessions", database.check_sessions(opened)),
        *await _permitted("webhooks", database.check_webhooks(opened)),
        *await _permitted("nodes", nodes.check_nodes(opened, own_clock)),
        *await _permitted("work", database.check_work(settings, opened)),
    ]


async def _listed(check: Awaitable[Finding]) -> list[Finding]:
    return [await check]


async def _permitted(subject: str, check: Awaitable[list[Finding]]) -> list[Finding]:
    """Return the check's findings, or one that it is not possible now, or with this login."""
    try:
        return await check
    except DatabaseBusy as error:
        return [broken(subject, str(error), error.remedy)]
    except DatabaseForbidden:
        return [note(subject, "this login may not look at it", _OWNERS_LOGIN)]
    except (OperatorError, DatabaseUnavailable):
        raise
    except Exception as error:  # noqa: BLE001 - the check's root: the others go on
        return [note(subject, f"could not be looked at ({type(error).__name__})", _OWNERS_LOGIN)]


def _unreachable(error: Exception) -> Finding:
    if isinstance(error, DatabaseUnavailable):
        return broken("database", str(error), error.remedy)
    return from_error("database", error)
