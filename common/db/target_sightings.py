"""Where cname targets lead, as monitors have seen it. Owns the SQL of ``target_sightings``.

Rules
    each cname target, and each former one that is remembered, is asked about every `EVERY_HOURS`, by one of the
        monitors
    a target has lapsed when the first and the last sighting of it elsewhere, without one here between, are `LAPSE_DAYS`
        apart, the last one within `FRESH_HOURS`; it reserves nothing then, until it is seen to lead here again
    what could not be asked is no sighting, and an application's time begins when it sets the target
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from common.db.session import Connection

EVERY_HOURS = 4
FRESH_HOURS = 24
LAPSE_DAYS = 7
_RETRY_MINUTES = 30  # where the DNS could not be asked
KEPT_DAYS = 30  # after a name is no target any more


@dataclass(frozen=True, slots=True)
class TargetSighting:
    """The place where a cname target leads, as monitors saw it.

    `here_at`: when it was last seen to lead here. `elsewhere_since`: since when it was seen to lead elsewhere, if it
    does. `has_lapsed`: it reserves nothing.
    """

    target: str
    here_at: datetime | None
    elsewhere_since: datetime | None
    has_lapsed: bool

    @property
    def lapses_at(self) -> datetime | None:
        """Return when it reserves nothing any more if it goes on to lead elsewhere; None if it leads here."""
        return self.elsewhere_since + timedelta(days=LAPSE_DAYS) if self.elsewhere_since is not None else None


def has_lapsed(target: str, set_at: str) -> str:
    """Return the SQL condition that a cname target has lapsed. `target` and `set_at`, since when it is one, are SQL."""
    return (
        f"exists (select from target_sightings seen where seen.target = {target}"
        f" and seen.elsewhere_at > now() - interval '{FRESH_HOURS} hours'"
        f" and seen.elsewhere_at - greatest(seen.elsewhere_since, {set_at}) >= interval '{LAPSE_DAYS} days')"
    )


async def claim(connection: Connection, *, most: int) -> list[str]:
    """Return targets that are due, which no other monitor asks about now."""
    rows = await connection.fetch(
        """
        insert into target_sightings (target, due_at)
        select name, now() + make_interval(hours => $2) from (
            select cname_target as name from applications
            union select secure_cname_target from applications where secure_cname_target is not null
            union select domain from former_holders where target_until is not null
        ) targets left join target_sightings on target = name
        where name not like '%.invalid' and coalesce(due_at, '-infinity') <= now()
        order by due_at nulls first, name limit $1
        on conflict (target) do update set due_at = excluded.due_at where target_sightings.due_at <= now()
        returning target
        """,
        most,
        EVERY_HOURS,
    )
    return [row["target"] for row in rows]


async def note(
    connection: Connection, *, here: Collection[str], elsewhere: Collection[str], unknown: Collection[str]
) -> None:
    """Record where the DNS of targets led when it was asked just now.

    `unknown` could not be asked: they are asked about again soon.
    """
    await connection.execute(
        "update target_sightings set here_at = now(), elsewhere_since = null, elsewhere_at = null"
        " where target = any($1::text[])",
        here,
    )
    await connection.execute(
        "update target_sightings set elsewhere_since = coalesce(elsewhere_since, now()), elsewhere_at = now()"
        " where target = any($1::text[])",
        elsewhere,
    )
    await connection.execute(
        "update target_sightings set due_at = now() + make_interval(mins => $2) where target = any($1::text[])",
        unknown,
        _RETRY_MINUTES,
    )


async def find(connection: Connection, application_id: str) -> list[TargetSighting]:
    """Return the sightings of the application's cname targets, Power's first.

    None of those that no monitor has asked about yet is among them.
    """
    rows = await connection.fetch(
        "select seen.target, here_at,"
        " case when elsewhere_since is not null then greatest(elsewhere_since, set_at) end as elsewhere_since,"
        f" {has_lapsed('seen.target', 'set_at')} as has_lapsed from ("
        " select 1 as place, cname_target as target, coalesce(cname_target_set_at, created_at) as set_at"
        "  from applications where id = $1"
        " union all select 2, secure_cname_target, coalesce(secure_cname_target_set_at, created_at)"
        "  from applications where id = $1 and secure_cname_target is distinct from cname_target"
        ") own join target_sightings seen on seen.target = own.target"
        " where here_at is not null or elsewhere_since is not null order by place",
        application_id,
    )
    return [TargetSighting(**row) for row in rows]
