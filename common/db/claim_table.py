"""Claim tables: the SQL that every table of claimed work has in common (`monitor.claims` has the rules).

Such a table has the columns ``due_at, lease_until, fence, attempts``. What is due and how it is claimed differs, and
belongs to the table's own module; leases, fenced writes and the next due time do not.
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of the modules of common.db

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from asyncpg import Record

from common.db.session import Connection
from common.errors import FenceLost

IS_FREE = "(lease_until is null or lease_until <= now())"
"""No lease stands on the row. It takes no part in an index: the rows under a lease are few."""


class FencedRow(Protocol):
    """A claimed row, as far as leases need it."""

    @property
    def key(self) -> str:
        """Return the value of the table's key column, as text."""

    @property
    def fence(self) -> int:
        """Return the number of the claim: a later claim of the row has another."""


@dataclass(frozen=True, slots=True)
class ClaimTable:
    """The leases of one table. `key` is the column of the claims' keys, `key_type` its SQL type."""

    table: str
    key: str
    key_type: str = "text"

    @staticmethod
    def taken(lease_seconds: str) -> str:
        """Return the assignments that claim a row; `lease_seconds` is the placeholder of the lease's length."""
        return (
            "fence = pg_current_xact_id()::text::bigint, attempts = attempts + 1,"
            f" lease_until = clock_timestamp() + make_interval(secs => {lease_seconds})"
        )

    async def extend(self, connection: Connection, claims: Collection[FencedRow], *, lease_seconds: float) -> set[str]:
        """Extend the leases of the claims to `lease_seconds` from now, and return the keys still held.

        Rows are locked in the order of their keys, as by every statement that locks several.
        """
        rows = await connection.fetch(
            f"""
            with held as materialized (
                select {self.key} from {self.table}
                join unnest($1::text[]::{self.key_type}[], $2::bigint[]) as claims ({self.key}, fence)
                    using ({self.key}, fence)
                where lease_until is not null order by 1 for update of {self.table}
            )
            update {self.table} set lease_until = clock_timestamp() + make_interval(secs => $3)
            where {self.key} = any(array(select {self.key} from held)) returning {self.key}::text as key
            """,
            [claim.key for claim in claims],
            [claim.fence for claim in claims],
            lease_seconds,
        )
        return {row["key"] for row in rows}

    async def try_write(
        self, connection: Connection, claim: FencedRow, assignments: str, *values: object, returning: str = "fence"
    ) -> Record | None:
        """Write the row if this claim still holds it, and return it; None if not.

        `assignments` get `values` from $3 on.
        """
        return await connection.fetchrow(
            f"update {self.table} set {assignments} where {self.key} = $1::text::{self.key_type} and fence = $2"
            f" and lease_until is not null returning {returning}",
            claim.key,
            claim.fence,
            *values,
        )

    async def write(self, connection: Connection, claim: FencedRow, assignments: str, *values: object) -> None:
        """Write the row as `try_write` does.

        Raises: `FenceLost` if the claim no longer holds it.
        """
        if await self.try_write(connection, claim, assignments, *values) is None:
            raise self.lost(claim)

    def lost(self, claim: FencedRow) -> FenceLost:
        """Return the error that another claim has taken over this row."""
        return FenceLost(f"{self.table}: {claim.key} was taken over by another claim")

    async def next_due_seconds(self, connection: Connection, *, condition: str = "due_at is not null") -> float | None:
        """Return in how many seconds the next row without a lease is due: negative when overdue, None without a row.

        `condition` is that of a partial index on ``due_at``, word for word.
        """
        seconds: float | None = await connection.fetchval(
            f"select extract(epoch from due_at - clock_timestamp())::float8 from {self.table}"
            f" where {condition} and {IS_FREE} order by due_at limit 1"
        )
        return seconds
