"""The list of all products' domains: searched by a part of the name, filtered, sorted, read a part at a time.

Owns no table. A part is found by its key (the row after which it begins) in an index of the list's order, so that it
costs the same anywhere in the list.

Rules
    the caller states the applications whose rows are listed; None is every application, for operators only
    a name stands once for each product and application; the key is unique: name, product, application
    each order has an index that begins with the application and the product, and one for each status; the order of all
    applications' has one that begins with the product. What orders a list is read from the index alone; the rows
    themselves are read of the names that are shown
    several applications' names are looked for in every application's list first, which holds the application of each
    name: ten names for each of them. Where those hold too few, the next names of each are merged
    a search walks the next `window` names first, since what many names contain is soon met, and half a part of it is
    enough; what few contain is then found in the index of name parts (`name_grams`). That index is every application's:
    so many of others' names can hold the text that it is given up after `indexed` names or `index_seconds`, and
    `walked` names are walked. A part can thus hold fewer rows than its limit, even none, while the list goes on
    a search of several applications reads an equal share of a walk from each, and `fewest_own` names at least. What
    follows the last name that was read of any application is not known, so the walk ends there. So that an application
    with most of the names does not end it soon, more is read of those whose share ends first

The limits of a search are `SearchLimits`; the statements are `common.db.domain_list_statement`'s.
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from asyncpg import QueryCanceledError, Record

from common.db.domain_list_query import DomainListQuery, ListKey, Product
from common.db.domain_list_statement import ListStatement, first_names, until_one_ends
from common.db.session import UNAWAITED, Connection

# The row of a monitored name is read for its id, which no index of a list holds: Postgres takes an application for an
# average one, and would look through all of its entries in such an index.
_DETAILS = """
    select found.*, m.id as monitored_id, a.id as application_id, a.name as application_name, a.is_test,
        coalesce(d.created_at, m.date_added) as added_at, coalesce(d.active_until, 'infinity') as lapses_at,
        case when found.product = 'monitor' then m.state
            when d.active_until > now() then 'active' else 'inactive' end as status,
        c.not_after, d.departed_at is not null as moved_away, d.metadata
    from found
    left join domains d on d.domain = found.name and d.product = found.product
    left join certificates c on found.product <> 'monitor' and c.domain = found.name and c.released_at is null
    left join monitored_domains m on found.product = 'monitor' and m.application_id = found.owner_id
        and m.domain = found.apex and coalesce(m.subdomain, '') = found.subdomain
    join applications a on a.id = coalesce(d.application_id, m.application_id)
