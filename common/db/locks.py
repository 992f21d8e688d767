"""Locks by name, held until the transaction ends. Owns the SQL of ``lock_slots``.

They are row locks, which only a role that may update the table can take. An advisory lock is open to every login, so
that a stolen login of an edge could hold up all work that waits for one.

Rules
    a scope has a fixed number of slots, and a name the one that it hashes to: two names may share one
    several names of a scope are taken in one call, in the order of their slots, so that no two callers deadlock
    scopes are taken in the order of `SLOTS`
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from asyncpg import Connection, Record

Scope: TypeAlias = Literal["roles", "redirects", "domain", "moves", "ca_ledger", "origins"]

SLOTS: Mapping[Scope, int] = MappingProxyType(
    {"roles": 1, "redirects": 1, "domain": 4096, "moves": 1, "ca_ledger": 16, "origins": 1}
)
"""Powers of two. Of domains there are far more than transactions at one time, so that few wait for another name's."""


async def hold(connection: Connection[Record], scope: Scope, *names: str) -> None:
    """Wait for other transactions that hold one of the names, then hold all; a scope with one slot has no names."""
    await connection.fetch(
        "select from lock_slots where scope = $1 and slot = any(array("
        "select hashtext(name) & $3 from unnest($2::text[]) name)) order by slot for update",
        scope,
        names or ("",),
        SLOTS[scope] - 1,
    )


async def try_hold(connection: Connection[Record], scope: Scope) -> bool:
    """Hold a scope with one slot, and return True; return False where another transaction holds it."""
    slots = await connection.fetch("select from lock_slots where scope = $1 for update skip locked", scope)
    return bool(slots)
