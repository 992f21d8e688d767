"""Origins that edges cannot reach, and whose domains lead there. Owns the SQL of ``origin_outages``.

Rules
    an outage is reported, as one event for each application and origin, once it has lasted `REPORT_SECONDS` and a
        monitor cannot reach the origin either; or once edges alone have failed for `ALONE_SECONDS`
    it is over once no edge has reported it for `OVER_SECONDS` and the origin answers a monitor; only an outage that was
        reported is reported to be over
    one that follows the end of another within `RELAPSE_SECONDS` has to be unreported for `UNSTEADY_OVER_SECONDS`, so
        that an origin which fails every few seconds makes few events; one without an event as well, so that such an
        origin makes one at all
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias, cast, get_args

from asyncpg import Record

from common.db.session import Connection
from common.origin_faults import OriginFault, OriginIdentity

REPORT_SECONDS = 20
OVER_SECONDS = 12
"""Two checks of a monitor and more. Edges report an origin until they reach it, or a minute after the last attempt."""
RELAPSE_SECONDS = 600
UNSTEADY_OVER_SECONDS = 75
ALONE_SECONDS = 90
_MOST_ORIGINS = 200
"""The most origins that are read at once: each one's domains are counted."""
_MOST_COUNTED = 100_000

_IS_UNSEEN = f"""o.seen_at < now() - make_interval(secs => case when o.reported_at is null or exists (
    select from events e where e.application_id = o.application_id and e.type = 'domain.origin_recovered'
        and e.fields ->> 'origin' = o.origin and e.created_at > now() - make_interval(secs => {RELAPSE_SECONDS})
) then {UNSTEADY_OVER_SECONDS} else {OVER_SECONDS} end)"""
_SELECT = "select o.*, a.name as application_name from origin_outages o join applications a on a.id = o.application_id"

Key: TypeAlias = tuple[str, str]
"""An application's id, and an origin."""


@dataclass(frozen=True, slots=True)
class OriginOutage:
    """An origin that edges cannot reach, and the domains of one application that lead there.

    `origin` is as URLs begin, such as ``https://app.example:8443``; `domains` of the application lead there, and
    `example` is one of them. `seen_at`: when an edge last reported it, or a monitor could not reach it.
    """

    application_id: str
    application_name: str
    origin: str
    fault: OriginFault
    since: datetime
    seen_at: datetime
    domains: int
    example: str | None

    @property
    def lasted_seconds(self) -> float:
        """Return for how long it is known to have lasted."""
        return (self.seen_at - self.since).total_seconds()

    @property
    def key(self) -> Key:
        """Return what identifies the outage."""
        return self.application_id, self.origin


async def read_failing(connection: Connection) -> list[tuple[OriginIdentity, OriginFault]]:
    """Return the origins that edges with a lease report as failing, with one fault of each."""
    rows = await connection.fetch(
        "select failing -> 'origin' as origin, min(failing ->> 'fault') as fault"
        " from edge_nodes, jsonb_array_elements(failing_origins) as failing"
        " where lease_until > clock_timestamp() and failing ->> 'fault' = any($1) group by 1 order by 1 limit $2",
        get_args(OriginFault),
        _MOST_ORIGINS,
    )
    return [(OriginIdentity(**row["origin"]), cast("OriginFault", row["fault"])) for row in rows]


async def note_failing(connection: Connection, identity: OriginIdentity, origin: str, fault: OriginFault) -> None:
    """Note, for each application whose domains lead there, that the origin fails now. `origin` is as URLs begin."""
    await connection.execute(
        """
        insert into origin_outages as known (application_id, origin, fault, domains, example)
        select d.application_id, $1, $2, count(*), min(d.domain)
        from (
            (select application_id, domain from domains
                where application_url is not null and (application_url = $1 or application_url like $3) limit $4)
            union all
            (select d.application_id, d.domain from applications a join domains d on d.application_id = a.id
                where d.application_url is null and d.redirect_to is null
                    and (a.application_url = $1 or a.application_url like $3) limit $4)
        ) d join applications a on a.id = d.application_id
        where a.origin_verify = $5 and coalesce(a.origin_server_name, $6) = $7
        group by d.application_id
        on conflict (application_id, origin) do update set
            seen_at = now(), fault = excluded.fault, domains = excluded.domains, example = excluded.example
        """,
        origin,
        fault,
        f"{_escaped(origin)}/%",
        _MOST_COUNTED,
        identity.verify,
        identity.host,
        identity.server_name,
    )


