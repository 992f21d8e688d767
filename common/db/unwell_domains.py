"""Domains that are active and yet need a look: blocked, without a certificate, or with an origin that gives no answer.

Owns no table. The rows are those of the list of domains (`common.db.domain_list`).
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from asyncpg import Record

from common.db.domain_list import ListRow
from common.db.domain_list_query import ListKey
from common.db.order_queue import AWAITED
from common.db.session import Connection

_MOST_ORDERS_READ = 1_000
_COLUMNS = "d.domain, d.product, d.application_id, d.created_at, d.active_until, a.name as application_name, a.is_test"
_UNCERTIFIED = f"""
    select {_COLUMNS}, null::timestamptz as not_after
    from (select domain, state from orders where {AWAITED.listed} and {{of_applications}} limit {_MOST_ORDERS_READ}) o
    join domains d on d.domain = o.domain and d.active_until > now()
    join applications a on a.id = d.application_id
    where o.state = 'failed'
        and not exists (select from certificates c where c.domain = d.domain and c.released_at is null)
    order by d.domain, d.product limit $1
"""


async def list_uncertified(connection: Connection, applications: Sequence[str] | None, *, most: int) -> list[ListRow]:
    """Return active domains without a certificate whose orders failed: those among `_MOST_ORDERS_READ` orders."""
    return await _list(connection, _UNCERTIFIED, "application_id", applications, most)


_UNANSWERED = f"""
    select {_COLUMNS}, c.not_after
    from origin_outages o
    join applications a on a.id = o.application_id
    join lateral (
        (select * from domains where application_url is not null and application_id = o.application_id
            and (application_url = o.origin or starts_with(application_url, o.origin || '/')) limit $1)
        union all
        (select * from domains
            where application_url is null and redirect_to is null and application_id = o.application_id
                and (a.application_url = o.origin or starts_with(a.application_url, o.origin || '/')) limit $1)
    ) d on d.active_until > now()
    left join certificates c on c.domain = d.domain and c.released_at is null
    where o.reported_at is not null and {{of_applications}}
    order by d.domain, d.product limit $1
"""


async def _list_unanswered(connection: Connection, applications: Sequence[str] | None, *, most: int) -> list[ListRow]:
    """Return active domains whose origin is reported to fail (`common.db.origin_outages`)."""
    rows = await _list(connection, _UNANSWERED, "o.application_id", applications, most)
    return [replace(row, origin_fails=True) for row in rows]


_BLOCKED = f"""
    select {_COLUMNS}, c.not_after
    from edge_policies p
    join lateral (
        (select * from domains where p.scope = 'domain' and domain = p.subject)
        union all
        (select * from domains where p.scope = 'application' and application_id = p.subject limit $1)
    ) d on d.active_until > now()
    join applications a on a.id = d.application_id
    left join certificates c on c.domain = d.domain and c.released_at is null
    where {{of_applications}}
    order by d.domain, d.product limit $1
"""


async def _list_blocked(connection: Connection, applications: Sequence[str] | None, *, most: int) -> list[ListRow]:
    """Return active domains that edges answer with a policy: blocked, or of a suspended application."""
    rows = await _list(connection, _BLOCKED, "a.id", applications, most)
    return [replace(row, is_blocked=True) for row in rows]


async def list_unwell(connection: Connection, applications: Sequence[str] | None, *, most: int) -> list[ListRow]:
    """Return active domains that need a look, each once: blocked ones first, those without a certificate last.

    At most `most` of each kind; `applications` None: of all.
    """
    found: dict[ListKey, ListRow] = {}
    for list_kind in (_list_blocked, _list_unanswered, list_uncertified):
        for row in await list_kind(connection, applications, most=most):
            found.setdefault(row.key, row)
    return list(found.values())


async def _list(
    connection: Connection, statement: str, column: str, applications: Sequence[str] | None, most: int
) -> list[ListRow]:
    """Run a statement of this module for the domains whose `column` is one of the applications; None: for all."""
    if applications is None:
        rows = await connection.fetch(statement.format(of_applications="true"), most)
    else:
        rows = await connection.fetch(statement.format(of_applications=f"{column} = any($2)"), most, list(applications))
    return list(map(_as_row, rows))


def _as_row(row: Record) -> ListRow:
    """Return an active domain as the list shows it."""
    product, held_until = row["product"], row["active_until"]
    return ListRow(
        ListKey(row["domain"], product, row["application_id"], row["created_at"], held_until, True),
        row["application_name"],
        "active",
        row["not_after"],
        False,
        is_test=row["is_test"],
    )