"""


@dataclass(frozen=True, slots=True)
class ListRow:
    """A row of the list: a name under one product of one application.

    `status`: active or inactive of Power and Secure; present, missing or unchecked of Monitor. `not_after` is the
    certificate's. `origin_fails`: it is reported that its origin gives edges no answer. `metadata`: the application's
    notes of an enrolled domain. `is_blocked`: edges answer with a policy in place of its origin.
    """

    key: ListKey
    application_name: str
    status: str
    not_after: datetime | None
    moved_away: bool
    origin_fails: bool = False
    metadata: Mapping[str, str] | None = None
    is_test: bool = False
    is_blocked: bool = False

    @property
    def name(self) -> str:
        """Return the whole name."""
        return self.key.name

    @property
    def product(self) -> Product:
        """Return the product that the name is enrolled in."""
        return self.key.product

    @property
    def application_id(self) -> str:
        """Return the application that the row belongs to."""
        return self.key.application_id

    @property
    def added_at(self) -> datetime:
        """Return when the name was added."""
        return self.key.added_at


@dataclass(frozen=True, slots=True)
class ListPart:
    """The rows of one part; `next` is where the list goes on, None at its end."""

    rows: list[ListRow]
    next: ListKey | None


async def list_part(connection: Connection, wanted: DomainListQuery) -> ListPart:
    """Return the next rows of the list; without a text, fewer than the limit only at the end of the list."""
    if wanted.applications is not None and not wanted.applications:
        return ListPart([], None)
    if wanted.note is not None:
        return await _read_noted(connection, wanted, *wanted.note)
    if not wanted.text:
        return await _read(connection, wanted)
    limits = wanted.limits
    part = await _walk(connection, wanted, limits.window)
    if part.next is None or 2 * len(part.rows) >= wanted.limit:
        return part  # half a part now, rather than a whole one for several times the work
    enough = 2 * wanted.limit * limits.window // max(1, len(part.rows))  # names, at the rate at which the text was met
    is_indexed = len(wanted.text) >= limits.fewest_characters
    if is_indexed and enough > limits.walked:  # of a more common text the index would find too many
        found = await _find(connection, wanted)
        if found is not None:
            return found
    most = min(enough, limits.walked)
    if wanted.is_of_many and _names_per_application(wanted, most) == _names_per_application(wanted, limits.window):
        return part  # of so many applications a longer walk would read the same names
    return await _walk(connection, wanted, most)


class _TooManyMatchesError(Exception):
    """The index of name parts has more of the text than a search reads."""


async def _find(connection: Connection, wanted: DomainListQuery) -> ListPart | None:
    """Return what the index of name parts finds; None if there is too much of it, or if that takes too long."""
    query, limits = ListStatement(wanted), wanted.limits
    branches, order, limit = query.branches(wanted.limit, by_text=True), query.order, wanted.limit
    if not branches:
        return ListPart([], None)
    statement = (
        f"with {query.held()}, found as materialized (select * from ({branches}) each_one order by {order}"
        f" limit {limit}) select most_held, shown.* from (select greatest({query.counts_held()}) as most_held) held"
        f" left join ({_DETAILS}) shown on true order by {order}"
    )
    try:
        async with connection.transaction():
            await connection.execute(f"set local statement_timeout = {limits.index_seconds * 1000:.0f}")
            found = await connection.fetch(statement, *query.values)
            if found[0]["most_held"] > limits.indexed:
                raise _TooManyMatchesError  # so that the time-out does not go on in a transaction of the caller's
    except (QueryCanceledError, _TooManyMatchesError):
        return None
    rows = [_row(each) for each in found if each["name"] is not None]
    return ListPart(rows, rows[-1].key if len(rows) == limit else None)


async def _walk(connection: Connection, wanted: DomainListQuery, most: int) -> ListPart:
    """Return those of the next `most` names of the list that hold the text.

    Of several applications, as many of the next names are read as are known. The last name of the walk is read too: the
    list goes on after it.
    """
    query = ListStatement(wanted)
    own = _names_per_application(wanted, most) if wanted.is_of_many else most
    branches, order = query.branches(own, by_text=False), query.order
    if not branches:
        return ListPart([], None)
    matches = query.matches("name")
    walked = until_one_ends(branches, order) if wanted.is_of_many else first_names(branches, order, most)
    found = await connection.fetch(
        f"with found as materialized (select walked.*, {matches} as matches from ({walked}) walked"
        f" where {matches} or is_last order by place limit {wanted.limit}) {_DETAILS} order by place",
        *query.values,
    )
    rows = [_row(each) for each in found if each["matches"]]
    is_over = len(rows) < wanted.limit and not (found and found[-1]["is_last"])
    return ListPart(rows, None if is_over else _key(found[-1]))


def _names_per_application(wanted: DomainListQuery, most: int) -> int:
    """Return how many names of each application a walk of `most` reads."""
    return max(wanted.limits.fewest_own, most // len(wanted.applications or (None,)))


async def _read(connection: Connection, wanted: DomainListQuery) -> ListPart:
    """Return the next rows of a list without a text."""
    query = ListStatement(wanted)
    branches = query.branches(wanted.limit, by_text=False)
    if not branches:
        return ListPart([], None)
    found = await connection.fetch(
        f"with found as materialized (select * from ({branches}) each_one order by {query.order}"
        f" limit {wanted.limit}) {_DETAILS} order by {query.order}",
        *query.values,
    )
    rows = [_row(each) for each in found]
    return ListPart(rows, rows[-1].key if len(rows) == wanted.limit else None)


_NOTED = f"""
    with found as materialized (
        select m.domain as name, m.product, m.application_id as owner_id, null::text as apex, null::text as subdomain,
            d.is_active as is_well
        from applications a
        join domain_metadata m on m.application_id = a.id and m.product = any($2::text[])
            and m.key = $3 and m.value = $4
        join domains d on d.domain = m.domain and d.product = m.product
        where ($1::text[] is null or a.id = any($1)) and ($5::boolean is null or d.is_active = $5)
            and (m.domain, m.product) > ($6, $7)
        order by m.domain, m.product limit $8
    )
    {_DETAILS} order by name, product
"""


async def _read_noted(connection: Connection, wanted: DomainListQuery, key: str, value: str) -> ListPart:
    """Return the next enrolled domains with this text under this key of their metadata, by name."""
    found = await connection.fetch(
        _NOTED,
        None if wanted.applications is None else list(wanted.applications),
        [wanted.product] if wanted.product else ["power", "secure"],
        key,
        value,
        None if wanted.status is None else wanted.status == "active",
        *((wanted.after.name, wanted.after.product) if wanted.after else ("", "")),
        wanted.limit,
    )
    rows = [_row(each) for each in found]
    return ListPart(rows, rows[-1].key if len(rows) == wanted.limit else None)


def _row(row: Record) -> ListRow:
    return ListRow(
        _key(row),
        row["application_name"],
        row["status"],
        row["not_after"],
        row["moved_away"],
        metadata=row["metadata"],
        is_test=row["is_test"],
    )


def _key(row: Record) -> ListKey:
    is_well = row["is_well"] is not False
    return ListKey(row["name"], row["product"], row["application_id"], row["added_at"], row["lapses_at"], is_well)


async def settle_lapsed(connection: Connection, *, most: int = 1000) -> None:
    """Bring the kept status of domains whose certificate has lapsed in line with the clock."""
    await connection.execute(
        "with lapsed as (select domain, product from domains where is_active and active_until <= now()"
        " order by active_until limit $1 for no key update skip locked)"
        " update domains d set active_until = null from lapsed"
        f" where d.domain = lapsed.domain and d.product = lapsed.product returning {UNAWAITED}",
        most,
    )
