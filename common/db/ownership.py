"""Who holds a name, who held it, and how it changes hands.

Owns the SQL of ``former_holders``. The decision is `common.ownership`'s; a held name's own rows are
`common.db.domains`'.

Rules
    a name changes hands under `certificates.lock_domain`, as everything about its certificate does
    names move one at a time: a move writes tallies of both applications, so two opposite ones would deadlock
    a holder that gives up a name, or loses it, is remembered for `REMEMBERED_DAYS`, also after its application is gone
    nothing of a holder's passes on: settings and order are deleted, its certificate is released

Functions that write need a transaction; the caller opens it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from common.db import audit, certificates, locks, outcomes
from common.db.session import Connection
from common.names import DomainName
from common.ownership import REMEMBERED_DAYS, Standing

EndReason: TypeAlias = Literal["moved", "released"]
"""Why a holder has lost a name: its DNS, or an operator, gave it to another application; an operator freed it."""


@dataclass(frozen=True, slots=True)
class FormerHolder:
    application_id: str
    released_at: datetime
    remembered_until: datetime


async def find_standing(connection: Connection, name: DomainName, claimant: str) -> Standing:
    """What is known of `name` now; it stays so under `certificates.lock_domain`."""
    row = await connection.fetchrow(
        """
        select (select application_id from domains where domain = $1 limit 1) as holder,
            array(select application_id from former_holders
                where domain = $1 and released_at > now() - make_interval(days => $3)
                order by released_at desc) as former_holders,
            exists (select from applications where cname_target = $1)
                or exists (select from applications where secure_cname_target = $1) as is_target,
            $4 and (exists (select from applications where id <> $2
                    and reverse(cname_target) collate "C" > reverse($1) || '.'
                    and reverse(cname_target) collate "C" < reverse($1) || '/')
                or exists (select from applications where id <> $2
                    and reverse(secure_cname_target) collate "C" > reverse($1) || '.'
                    and reverse(secure_cname_target) collate "C" < reverse($1) || '/')) as is_above_foreign_target
        """,
        name.text,
        claimant,
        REMEMBERED_DAYS,
        name.is_root,
    )
    assert row is not None, "a select without a table has one row"
    return Standing(row["holder"], tuple(row["former_holders"]), row["is_target"], row["is_above_foreign_target"])


async def former_holders(connection: Connection, domain: str) -> list[FormerHolder]:
    """Those that are remembered, the last one first."""
    rows = await connection.fetch(
        "select application_id, released_at, released_at + make_interval(days => $2) as remembered_until"
        " from former_holders where domain = $1 and released_at > now() - make_interval(days => $2)"
        " order by released_at desc",
        domain,
        REMEMBERED_DAYS,
    )
    return [FormerHolder(**row) for row in rows]


async def remember(connection: Connection, domains: Collection[str], application_id: str) -> None:
    """Note that the application has held these names until now."""
    await connection.execute(
        "insert into former_holders (domain, application_id, released_at) select name, $2, clock_timestamp()"
        " from unnest($1::text[]) name on conflict (domain, application_id) do update"
        " set released_at = excluded.released_at",
        domains,
        application_id,
    )


async def forget(connection: Connection, domain: str) -> int:
    """Free the name of those who held it. Returns how many they were."""
    rows = await connection.fetch("delete from former_holders where domain = $1 returning domain", domain)
    return len(rows)


async def take_away(connection: Connection, domain: str, holder: str, reason: EndReason) -> bool:
    """End all that `holder` has of the name, and record that for its owner.

    Returns whether it held the name. Other moves wait until the transaction ends.
    """
    await certificates.lock_domain(connection, domain)
    await locks.hold(connection, "moves")
    await outcomes.record_end(connection, domain, holder, reason)
    ended = await connection.execute("delete from domains where domain = $1 and application_id = $2", domain, holder)
    if ended == "DELETE 0":
        return False
    await certificates.release(connection, domain)
    await remember(connection, [domain], holder)
    await audit.record(connection, f"domain.{reason}", domain, application_id=holder)
    return True
