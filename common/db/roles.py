"""Database roles with least privilege: what each process may do in the database, and no more.

Each process has a group role that cannot log in; an operator makes a login for the process and has it join the group.
`apply` creates the groups and grants exactly what `GRANTS` lists. The roles belong to the server, what is granted to
them to one database.

Who may do what
    edge        reads the change feed, through which it replicates, and whether monitors run; writes its lease, and no
                login's but its own (`common.db.edge_nodes`), and what it counted of domains (`common.db.traffic`). It
                reads no other table and writes none: what the feed shows of a row is made, and its lease and its counts
                are written, by functions that run with their owner's rights.
    api, monitor
                read and write the tables of their work. Only the feed's own trigger writes what edges follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

import asyncpg

from common.db import locks
from common.db.session import Connection
from common.errors import OperatorError

Role: TypeAlias = Literal["edge", "api", "monitor"]
ROLES: tuple[Role, ...] = get_args(Role)

_READ = "select"
_ADD = "select, insert"
_KEEP = "select, insert, update"
_ALL = "select, insert, update, delete"

_BOTH: Mapping[str, str] = {
    "acme_delegations": _ALL,
    "alembic_version": _READ,
    "batch_items": _ALL,
    "batches": _ALL,
    "canary": _KEEP,
    "certificate_requests": _ALL,
    "certificates": _ALL,
    "checks": _ALL,
    "connect_configurations": _ALL,
    "connect_flows": _ALL,
    "deliveries": _ALL,
    "domain_connect_keys": _READ,
    "domain_metadata": _ALL,
    "domain_tallies": _ALL,
    "domains": _ALL,
    "edge_policies": _READ,
    "edge_nodes": "select, update, delete",
    "enrolments": _ALL,
    "event_sequences": _ALL,
    "events": _ALL,
    "feed": _READ,
    "feed_shards": _READ,
    "feed_timeline": _READ,
    "former_holders": _ALL,
    "idempotent_requests": _ALL,
    "lock_slots": "select, update",
    "monitor_health": "select, update",
    "monitor_nodes": _ALL,
    "monitored_domains": _ALL,
    "monitored_tallies": _ALL,
    "orders": _ALL,
    "own_certificates": _ALL,
    "preparations": _ALL,
    "shares": _ALL,
    "status_links": _ALL,
    "webhook_endpoints": _ALL,
}

GRANTS: Mapping[Role, Mapping[str, str]] = MappingProxyType(
    {
        "edge": {
            "alembic_version": _READ,
            "changes": _READ,
            "feed": _READ,
            "feed_entries": _READ,
            "feed_shards": _READ,
            "feed_timeline": _READ,
            "monitor_nodes": _READ,
        },
        "api": {
            **_BOTH,
            "acme_accounts": _READ,
            "acme_key": _READ,
            "acme_key_rollover": "select, insert, delete",
            "answered_challenges": _ADD,
            "applications": _ALL,  # the dashboard makes and deletes them
            "audit": _ADD,  # what is written there stays
            "ca_ledger": _READ,
            "changes": _READ,
            "edge_nodes": _READ,
            "edge_policies": _ALL,  # operators block names in the dashboard
            "error_pages": _ALL,
            "memberships": _ALL,
            "organisations": "select, insert, update",
            "origin_outages": _READ,
            "oidc_subjects": _ALL,
            "passkeys": _ALL,
            "rdap_bootstrap": _READ,
            "revocations": _KEEP,  # a deletion asks for one, or has one wait no longer
            "sessions": _ALL,
            "sign_in_links": _ALL,
            "target_sightings": _READ,
            "traffic": _READ,
            "user_keys": _ALL,
            "users": _KEEP,
        },
        "monitor": {
            **_BOTH,
            "acme_accounts": _ALL,
            "acme_key": "select, insert, update",
            "acme_key_rollover": _ALL,
            "answered_challenges": "select, update, delete",  # retention erases them
            "applications": "select, update",
            "audit": "select, insert, update, delete",  # retention erases them
            "ca_ledger": _ALL,
            "changes": "select, update, delete",  # retention purges tombstones
            "internal_root": _ADD,
            "feed_shards": "select, update",
            "mass_guard": "select, update",
            "origin_outages": _ALL,
            "rdap_bootstrap": "select, update",
            "revocations": _ALL,
            "sessions": "select, update, delete",  # retention erases them
            "sign_in_links": "select, update, delete",
            "target_sightings": _ALL,
            "traffic": "select, update, delete",  # retention erases them
            "traffic_reports": "select, update, delete",
            "user_keys": "select, update, delete",
        },
    }
)
"""What each role may do with each table or view. What is not listed it may not touch."""

HIDDEN: Mapping[Role, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "edge": {"monitor_nodes": ("host", "issuer")},
        "api": {
            "acme_key": ("private_key",),
            "acme_key_rollover": ("private_key",),
            "certificates": ("private_key",),
            "orders": ("placed_key",),
            "own_certificates": ("private_key",),
        },
        "monitor": {},
    }
)
"""Columns that a role may not read although it may read the rest of the table."""

FUNCTIONS: Mapping[Role, tuple[str, ...]] = MappingProxyType(
    {
        "edge": (
            "renew_edge_lease",
            "end_edge_lease",
            "report_traffic",
            # of programs before schema 0091
            "report_lease",
            "describe_edge",
            "report_edge_traffic",
            "report_edge_certificates",
            "hold_edge_lease",
            "end_lease",
        ),
        "api": (),
        "monitor": (),
    }
)
"""Functions with their owner's rights that a role may call."""

