"""Checks of the database: reachable, with this program's schema, room to write, and keys that open its secrets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from api.cli.doctor.findings import Finding, FindingState, broken, from_error, note, ok
from api.cli.doctor.machine import check_disk, check_master_key
from common.errors import DatabaseUnavailable, OperatorError

if TYPE_CHECKING:
    from common.db.health import SessionUse
    from common.db.pool import Database
    from common.settings import Settings

_OLDEST_POSTGRES = 14
_NEARLY_ALL = 0.8
_DIRECT_EDGES = 50


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Database]:
    """Open the database. Raises: `OperatorError`, `DatabaseUnavailable`."""
    from common.db.address import resolve_dsn
    from common.db.pool import open_pool

    async with open_pool(resolve_dsn(settings), size=2, application_name="frontage doctor") as database:
        yield database


async def check_database(database: Database) -> Finding:
    """Check the server and its schema.

    Raises: `DatabaseUnavailable`; `OperatorError` when the schema is not this program's.
    """
    from common.db.schema import find_newer_schema

    async with database.connection() as connection:
        version = connection.get_server_version()
        if version.major < _OLDEST_POSTGRES:
            seen = f"PostgreSQL {version.major} is too old"
            return broken("database", seen, f"move it to version {_OLDEST_POSTGRES} or newer")
        newer = await find_newer_schema(connection)
    return ok("database", f"PostgreSQL {version.major}.{version.micro}, {newer or 'the schema is up to date'}")


async def check_sessions(database: Database) -> list[Finding]:
    """Check that sessions are left on the server, and that not too many edges follow it directly."""
    from common.db import health

    async with database.connection() as connection:
        return judge_sessions(await health.read_sessions(connection))


def judge_sessions(use: SessionUse) -> list[Finding]:
    """Judge the sessions on the server; those of edges are named in `edge.replica`."""
    subject = "database's sessions"
    findings = []
    most = ", ".join(f"{count} of {name}" for name, count in list(use.used.items())[:4])
    seen = f"{use.total} of {use.may} are used ({most})"
    if use.total > use.may * _NEARLY_ALL:
        remedy = "raise max_connections, or have edges follow a standby (FRONTAGE_FEED_URL)"
        findings.append(broken(subject, seen, remedy))
    if (following := use.used.get("frontage edge", 0)) > _DIRECT_EDGES:
        remedy = "have them follow a standby (FRONTAGE_FEED_URL), since each commit waits for those that listen"
        findings.append(note(subject, f"{following} edges listen to the primary itself", remedy))
    return findings or [ok(subject, seen)]


async def check_space(database: Database) -> list[Finding]:
    """Write enough to find a full disk, in a transaction that is rolled back.

    Where the disk is this machine's, also measure its free space.
    """
    from common.db import health

    subject = "database's disk"
    try:
        async with database.connection() as connection:
            directory = await health.data_directory(connection)
            await health.try_writing(connection)
    except DatabaseUnavailable as error:
        remedy = "free space on the disk of Postgres, or see its log"
        return [broken(subject, f"Postgres cannot write ({error})", remedy)]
    if directory is None or directory.startswith("/proc/"):  # the embedded one's, which is in the state directory
        return []
    try:
        return [check_disk(Path(directory), subject)]
    except OSError:
        return []


async def check_keys(settings: Settings, database: Database) -> Finding:
    """Check the master key against what the database knows of it."""
    from common.db.secrets_canary import ensure_canary, known_keys
    from common.secrets import load_keyring

    async with database.connection() as connection:
        known = await known_keys(connection)
        found = check_master_key(settings, is_needed=bool(known))
        if found.state is FindingState.BROKEN or not settings.key_file.exists():
            return found
        keyring = load_keyring(settings.key_file)
        if keyring.is_for_edges:
            needed = {key_id for key_id, is_needed in known.items() if is_needed}
            return _judge_edge_key(settings.key_file, opens_all=needed <= keyring.ids)
        looking = connection.transaction()
        await looking.start()
        try:
            await ensure_canary(connection, keyring)
        except OperatorError as error:
            return from_error("master key", error)
        finally:
            await looking.rollback()  # a new database would be left with a canary
    return found


def _judge_edge_key(path: Path, *, opens_all: bool) -> Finding:
    if opens_all:
        return ok("master key", f"{path}, for edges only")
    seen = f"{path} is an edge's, and does not open all secrets of edges in this database"
    remedy = "where the API runs, write a new one with `frontage master-key export --role edge FILE`, and copy it here"
    return broken("master key", seen, remedy)


async def check_webhooks(database: Database) -> list[Finding]:
    """Endpoints that are disabled, or soon will be."""
    from common.db.webhook_endpoints import list_endpoints
    from common.endpoint_health import disables_at

    findings = []
    async with database.connection() as connection:
        endpoints = await list_endpoints(connection)
    for application_id, endpoint in endpoints.items():
        if endpoint.disabled_at is not None:
            state = f"is disabled since {endpoint.disabled_at:%Y-%m-%d}"
        elif (at := disables_at(endpoint)) is not None:
            state = f"will be disabled at {at:%Y-%m-%d %H:%M} UTC"
        else:
            continue
        remedy = f"once that is put right, `frontage app set {application_id} --webhook-url URL` begins anew"
        findings.append(note("webhooks", f"{application_id}'s {state} ({endpoint.last_error})", remedy))
    return findings


async def check_work(settings: Settings, database: Database) -> list[Finding]:
    """Check what `frontage status` shows beside the nodes, of which `check_nodes` knows more."""
    from common.db.ca_ledger import Limits
    from common.db.status import read_status
    from common.installation_problems import NODES, find_problems

    async with database.connection() as connection:
        status = await read_status(connection, Limits.of(settings))
    problems = [problem for problem in find_problems(status) if problem.subject not in NODES]
    found = [(broken if each.is_critical else note)(each.subject, each.seen, each.remedy) for each in problems]
    return found or [ok("work", "nothing is overdue, and certificates are renewed")]
