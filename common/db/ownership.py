"""The holder of a name, its former holders, and how a name moves from one application to another.

Owns the SQL of ``former_holders``, and of whose cname targets names are. The decision is
`common.enrolment.ownership`'s; a held name's own rows are `common.db.domains`'.

Rules
    a name changes hands under `certificates.lock_domain`, as everything about its certificate does
    names move one at a time: a move writes tallies of both applications, so two opposite ones would deadlock
    a holder that gives up a name, or loses it, is remembered for `REMEMBERED_DAYS`, also after its application is gone
    nothing of a holder's passes on: settings and order are deleted, its certificate is released
    a former cname target is remembered as long as its application is there, and `REMEMBERED_DAYS` after, since domains
        may still lead to it; not as a name that was held, for any name can be given as a target
    a cname target that has lapsed (`common.db.target_sightings`) reserves nothing

Functions that write need a transaction; the caller opens it.
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from common.db import certificates, locks, outcomes
from common.db.session import Connection
from common.db.target_sightings import has_lapsed
from common.enrolment.ownership import REMEMBERED_DAYS, OwnershipRecord, Target
from common.names import DomainName, wildcard_above

MOST_FORMER_TARGETS = 10
"""The most former targets remembered of an application: it cannot keep others from any number of names."""

_HAS_LAPSED = has_lapsed("cname_target", "coalesce(cname_target_set_at, created_at)")
_SECURE_HAS_LAPSED = has_lapsed("secure_cname_target", "coalesce(secure_cname_target_set_at, created_at)")
_IS_TARGET = (
    f"(exists (select from applications where cname_target = {{name}} and not {_HAS_LAPSED})"
    f" or exists (select from applications where secure_cname_target = {{name}} and not {_SECURE_HAS_LAPSED}))"
)
"""Whether a name is an application's cname target that reserves it. With ``{name}``, which is SQL."""

