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
    name: `_NAMES_PER_APPLICATION` names for each of them. Where those hold too few, the next names of each are merged
    a search walks the next `_WINDOW` names first, since what many names contain is soon met, and half a part of it is
    enough; what few contain is then found in the index of name parts (`name_grams`). That index is every application's:
    so many of others' names can hold the text that it is given up after `_INDEXED` names or `_INDEX_SECONDS`, and
    `_WALKED` names are walked. A part can thus hold fewer rows than its limit, even none, while the list goes on
    a search of several applications reads an equal share of a walk from each, and `_FEWEST_OWN` names at least. What
    follows the last name that was read of any application is not known, so the walk ends there. So that an application
    with most of the names does not end it soon, more is read of those whose share ends first
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isqrt
from typing import Any, Literal, TypeAlias, get_args

from asyncpg import QueryCanceledError, Record

from common.db.order_queue import AWAITED
from common.db.session import Connection

Product: TypeAlias = Literal["power", "secure", "monitor"]
Status: TypeAlias = Literal["active", "problem"]
Sort: TypeAlias = Literal["name", "-name", "added", "-added", "expiry", "-expiry", "status", "-status"]
PRODUCTS: tuple[Product, ...] = get_args(Product)
STATUSES: tuple[Status, ...] = get_args(Status)
SORTS: tuple[Sort, ...] = get_args(Sort)

NEVER = datetime.max  # noqa: DTZ901 - as the driver reads it
"""The moment ``infinity``, without a time zone."""

_WINDOW = 2_000
_WALKED = 10_000
_NAMES_PER_APPLICATION = 10
_FEWEST_OWN = 10
_INDEXED = 1_000
_INDEX_SECONDS = 0.05
_FEWEST_CHARACTERS = 3
"""The length of the shortest text that the index finds."""


@dataclass(frozen=True, slots=True)
class ListKey:
    """The place where a part of the list ends: the next one begins after it. `lapses_at` may be infinite (`NEVER`)."""

    name: str
    product: Product
    application_id: str
    added_at: datetime
    lapses_at: datetime
    is_well: bool


@dataclass(frozen=True, slots=True)
class DomainListQuery:
    """The part of the list to be read.

    `text`: a part of the name, in lower case. `sort`: by ``expiry``, what is inactive comes first, then what lapses
    soonest, and at the end what has no certificate; by ``status``, what needs attention comes first.
    """

    applications: Sequence[str] | None
    text: str = ""
    product: Product | None = None
    status: Status | None = None
    sort: Sort = "name"
    after: ListKey | None = None
    limit: int = 50

    @property
    def is_of_many(self) -> bool:
        """Whether the list is of several applications, but not of every one."""
        return self.applications is not None and len(self.applications) > 1


@dataclass(frozen=True, slots=True)
class ListRow:
    """A row of the list: a name under one product of one application.

    `status`: active or inactive of Power and Secure; present, missing or unchecked of Monitor. `not_after` is the
    certificate's. `origin_fails`: it is reported that its origin gives edges no answer.
    """

    key: ListKey
    application_name: str
    status: str
    not_after: datetime | None
    moved_away: bool
    origin_fails: bool = False

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


@dataclass(frozen=True, slots=True)
class _Source:
    """A table, and the SQL of what the list needs of its rows."""

    table: str
    name: str
    product: str
    parts: str
    """The name's parts, by which the row of a monitored one is found in its unique index."""
    owner: str
    """The application, where the list is every application's: none where name and product are unique."""
    added: str
    lapses: str
    problem: str
    well: str
    others: tuple[str, ...]
    """Conditions of what is neither, for the order by status."""
    lapsed: str
    """As `problem`, by the clock and the column that the order by expiry has."""
    unlapsed: str


_ENROLLED = _Source(
    table="domains",
    name="domain",
    product="product",
    parts="null::text as apex, null::text as subdomain",
    owner="null::text",
    added="created_at",
    lapses="active_until",
    problem="is_active = false",
    well="is_active = true",
    others=(),
    lapsed="active_until <= now()",
    unlapsed="active_until > now()",
)
_MONITORED = _Source(
    table="monitored_domains",
    name="monitored_name(domain, subdomain)",
    product="'monitor'",
    parts="domain as apex, coalesce(subdomain, '') as subdomain",
    owner="application_id",
    added="date_added",
    lapses="'infinity'::timestamptz",
    problem="state = 'missing'",
    well="state = 'present'",
    others=("state = 'unchecked'",),
    lapsed="state = 'missing'",
    unlapsed="state = 'present'",
)
_COLUMNS = "lead, name, product, owner_id, is_well, apex, subdomain"
"""The columns of a branch."""

