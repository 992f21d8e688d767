"""Policies as rows: what edges answer for a domain, or for all domains of an application, instead of forwarding.

Owns the SQL of ``edge_policies``; the edges follow it by the change feed. A policy is of a name, enrolled or not: it is
neither made nor ended with an enrolment. Who may set one is the caller's to decide: operators alone.

Functions that write need a transaction; the caller opens it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from common.db.session import Connection

Scope: TypeAlias = Literal["domain", "application"]
LONGEST_REASON = 500
FORBIDDEN, LEGAL = 403, 451


@dataclass(frozen=True, slots=True)
class Policy:
    """An answer that edges give for a domain or an application instead of forwarding.

    `subject`: a name in canonical form, or an application's id. Visitors read the reason.
    """

    scope: Scope
    subject: str
    status: int
    reason: str
    set_at: datetime

    def as_json(self) -> dict[str, object]:
        """Return the policy as the API and commands print it; `since` in ISO 8601."""
        return {"status": self.status, "reason": self.reason, "since": self.set_at.isoformat()}


def read_reason(text: str) -> str | None:
    """Return the reason as it is shown, in one line; None for one that cannot be shown."""
    reason = " ".join(text.split())
    return reason if reason and len(reason) <= LONGEST_REASON and reason.isprintable() else None


async def put(connection: Connection, scope: Scope, subject: str, status: int, reason: str) -> Policy | None:
    """Have every request answered with this status and reason, and return the policy so far.

    `reason` has 1 to `LONGEST_REASON` characters.
    """
    before = await find(connection, scope, subject)
    await connection.execute(
        "insert into edge_policies (scope, subject, status, reason) values ($1, $2, $3, $4)"
        " on conflict (scope, subject) do update set status = excluded.status, reason = excluded.reason",
        scope,
        subject,
        status,
        reason,
    )
    return before


async def remove(connection: Connection, scope: Scope, subject: str) -> Policy | None:
    """Have requests forwarded again, and return the policy so far, None if there was none."""
    before = await find(connection, scope, subject)
    if before is not None:
        await connection.execute("delete from edge_policies where scope = $1 and subject = $2", scope, subject)
    return before


async def forget_application(connection: Connection, application_id: str) -> None:
    """Delete the policy of an application that is gone."""
    await connection.execute("delete from edge_policies where scope = 'application' and subject = $1", application_id)


async def find(connection: Connection, scope: Scope, subject: str) -> Policy | None:
    """Return the subject's policy, or None."""
    found = await find_many(connection, scope, [subject])
    return found.get(subject)


async def find_many(connection: Connection, scope: Scope, subjects: Collection[str]) -> dict[str, Policy]:
    """Return the policies of these subjects, by subject."""
    rows = await connection.fetch(
        "select scope, subject, status, reason, set_at from edge_policies where scope = $1 and subject = any($2)",
        scope,
        list(subjects),
    )
    return {row["subject"]: Policy(**row) for row in rows}


async def find_in_force(connection: Connection, domain: str, application_id: str | None) -> Policy | None:
    """Return the policy that edges apply to a domain: its own, or its application's; None without one."""
    return await find(connection, "domain", domain) or (
        await find(connection, "application", application_id) if application_id else None
    )


async def list_policies(connection: Connection, scope: Scope, *, after: str = "", most: int = 100) -> list[Policy]:
    """Return the policies of this scope, by subject, from the one behind `after` on."""
    rows = await connection.fetch(
        'select scope, subject, status, reason, set_at from edge_policies where scope = $1 and subject collate "C" > $2'
        ' order by subject collate "C" limit $3',
        scope,
        after,
        most,
    )
    return [Policy(**row) for row in rows]