EndReason: TypeAlias = Literal["moved", "released"]
"""Why a holder has lost a name: its DNS, or an operator, gave it to another application; an operator freed it."""


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A name that an application held until then."""

    domain: str
    released_at: datetime


@dataclass(frozen=True, slots=True)
class FormerHolder:
    """An application that held a name, and until when that is remembered."""

    application_id: str
    released_at: datetime
    remembered_until: datetime


async def find_standing(connection: Connection, name: DomainName, claimant: str) -> OwnershipRecord:
    """Return what is known of `name` now; it stays so under `certificates.lock_domain`."""
    row = await connection.fetchrow(
        f"""
        select (select application_id from domains where domain = $1 limit 1) as holder,
            (select min(created_at) from domains where domain = $1) as held_since,
            array(select application_id from former_holders
                where domain = $1 and target_until is null and released_at > now() - make_interval(days => $3)
                order by released_at desc) as former_holders,
            {_IS_TARGET.format(name="$1")} as is_target,
            exists (select from applications where id = $2 and $1 in (cname_target, secure_cname_target))
                as is_own_target,
            exists (select from domains where domain = $5 and application_id <> $2) as is_beneath_foreign_wildcard,
            exists (select from edge_policies where scope = 'domain' and subject = $1) as is_blocked,
            exists (select from edge_policies where scope = 'application' and subject = $2) as is_suspended,
            $4 and (exists (select from applications where id <> $2 and not {_HAS_LAPSED}
                    and reverse(cname_target) collate "C" > reverse($1) || '.'
                    and reverse(cname_target) collate "C" < reverse($1) || '/')
                or exists (select from applications where id <> $2 and not {_SECURE_HAS_LAPSED}
                    and reverse(secure_cname_target) collate "C" > reverse($1) || '.'
                    and reverse(secure_cname_target) collate "C" < reverse($1) || '/')) as is_above_foreign_target
        """,
        name.text,
        claimant,
        REMEMBERED_DAYS,
        name.is_root,
        wildcard_above(name.text),
    )
    assert row is not None, "a select without a table has one row"
    return OwnershipRecord(**{**row, "former_holders": tuple(row["former_holders"])})


async def find_targets(connection: Connection, names: Collection[str]) -> list[Target]:
    """Return the cname targets among `names`, in the order in which they were set."""
    rows = await connection.fetch(
        "select cname_target as name, id as application_id, organisation_id,"
        "  coalesce(cname_target_set_at, created_at) as set_at from applications where cname_target = any($1)"
        " union all select secure_cname_target, id, organisation_id, coalesce(secure_cname_target_set_at, created_at)"
        " from applications where secure_cname_target = any($1) order by set_at",
        names,
    )
    return [Target(**row) for row in rows]


async def find_taken(connection: Connection, names: Collection[str]) -> tuple[dict[str, str], set[str]]:
    """Return the holder of each name that is held, and which of the names are cname targets.

    It stays so under `certificates.lock_domain`.
    """
    rows = await connection.fetch(
        "select wanted.domain as name,"
        " (select application_id from domains d where d.domain = wanted.domain limit 1) as holder,"
        f" {_IS_TARGET.format(name='wanted.domain')} as is_target"
        " from unnest($1::text[]) as wanted (domain)",
        list(names),
    )
    holders = {row["name"]: row["holder"] for row in rows if row["holder"] is not None}
    return holders, {row["name"] for row in rows if row["is_target"]}


async def list_former_holders(connection: Connection, domain: str) -> list[FormerHolder]:
    """Return the name's former holders that are remembered, the last one first.

    Applications that had the name as a cname target are not among them.
    """
    rows = await connection.fetch(
        "select application_id, released_at, released_at + make_interval(days => $2) as remembered_until"
        " from former_holders where domain = $1 and target_until is null"
        " and released_at > now() - make_interval(days => $2)"
        " order by released_at desc",
        domain,
        REMEMBERED_DAYS,
    )
    return [FormerHolder(**row) for row in rows]


async def list_given_up(
    connection: Connection, application_id: str, *, after: str = "", most: int = 50
) -> list[GivenUp]:
    """Return the names that the application gave up within `REMEMBERED_DAYS` and that are free, sorted by name."""
    rows = await connection.fetch(
        "select domain, released_at from former_holders f where application_id = $1 and target_until is null"
        ' and domain collate "C" > $2 and released_at > now() - make_interval(days => $3)'
        " and not exists (select from domains d where d.domain = f.domain)"
        ' order by domain collate "C" limit $4',
        application_id,
        after,
        REMEMBERED_DAYS,
        most,
    )
    return [GivenUp(**row) for row in rows]


async def remember(connection: Connection, domains: Collection[str], application_id: str) -> None:
    """Note that the application has held these names until now."""
    await connection.execute(
        "insert into former_holders (domain, application_id, released_at) select name, $2, clock_timestamp()"
        " from unnest($1::text[]) name on conflict (domain, application_id) do update"
        " set released_at = excluded.released_at, target_until = null",
        domains,
        application_id,
    )


async def remember_targets(connection: Connection, targets: Collection[str], application_id: str) -> None:
    """Note that these names were cname targets of the application until now.

    The oldest beyond `MOST_FORMER_TARGETS` are forgotten.
    """
    await connection.execute(
        "insert into former_holders (domain, application_id, released_at, target_until)"
        " select name, $2, 'infinity', clock_timestamp() from unnest($1::text[]) name"
        " on conflict (domain, application_id) do update set target_until = excluded.target_until"
        " where former_holders.target_until is not null",
        targets,
        application_id,
    )
    await connection.execute(
        "delete from former_holders where application_id = $1 and domain = any(array(select domain from former_holders"
        " where application_id = $1 and target_until is not null order by target_until desc offset $2))",
        application_id,
        MOST_FORMER_TARGETS,
    )


async def release_targets(connection: Connection, targets: Collection[str], application_id: str) -> None:
    """Remember the targets of an application that is being deleted, and its former ones, for `REMEMBERED_DAYS`."""
    await remember_targets(connection, targets, application_id)
    await connection.execute(
        "update former_holders set released_at = clock_timestamp()"
        " where application_id = $1 and target_until is not null",
        application_id,
    )


async def forget(connection: Connection, domain: str) -> int:
    """Free the name of its former holders, and return how many they were."""
    rows = await connection.fetch("delete from former_holders where domain = $1 returning domain", domain)
    return len(rows)


async def revoke_ownership(connection: Connection, domain: str, holder: str, reason: EndReason) -> bool:
    """End all that `holder` has of the name, with an event for its owner.

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
    return True
