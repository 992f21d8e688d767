"""The lists of Power and Secure: pages of an application's domains in the order they were added, and their total.

Owns no table; reads ``domains`` and the tallies that triggers keep. Lists of all products,
sorted or searched: `common.db.domain_list`.
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from asyncpg import Connection, Record

from common.db.domains import STATUS_NOW, Product, Status
from common.db.session import UNAWAITED

_MOST_SKIPPED = 1000
_SETTLED_AT_ONCE = 1000
_SETTLED_ROUNDS = 5
_SETTLE = f"select settle_lapsed_domains($1, $2), {UNAWAITED}"

_LISTED = f"""d.domain, d.product, d.redirect_to, {STATUS_NOW} as status, d.created_at,
        coalesce(d.updated_at, d.created_at) as updated_at, d.metadata, d.visitors, d.response_policy,
        c.issuer, c.not_after, a.is_test,
        coalesce(d.application_url, a.application_url, '') as application_url,
        coalesce(d.root_path_access, a.root_path_access) as root_path_access"""

_LISTED_CERTIFICATE = """certificates c on c.domain = d.domain and c.application_id = d.application_id
        and c.released_at is null"""

# Both totals and the place of a page come from tallies, so that neither walks the list. `before` domains of the place
# come before the page.
_PAGE = """
    with start as materialized (select begins_at, before from find_domains($1, $2, {status}, $3, $5)),
    page as materialized ({page}),
    total as materialized (
        select coalesce(sum(domains), 0)::bigint as total from domain_tallies
        where application_id = $1 and product = $2 and span = (domain_spans())[1] {of_status}
    ),
    lapse as materialized (
        select min(active_until) <= now() as is_due from domains where application_id = $1 and is_active
    )
    select total, is_due, {shown}
    from total cross join lapse
        left join (page join domains d using (domain) join applications a on a.id = d.application_id
            left join {certificate}) on d.product = $2
    order by d.created_at, d.domain
"""

_PART = """
    select domain, created_at from domains
    where application_id = $1 and product = $2 and is_active = {status}
        and created_at >= (select begins_at from start) order by created_at, domain
"""

_LIMIT = "limit (select before from start) + $4"
_OFFSET = "offset (select before from start) limit $4"
_PAGE_OF_STATUS = _PAGE.format(
    status="$6",
    of_status="and is_active = $6",
    shown=_LISTED,
    certificate=_LISTED_CERTIFICATE,
    page=f"{_PART.format(status='$6')} {_OFFSET}",
)

_PAGE_OF_ALL = _PAGE.format(
    status="null",
    of_status="",
    shown=_LISTED,
    certificate=_LISTED_CERTIFICATE,
    page=f"({_PART.format(status='true')} {_LIMIT}) union all ({_PART.format(status='false')} {_LIMIT})"
    f" order by created_at, domain {_OFFSET}",
)


@dataclass(frozen=True, slots=True)
class ListedDomain:
    """A domain as a list shows it; the attributes are `Domain`'s.

    `issuer` and `not_after` are its certificate's, if it has one; `updated_at` is when its settings were last changed.
    """

    domain: str
    product: Product
    application_url: str
    root_path_access: tuple[str, ...]
    status: Status
    redirect_to: str | None
    created_at: datetime
    updated_at: datetime
    issuer: str | None
    not_after: datetime | None
    metadata: Mapping[str, str] | None = None
    visitors: Mapping[str, Any] | None = None
    response_policy: Mapping[str, Any] | None = None
    is_test: bool = False


@dataclass(frozen=True, slots=True)
class DomainPage:
    """A page of a list. `total` counts every domain that matches, not only the items."""

    items: tuple[ListedDomain, ...]
    total: int


async def list_page(
    connection: Connection[Record],
    application_id: str,
    product: Product,
    status: Status | None,
    *,
    offset: int,
    limit: int,
    most_skipped: int = _MOST_SKIPPED,
) -> DomainPage:
    """Return the application's domains in the order they were added, and how many there are, as of one moment.

    `most_skipped`: so many domains may be passed over to find the page.
    """
    statement, values = _PAGE_OF_ALL, [application_id, product, offset, limit, most_skipped]
    if status is not None:
        statement, values = _PAGE_OF_STATUS, [*values, status == "active"]
    rows = await connection.fetch(statement, *values)
    if rows[0]["is_due"]:
        await settle_lapsed(connection, application_id)
        rows = await connection.fetch(statement, *values)
    return DomainPage(tuple(_listed(row) for row in rows if row["domain"] is not None), rows[0]["total"])


async def find_listed(
    connection: Connection[Record], application_id: str, product: Product, names: Sequence[str]
) -> list[ListedDomain]:
    """Return the application's domains with these names as a list shows them, in the order of `names`."""
    rows = await connection.fetch(
        f"select {_LISTED} from unnest($3::text[]) with ordinality wanted (domain, place)"
        " join domains d on d.domain = wanted.domain and d.product = $2 and d.application_id = $1"
        f" join applications a on a.id = d.application_id left join {_LISTED_CERTIFICATE} order by place",
        application_id,
        product,
        names,
    )
    return [_listed(row) for row in rows]


async def find_by_metadata(
    connection: Connection[Record],
    application_id: str,
    product: Product,
    key: str,
    value: str,
    *,
    after: str,
    most: int,
) -> list[str]:
    """Return the next `most` names after `after` of the application's domains with this note, in their order."""
    rows = await connection.fetch(
        "select domain from domain_metadata where application_id = $1 and product = $2 and key = $3 and value = $4"
        " and domain > $5 order by domain limit $6",
        application_id,
        product,
        key,
        value,
        after,
        most,
    )
    return [row["domain"] for row in rows]


async def settle_lapsed(connection: Connection[Record], application_id: str) -> None:
    """Bring the kept status of the application's lapsed domains in line with the clock.

    Of more than `_SETTLED_ROUNDS` batches, the next lists do the rest.
    """
    for _ in range(_SETTLED_ROUNDS):
        settled = await connection.fetchval(_SETTLE, application_id, _SETTLED_AT_ONCE)
        if settled < _SETTLED_AT_ONCE:
            return


def _listed(row: Record) -> ListedDomain:
    return ListedDomain(
        row["domain"],
        row["product"],
        row["application_url"],
        tuple(row["root_path_access"]),
        row["status"],
        row["redirect_to"],
        row["created_at"],
        row["updated_at"],
        row["issuer"],
        row["not_after"],
        row["metadata"],
        row["visitors"],
        row["response_policy"],
        row["is_test"],
    )