_LEADS = {"added": "added_at", "expiry": "lapses_at", "status": "is_well"}

# The row of a monitored name is read for its id, which no index of a list holds: Postgres takes an application for an
# average one, and would look through all of its entries in such an index.
_DETAILS = """
    select found.*, m.id as monitored_id, a.id as application_id, a.name as application_name,
        coalesce(d.created_at, m.date_added) as added_at, coalesce(d.active_until, 'infinity') as lapses_at,
        case when found.product = 'monitor' then m.state
            when d.active_until > now() then 'active' else 'inactive' end as status,
        c.not_after, d.departed_at is not null as moved_away
    from found
    left join domains d on d.domain = found.name and d.product = found.product
    left join certificates c on found.product <> 'monitor' and c.domain = found.name and c.released_at is null
    left join monitored_domains m on found.product = 'monitor' and m.application_id = found.owner_id
        and m.domain = found.apex and coalesce(m.subdomain, '') = found.subdomain
    join applications a on a.id = coalesce(d.application_id, m.application_id)
"""


_MOST_ORDERS_READ = 1_000
_UNCERTIFIED = f"""
    select d.domain, d.product, d.application_id, d.created_at, d.active_until, a.name as application_name
    from (select domain, state from orders where {AWAITED.listed} and {{whose}} limit {_MOST_ORDERS_READ}) o
    join domains d on d.domain = o.domain and d.active_until > now()
    join applications a on a.id = d.application_id
    where o.state = 'failed'
        and not exists (select from certificates c where c.domain = d.domain and c.released_at is null)
    order by d.domain, d.product limit $1
"""


async def list_uncertified(connection: Connection, applications: Sequence[str] | None, *, most: int) -> list[ListRow]:
    """Return active domains without a certificate whose orders failed: those among `_MOST_ORDERS_READ` orders."""
    if applications is None:
        rows = await connection.fetch(_UNCERTIFIED.format(whose="true"), most)
    else:
        rows = await connection.fetch(_UNCERTIFIED.format(whose="application_id = any($2)"), most, list(applications))
    return [
        ListRow(
            ListKey(row["domain"], row["product"], row["application_id"], row["created_at"], row["active_until"], True),
            row["application_name"],
            "active",
            None,
            False,
        )
        for row in rows
    ]


_UNANSWERED = """
    select d.domain, d.product, d.application_id, d.created_at, d.active_until, a.name as application_name, c.not_after
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
    where o.reported_at is not null and {whose}
    order by d.domain, d.product limit $1
"""


async def list_unanswered(connection: Connection, applications: Sequence[str] | None, *, most: int) -> list[ListRow]:
    """Return active domains whose origin is reported to fail (`common.db.origin_outages`)."""
    if applications is None:
        rows = await connection.fetch(_UNANSWERED.format(whose="true"), most)
    else:
        rows = await connection.fetch(_UNANSWERED.format(whose="o.application_id = any($2)"), most, list(applications))
    return [
        ListRow(
            ListKey(row["domain"], row["product"], row["application_id"], row["created_at"], row["active_until"], True),
            row["application_name"],
            "active",
            row["not_after"],
            False,
            True,
        )
        for row in rows
    ]


async def list_part(connection: Connection, wanted: DomainListQuery) -> ListPart:
    """Return the next rows of the list; without a text, fewer than the limit only at the end of the list."""
    if wanted.applications is not None and not wanted.applications:
        return ListPart([], None)
    if not wanted.text:
        return await _read(connection, wanted)
    part = await _walk(connection, wanted, _WINDOW)
    if part.next is None or 2 * len(part.rows) >= wanted.limit:
        return part  # half a part now, rather than a whole one for several times the work
    enough = 2 * wanted.limit * _WINDOW // max(1, len(part.rows))  # names, at the rate at which the text was met
    if enough > _WALKED and len(wanted.text) >= _FEWEST_CHARACTERS:  # of a more common text it would find too many
        found = await _find(connection, wanted)
        if found is not None:
            return found
    most = min(enough, _WALKED)
    if wanted.is_of_many and _names_per_application(wanted, most) == _names_per_application(wanted, _WINDOW):
        return part  # of so many applications a longer walk would read the same names
    return await _walk(connection, wanted, most)


