"""Database roles with least privilege: what each process may do in the database, and no more.

Each process has a group role that cannot log in; an operator makes a login for the process and has it join the group.
`apply` creates the groups and grants exactly what `GRANTS` lists. The roles belong to the server, what is granted to
them to one database.

Who may do what
    edge        reads the change feed, through which it replicates, and whether monitors run; writes its lease. It reads
                no other table: what the feed shows of a row is made by functions that run with their owner's rights.
    api, monitor
                read and write the tables of their work. Only the feed's own trigger writes what edges follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

import asyncpg

from common.db.session import Connection
from common.errors import OperatorError

Role: TypeAlias = Literal["edge", "api", "monitor"]
ROLES: tuple[Role, ...] = get_args(Role)

_READ = "select"
_ADD = "select, insert"
_KEEP = "select, insert, update"
_ALL = "select, insert, update, delete"

_LOCK = 0x46524F4E54524F4C  # "FRONTROL"

_BOTH: Mapping[str, str] = {
    "alembic_version": _READ,
    "applications": "select, update",
    "batch_items": _ALL,
    "batches": _ALL,
    "canary": _KEEP,
    "certificates": _ALL,
    "checks": _ALL,
    "deliveries": _ALL,
    "domain_tallies": _ALL,
    "domains": _ALL,
    "edge_nodes": "select, update, delete",
    "enrolments": _ALL,
    "event_sequences": _ALL,
    "events": _ALL,
    "feed": _READ,
    "feed_shards": _READ,
    "former_holders": _ALL,
    "monitor_health": "select, update",
    "monitor_nodes": _ALL,
    "monitored_domains": _ALL,
    "monitored_tallies": _ALL,
    "orders": _ALL,
    "shares": _ALL,
    "webhook_endpoints": _ALL,
}

GRANTS: Mapping[Role, Mapping[str, str]] = MappingProxyType(
    {
        "edge": {
            "alembic_version": _READ,
            "changes": _READ,
            "edge_nodes": _ALL,
            "feed": _READ,
            "feed_entries": _READ,
            "feed_shards": _READ,
            "monitor_nodes": _READ,
        },
        "api": {
            **_BOTH,
            "acme_accounts": _READ,
            "acme_key": _READ,
            "ca_ledger": _READ,
            "edge_nodes": _READ,
            "error_pages": _READ,
            "revocations": _READ,
        },
        "monitor": {
            **_BOTH,
            "acme_accounts": _ALL,
            "acme_key": _ADD,
            "ca_ledger": _ALL,
            "changes": "select, update, delete",  # retention purges tombstones
            "feed_shards": "select, update",
            "mass_guard": "select, update",
            "revocations": _ALL,
        },
    }
)
"""What each role may do with each table or view. What is not listed it may not touch."""

HIDDEN: Mapping[Role, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "edge": {"monitor_nodes": ("host", "issuer")},
        "api": {"acme_key": ("private_key",), "certificates": ("private_key",), "orders": ("placed_key",)},
        "monitor": {},
    }
)
"""Columns that a role may not read although it may read the rest of the table."""


def group(role: Role) -> str:
    """The name of the role's group in the database."""
    return f"frontage_{role}"


async def apply(connection: Connection, *, create: bool) -> tuple[str, ...]:
    """Bring the privileges of the groups in line with this module, in the caller's transaction.

    Without `create`, only of groups that exist. Returns the groups' names.

    Raises: `OperatorError` when a group cannot be created.
    """
    await connection.execute("select pg_advisory_xact_lock($1)", _LOCK)
    rows = await connection.fetch(
        "select rolname from pg_roles where rolname = any($1)", [group(role) for role in ROLES]
    )
    existing = {row["rolname"] for row in rows}
    applied = []
    for role in ROLES:
        if group(role) not in existing:
            if not create:
                continue
            await _create(connection, group(role))
        await _grant(connection, role)
        applied.append(group(role))
    if applied:  # every login has this right in a database made by Postgres 14 or earlier
        await connection.execute("revoke create on schema public from public")
    return tuple(applied)


async def _create(connection: Connection, name: str) -> None:
    try:
        await connection.execute(f"create role {name} nologin")
    except asyncpg.InsufficientPrivilegeError as error:
        raise OperatorError(
            f"this login may not create the role {name}: migrate as one with CREATEROLE, or create it (NOLOGIN) by hand"
        ) from error


async def _grant(connection: Connection, role: Role) -> None:
    name = group(role)
    await connection.execute(
        f"grant usage on schema public to {name}; revoke all on all tables in schema public from {name}"
    )
    for table, privileges in GRANTS[role].items():
        hidden = HIDDEN[role].get(table)
        if hidden:
            columns = await _columns(connection, table, hidden)
            read = privileges.replace("select", f"select ({columns})")
            await connection.execute(f"grant {read} on {table} to {name}")
        else:
            await connection.execute(f"grant {privileges} on {table} to {name}")


async def _columns(connection: Connection, table: str, hidden: tuple[str, ...]) -> str:
    columns: str = await connection.fetchval(
        "select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute"
        " where attrelid = to_regclass($1) and attnum > 0 and not attisdropped and attname <> all($2)",
        table,
        hidden,
    )
    return columns