_DISK_FILLING_FUNCTIONS = ("lo_creat", "lo_create", "lo_from_bytea", "pg_logical_emit_message")
"""Functions of Postgres with which any login can fill the disk. No process uses them."""


def group(role: Role) -> str:
    """Return the name of the role's group in the database."""
    return f"frontage_{role}"


async def apply(connection: Connection, *, create: bool) -> tuple[str, ...]:
    """Bring the privileges of the groups in line with this module, in the caller's transaction.

    Without `create`, only of groups that exist. Returns the groups' names.

    Raises: `OperatorError` when a group cannot be created.
    """
    await locks.hold(connection, "roles")
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
    if applied:
        await _revoke_from_every_login(connection)
    return tuple(applied)


async def _revoke_from_every_login(connection: Connection) -> None:
    """Revoke what Postgres lets any login do in a database.

    A database made by Postgres 14 or earlier lets it make tables, too. A right that is not the migrating login's to
    revoke stays.
    """
    await connection.execute("revoke create on schema public from public")
    row = await connection.fetchrow(
        "select quote_ident(current_database()) as database,"
        " (select rolsuper from pg_roles where rolname = current_user) as is_superuser,"
        " (select string_agg(oid::regprocedure::text, ', ') from pg_proc"
        "  where pronamespace = 'pg_catalog'::regnamespace and proname = any($1)) as functions",
        _DISK_FILLING_FUNCTIONS,
    )
    assert row is not None, "a select without a table has one row"
    await connection.execute(f"revoke temporary on database {row['database']} from public")
    if row["is_superuser"]:
        await connection.execute(f"revoke execute on function {row['functions']} from public")


async def _create(connection: Connection, name: str) -> None:
    """Create a group that cannot log in.

    Raises: `OperatorError` when this login may not create roles.
    """
    try:
        await connection.execute(f"create role {name} nologin")
    except asyncpg.InsufficientPrivilegeError as error:
        raise OperatorError(
            f"this login may not create the role {name}: migrate as one with CREATEROLE, or create it (NOLOGIN) by hand"
        ) from error


async def _grant(connection: Connection, role: Role) -> None:
    """Grant the role exactly what `GRANTS`, without `HIDDEN`, and `FUNCTIONS` list."""
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
    if FUNCTIONS[role]:
        await connection.execute(f"grant execute on function {', '.join(FUNCTIONS[role])} to {name}")


async def _columns(connection: Connection, table: str, hidden: tuple[str, ...]) -> str:
    """Return the table's columns that are not hidden, as SQL."""
    columns: str = await connection.fetchval(
        "select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute"
        " where attrelid = to_regclass($1) and attnum > 0 and not attisdropped and attname <> all($2)",
        table,
        hidden,
    )
    return columns