class _TooManyMatchesError(Exception):
    """The index of name parts has more of the text than a search reads."""


async def _find(connection: Connection, wanted: DomainListQuery) -> ListPart | None:
    """Return what the index of name parts finds; None if there is too much of it, or if that takes too long."""
    query = _Statement(wanted)
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
            await connection.execute(f"set local statement_timeout = {_INDEX_SECONDS * 1000:.0f}")
            found = await connection.fetch(statement, *query.values)
            if found[0]["most_held"] > _INDEXED:
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
    query = _Statement(wanted)
    own = _names_per_application(wanted, most) if wanted.is_of_many else most
    branches, order = query.branches(own, by_text=False), query.order
    if not branches:
        return ListPart([], None)
    matches = query.matches("name")
    walked = _until_one_ends(branches, order) if wanted.is_of_many else _first_names(branches, order, most)
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
    return max(_FEWEST_OWN, most // len(wanted.applications or (None,)))


async def _read(connection: Connection, wanted: DomainListQuery) -> ListPart:
    """Return the next rows of a list without a text."""
    query = _Statement(wanted)
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


class _Statement:
    """The parts of one SQL statement that reads the list, and its values."""

    def __init__(self, wanted: DomainListQuery) -> None:
        self._wanted = wanted
        self.values: list[Any] = []
        self._lead = _LEADS.get(wanted.sort.removeprefix("-"))
        self._descending = wanted.sort.startswith("-")
        self._direction = " desc" if self._descending else ""
        columns = [*(["lead"] if self._lead else []), "name", "product", "owner_id"]
        self.order = ", ".join(f"{column}{self._direction}" for column in columns)

    def branches(self, limit: int, *, by_text: bool) -> str:
        """Return the SQL of each source's next rows, found in its index; empty when the list has none after the key."""
        parts = [part for source in self._sources() for part in self._source_selects(source, limit, by_text)]
        return " union all ".join(f"({part})" for part in parts)

    def held(self) -> str:
        """Return the SQL of what the index of name parts has of the text, of each table.

        As one statement with a limit, Postgres would rather read the whole table, in the hope of meeting the text soon.
        """
        grams = self._value(_grams(self._wanted.text))
        return ", ".join(
            f"all_of_{each.table} as materialized"
            f" (select * from {each.table} where name_grams({each.name}) @> {grams}::int[]),"
            f" held_of_{each.table} as materialized (select * from all_of_{each.table} limit {_INDEXED + 1})"
            for each in self._sources()
        )

    def counts_held(self) -> str:
        """Return the SQL that counts, for each table, what the index has of the text."""
        return ", ".join(f"(select count(*) from held_of_{each.table})" for each in self._sources())

    def _sources(self) -> list[_Source]:
        match self._wanted.product:
            case None:
                return [_ENROLLED, _MONITORED]
            case "monitor":
                return [_MONITORED]
        return [_ENROLLED]

    def matches(self, name: str) -> str:
        """Return the SQL condition that the name holds the text."""
        text = self._wanted.text
        pattern = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        return f"{name} like {self._value(f'%{pattern}%')}"

    def _source_selects(self, source: _Source, limit: int, by_text: bool) -> list[str]:
        """Return the SQL of a table's next rows, one select for each index that is read."""
        selects = []
        for status, is_well in self._statuses(source):
            branch = _Branch(source, self._lead_column(source, is_well))
            # A bound on where the list begins is part of the key: beside it, Postgres would begin at the bound alone.
            begins = bool(status) and isinstance(branch.lead, str) and is_well != self._descending
            bound = ("least" if self._descending else "greatest") if begins and self._lead == "lapses_at" else None
            after = self._after(branch, bound)
            if after is None:
                continue
            well = "null::boolean" if is_well is None else str(is_well).lower()
            owner = source.owner if self._wanted.applications is None else "application_id"
            columns = (
                f"{_sql(branch.lead)} as lead, {source.name} as name, {source.product} as product,"
                f" {owner} as owner_id, {well} as is_well, {source.parts}"
            )
            is_bounded = bound is not None and self._wanted.after is not None
            conditions = [*([status] if status and not is_bounded else []), *after]
            if by_text:
                selects.append(self._indexed_select(branch, columns, conditions, limit))
            else:
                selects += self._application_selects(branch, columns, conditions, limit)
        return selects

    def _statuses(self, source: _Source) -> Iterator[tuple[str, bool | None]]:
        """Yield conditions, each of rows that an index has in the list's order, with the `is_well` of these rows."""
        by_expiry = self._lead == "lapses_at"
        problem, well = (source.lapsed, source.unlapsed) if by_expiry else (source.problem, source.well)
        if self._wanted.status != "active" and (self._wanted.status or self._lead == "is_well"):
            yield problem, False
        if self._wanted.status != "problem" and (self._wanted.status or self._lead == "is_well"):
            yield well, True
        if self._wanted.status is None:
            if self._lead == "is_well":
                yield from ((other, True) for other in source.others)
            else:
                yield "", None

    def _lead_column(self, source: _Source, is_well: bool | None) -> str | bool | datetime | None:
        """Return the order's first column in the table's terms, or the value that all rows of the branch have of it."""
        match self._lead:
            case "added_at":
                return source.added
            case "lapses_at":
                return NEVER if source is _MONITORED else source.lapses
            case "is_well":
                return is_well
        return None

    def _application_selects(self, branch: _Branch, columns: str, conditions: Sequence[str], limit: int) -> list[str]:
        """Return, for each product, a select that an index answers in the list's order."""
        source, ids = branch.source, self._wanted.applications
        products = [self._wanted.product] if self._wanted.product else ["power", "secure"]
        selects = []
        for product in products if source is _ENROLLED else [None]:
            own = [*conditions, *([f"product = {self._value(product)}"] if product else [])]
            if ids is None:
                order = self._sorted(branch, product_is_fixed=source is _ENROLLED)
                selects.append(_select(branch, columns, own, order, limit))
            elif len(ids) == 1:
                own.append(f"application_id = {self._value(ids[0])}")
                selects.append(_select(branch, columns, own, self._sorted(branch, product_is_fixed=True), limit))
            else:
                selects.append(self._merged_select(branch, columns, own, limit))
        return selects

    def _merged_select(self, branch: _Branch, columns: str, own: Sequence[str], limit: int) -> str:
        """Return the SQL that finds the applications' rows among every application's next rows, if there are enough.

        A search always merges each application's, since of what holds its text every application's next rows have
        fewer.
        """
        source, ids = branch.source, self._wanted.applications or ()
        owners = self._value(list(ids))
        of_one = self._sorted(branch, product_is_fixed=True)
        each = _select(branch, columns, [*own, "application_id = owner.id"], of_one, limit)
        merged = f"select each_own.* from unnest({owners}::text[]) owner (id) cross join lateral ({each}) each_own"
        if self._wanted.text:
            return self._search_select(owners, branch, columns, own, limit)
        # No index has all applications' well rows apart: if they were few, a condition would walk far to find so many.
        is_listed = source.well if source.well in own else "true"
        all_rows = _select(
            branch,
            f"{columns}, {is_listed} as is_listed",
            [condition for condition in own if condition != is_listed],
            self._sorted(branch, product_is_fixed=source is _ENROLLED),
            _NAMES_PER_APPLICATION * len(ids),
        )
        return _filter_all_rows(all_rows, _NAMES_PER_APPLICATION * len(ids), owners, limit, merged)

    def _search_select(self, owners: str, branch: _Branch, columns: str, own: Sequence[str], limit: int) -> str:
        """Return the SQL of each application's next names that match, and the one after which they may go on (`ends`).

        The square root of the applications, those whose names end first, are read on: in all twice as many names are
        read as with one limit.
        """
        more = isqrt(len(self._wanted.applications or ()))
        of_one, matches = self._sorted(branch, product_is_fixed=True), self.matches("name")

        def of_each(those: str, most: int) -> str:
            each = _select(branch, columns, [*own, "application_id = owner.id"], of_one, most)
            numbered = f"select each_own.*, row_number() over () = {most} as ends from ({each}) each_own"
            next_own = f"select next_own.* from {those} owner (id) cross join lateral ({numbered}) next_own"
            return f"{next_own} where {matches} or ends"

        return (
            f"with known as materialized ({of_each(f'unnest({owners}::text[])', limit)}),"
            f" crowded as materialized (select owner_id from known where ends order by {self.order} limit {more})"
            f" select * from known where owner_id not in (select owner_id from crowded)"
            f" union all {of_each('crowded', limit * more)}"
        )

    def _indexed_select(self, branch: _Branch, columns: str, conditions: Sequence[str], limit: int) -> str:
        """Return the select of a table's rows that the index of name parts finds."""
        source, ids = branch.source, self._wanted.applications
        own = [*conditions, self.matches(source.name)]
        if source is _ENROLLED and self._wanted.product:
            own.append(f"product = {self._value(self._wanted.product)}")
        if ids is not None:
            own.append(_is_among("application_id", self._value(list(ids))))
        table = f"held_of_{source.table} {source.table}"
        return _select(branch, columns, own, self._sorted(branch), limit, table=table)

    def _sorted(self, branch: _Branch, *, product_is_fixed: bool = False) -> str:
        """Return the list's order in the table's own terms, so that an index gives it."""
        columns = [*([branch.lead] if isinstance(branch.lead, str) else []), branch.source.name]
        if not product_is_fixed:
            columns.append("product" if branch.source is _ENROLLED else "application_id")
        return ", ".join(f"{column}{self._direction}" for column in columns)

    def _after(self, branch: _Branch, bound: str | None) -> list[str] | None:
        """Return conditions of what comes after the key; None if nothing of the branch does.

        They are one row, since beside a bound on the first column Postgres begins at that, with all that has the key's
        value there. With `bound`, nothing before or after now is met.
        """
        after, source = self._wanted.after, branch.source
        if after is None:
            return []
        sign = "<" if self._descending else ">"
        columns, values = [source.name, source.product], list[Any]((after.name, after.product))
        if source is _MONITORED:
            columns, values = [*columns, "application_id"], [*values, after.application_id]
        if self._lead is not None:
            reached = getattr(after, self._lead)
            if isinstance(branch.lead, str):
                columns, values = [branch.lead, *columns], [reached, *values]
            elif branch.lead != reached:
                is_greater = branch.lead is True or branch.lead == NEVER
                return [] if is_greater != self._descending else None
        places = [self._value(value) for value in values]
        if bound is not None:
            places[0] = f"{bound}({places[0]}, now())"
        return [f"({', '.join(columns)}) {sign} ({', '.join(places)})"]

    def _value(self, value: Any) -> str:
        """Add a value to the statement's, and return its placeholder."""
        self.values.append(value)
        kind = {str: "::text", datetime: "::timestamptz"}.get(type(value), "")
        return f"${len(self.values)}{kind}"


@dataclass(frozen=True, slots=True)
class _Branch:
    """The rows of one table. `lead` is the order's first column: SQL, or the value that all of them have."""

    source: _Source
    lead: str | bool | datetime | None


def _sql(lead: str | bool | datetime | None) -> str:
    match lead:
        case str():
            return lead
        case bool():
            return str(lead).lower()
        case None:
            return "null"
    assert lead == NEVER
    return "'infinity'::timestamptz"


def _select(
    branch: _Branch, columns: str, conditions: Sequence[str], order: str, limit: int, *, table: str | None = None
) -> str:
    where = " and ".join(conditions) or "true"
    return f"select {columns} from {table or branch.source.table} where {where} order by {order} limit {limit}"


def _is_among(owner: str, owners: str) -> str:
    """Return the SQL condition that looks the owner up in a hash of the owners.

    In a plan that Postgres keeps for all values, ``= any`` would compare it with one after the other; ``in`` alone may
    become a join, which loses the order.
    """
    return f"({owner} in (select unnest({owners}::text[]))) is true"


def _filter_all_rows(all_rows: str, most: int, owners: str, limit: int, merged: str) -> str:
    """Return the SQL of the owners' rows among the next `most` of all, or of `merged` where these are too few."""
    return (
        f"with all_rows as materialized ({all_rows}),"
        f" ours as materialized (select * from all_rows where is_listed and {_is_among('owner_id', owners)}"
        f" limit {limit}),"
        f" answer as materialized (select case when (select count(*) from ours) = {limit} then true"
        f" else (select count(*) from all_rows) < {most} end as is_whole)"
        f" select {_COLUMNS} from ours where (select is_whole from answer)"
        f" union all select {_COLUMNS} from ({merged}) merged where not (select is_whole from answer)"
    )


def _first_names(branches: str, order: str, most: int) -> str:
    """Return the SQL of the first `most` names of the branches, with each one's place."""
    return (
        f"select first.*, row_number() over () as place, row_number() over () = {most} as is_last"
        f" from (select * from ({branches}) each_one order by {order} limit {most}) first"
    )


def _until_one_ends(branches: str, order: str) -> str:
    """Return the SQL of names up to the first after which not all names that follow are known.

    After it an application's names may go on, and no more of them were read.
    """
    return (
        "select ordered.*, ends as is_last from (select each_one.*, row_number() over by_place as place,"
        f" count(*) filter (where ends) over by_place as ended from ({branches}) each_one"
        f" window by_place as (order by {order})) ordered where ended = 0 or ended = 1 and ends"
    )


def _grams(text: str) -> list[int]:
    """Return the numbers of the text's sequences of three characters, as ``name_grams`` does in SQL."""
    codes = [ord(character) & 127 for character in text]
    return [(a * 128 + b) * 128 + c for a, b, c in zip(codes, codes[1:], codes[2:], strict=False)]


def _row(row: Record) -> ListRow:
    return ListRow(_key(row), row["application_name"], row["status"], row["not_after"], row["moved_away"])


def _key(row: Record) -> ListKey:
    is_well = row["is_well"] is not False
    return ListKey(row["name"], row["product"], row["application_id"], row["added_at"], row["lapses_at"], is_well)


async def settle_lapsed(connection: Connection, *, most: int = 1000) -> None:
    """Bring the kept status of domains whose certificate has lapsed in line with the clock."""
    await connection.execute(
        "with lapsed as (select domain, product from domains where is_active and active_until <= now()"
        " order by active_until limit $1 for no key update skip locked)"
        " update domains d set active_until = null from lapsed"
        " where d.domain = lapsed.domain and d.product = lapsed.product",
        most,
    )


@dataclass(frozen=True, slots=True)
class Totals:
    """The numbers of names that some applications have, by product and status."""

    active: int
    inactive: int
    monitored: int
    missing: int


_MOST_COUNTED = 100_000
_MOST_PROBLEMS = 10_000

# Both products are named, so that the tallies' key finds the longest span of each application.
_COUNT_OWN = """
    with enrolled as materialized (
        select is_active, sum(domains)::bigint as domains from domain_tallies
        where application_id = any($1) and product in ('power', 'secure') and span = (domain_spans())[1]
        group by is_active
    )
    select coalesce((select domains from enrolled where is_active), 0) as active,
        coalesce((select domains from enrolled where not is_active), 0) as inactive,
        (select coalesce(sum(domains), 0)::bigint from monitored_tallies
            where application_id = any($1) and span = 'day') as monitored,
        (select count(*) from (select from monitored_domains where application_id = any($1) and state = 'missing'
            limit $2) m) as missing
"""
_ALL_OF = """
    (select case when count(*) < $1 then count(*) else greatest(count(*), (select reltuples::bigint from pg_class
        where oid = '{table}'::regclass)) end from (select from {table} limit $1) counted)"""
_COUNT_ALL = f"""
    with problems as materialized (
        select (select count(*) from (select from domains where is_active = false limit $2) d) as inactive,
            (select count(*) from (select from monitored_domains where state = 'missing' limit $2) m) as missing
    )
    select {_ALL_OF.format(table="domains")} - inactive as active, inactive,
        {_ALL_OF.format(table="monitored_domains")} as monitored, missing from problems
"""


async def count_domains(connection: Connection, applications: Sequence[str] | None) -> Totals:
    """Count the applications' names, or all (None).

    Those of some applications are summed from the tallies that the tables keep; all are counted up to `_MOST_COUNTED`,
    beyond which Postgres' estimate stands. Missing names are counted up to `_MOST_PROBLEMS`; of all, so are inactive
    ones.
    """
    if applications is None:
        row = await connection.fetchrow(_COUNT_ALL, _MOST_COUNTED, _MOST_PROBLEMS)
    else:
        row = await connection.fetchrow(_COUNT_OWN, list(applications), _MOST_PROBLEMS)
    assert row is not None, "a select without a table has one row"
    return Totals(**row)