async def list_unreported(connection: Connection, *, most: int) -> list[OriginOutage]:
    """Return outages that have lasted long enough for an event: those that last longest first."""
    rows = await connection.fetch(
        f"{_SELECT} where reported_at is null and since <= now() - make_interval(secs => $1)"
        " and seen_at >= now() - make_interval(secs => $2) order by since limit $3",
        REPORT_SECONDS,
        OVER_SECONDS,
        most,
    )
    return [_outage(row) for row in rows]


async def note_report(connection: Connection, outage: OriginOutage) -> bool:
    """Note that the outage's event is recorded in this transaction; return False if another has recorded it."""
    status = await connection.execute(
        "update origin_outages set reported_at = now()"
        " where application_id = $1 and origin = $2 and reported_at is null",
        *outage.key,
    )
    return status == "UPDATE 1"


async def list_unseen(connection: Connection, *, most: int) -> list[OriginOutage]:
    """Return outages that no edge has reported for long: they are over if the origin answers."""
    rows = await connection.fetch(f"{_SELECT} where {_IS_UNSEEN} order by seen_at limit $1", most)
    return [_outage(row) for row in rows]


async def note_still_failing(connection: Connection, outage: OriginOutage) -> None:
    """Note that the origin was seen to fail now."""
    await connection.execute(
        "update origin_outages set seen_at = now() where application_id = $1 and origin = $2", *outage.key
    )


async def end(connection: Connection, outage: OriginOutage) -> bool:
    """Forget the outage, unless an edge has reported it meanwhile; return whether it had been reported."""
    row = await connection.fetchrow(
        "delete from origin_outages o where application_id = $1 and origin = $2"  # noqa: S608 - constants
        f" and {_IS_UNSEEN} returning reported_at is not null as was_reported",
        *outage.key,
    )
    return row is not None and row["was_reported"]


async def list_reported(
    connection: Connection, application_ids: Collection[str] | None, *, most: int
) -> list[OriginOutage]:
    """Return the outages of these applications, or of all (None), that have been reported: most domains first."""
    rows = await connection.fetch(
        f"{_SELECT} where reported_at is not null and ($1::text[] is null or application_id = any($1))"
        " order by domains desc, origin limit $2",
        None if application_ids is None else list(application_ids),
        most,
    )
    return [_outage(row) for row in rows]


async def find_failing(connection: Connection, keys: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return which of these domains (an application's id and a name) lead to an origin that is reported to fail."""
    rows = await connection.fetch(
        """
        select distinct d.application_id, d.domain
        from unnest($1::text[], $2::text[]) as asked (application_id, domain)
        join domains d using (application_id, domain)
        join applications a on a.id = d.application_id
        join origin_outages o on o.application_id = d.application_id and o.reported_at is not null
        where d.redirect_to is null and (coalesce(d.application_url, a.application_url) = o.origin
            or starts_with(coalesce(d.application_url, a.application_url), o.origin || '/'))
        """,
        [application_id for application_id, _ in keys],
        [name for _, name in keys],
    )
    return {(row["application_id"], row["domain"]) for row in rows}


def _escaped(text: str) -> str:
    """Return `text` as part of a pattern of LIKE."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _outage(row: Record) -> OriginOutage:
    return OriginOutage(
        row["application_id"],
        row["application_name"],
        row["origin"],
        row["fault"],
        row["since"],
        row["seen_at"],
        row["domains"],
        row["example"],
    )
