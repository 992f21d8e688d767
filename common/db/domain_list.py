"""The list of all products' domains: searched by a part of the name, filtered, sorted, read a page at a time.

Owns no table. A page is found by its key (the row after which it begins), so that it costs the same anywhere in the
list. A part of a name is looked for in the next `_WINDOW` names first, since what many names contain is soon met;
what few contain is then found by index (`name_grams`).

Rules
    the caller states the applications whose rows are listed; None is every application, for operators only
    a name stands once for each product and application; the key is unique: name, product, application
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias, get_args

from common.db.session import Connection

Product: TypeAlias = Literal["power", "secure", "monitor"]
Status: TypeAlias = Literal["active", "problem"]
Sort: TypeAlias = Literal["name", "-name", "added", "-added"]
PRODUCTS: tuple[Product, ...] = get_args(Product)
STATUSES: tuple[Status, ...] = get_args(Status)
SORTS: tuple[Sort, ...] = get_args(Sort)

_WINDOW = 2_000
_FEWEST_CHARACTERS = 3
"""Shorter texts are looked for at the beginning of names."""


@dataclass(frozen=True, slots=True)
class Key:
    """Where a page ends: the next one begins after it."""

    name: str
    product: Product
    application_id: str
    added_at: datetime


@dataclass(frozen=True, slots=True)
class Wanted:
    """`text`: a part of the name, in lower case; of fewer than three characters, its beginning."""

    applications: Sequence[str] | None
    text: str = ""
    product: Product | None = None
    status: Status | None = None
    sort: Sort = "name"
    after: Key | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True)
class Row:
    """`status`: active or inactive of Power and Secure; present, missing or unchecked of Monitor. `not_after` is the
    certificate's."""

    name: str
    product: Product
    application_id: str
    application_name: str
    added_at: datetime
    status: str
    not_after: datetime | None
    moved_away: bool

    @property
    def key(self) -> Key:
        return Key(self.name, self.product, self.application_id, self.added_at)


@dataclass(frozen=True, slots=True)
class _Source:
    """A table, and the SQL of what the list needs of its rows."""

    table: str
    name: str
    product: str
    added: str
    is_problem: str

    @property
    def columns(self) -> str:
        return (
            f"{self.name} as name, {self.product} as product, application_id, {self.added} as added_at,"
            f" {self.is_problem} as is_problem"
        )


_ENROLLED = _Source("domains", "domain", "product", "created_at", "not is_active")
_MONITORED = _Source(
    "monitored_domains", "monitored_name(domain, subdomain)", "'monitor'", "date_added", "state = 'missing'"
)
_ORDERS = {
    "name": ("name, product, application_id", False, False),
    "-name": ("name, product, application_id", False, True),
    "added": ("added_at, name, product, application_id", True, False),
    "-added": ("added_at, name, product, application_id", True, True),
}

_DETAILS = """
    select found.name, found.product, found.application_id, applications.name as application_name, found.added_at,
        case when found.product = 'monitor' then m.state
            when d.active_until > now() then 'active' else 'inactive' end as status,
        c.not_after, d.departed_at is not null as moved_away
    from found join applications on applications.id = found.application_id
    left join domains d on d.domain = found.name and d.product = found.product
    left join certificates c on found.product <> 'monitor' and c.domain = found.name and c.released_at is null
    left join monitored_domains m on found.product = 'monitor' and m.application_id = found.application_id
        and monitored_name(m.domain, m.subdomain) = found.name
"""


async def list_page(connection: Connection, wanted: Wanted) -> list[Row]:
    """The next rows in the order that is wanted; fewer than the limit only at the end of the list."""
    if wanted.applications is not None and not wanted.applications:
        return []
    if not wanted.text:
        return await _read(connection, wanted)
    rows, is_complete = await _read_window(connection, wanted)
    if is_complete or len(rows) == wanted.limit or len(wanted.text) < 2:
        return rows
    return await _read(connection, wanted)


async def _read_window(connection: Connection, wanted: Wanted) -> tuple[list[Row], bool]:
    """What the next names of the list hold, and whether the list ends with them."""
    query, window = _Query(wanted), _window(wanted)
    branches = query.branches(window, by_text=False)
    order = query.order
    found = await connection.fetch(
        f"with walked as materialized (select * from ({branches}) each_one order by {order} limit {window}),"
        f" found as materialized (select * from walked where {query.matches('name')} order by {order}"
        f" limit {wanted.limit})"
        f" select (select count(*) from walked) as walked, details.* from (select 1) one"
        f" left join ({_DETAILS}) details on true order by {query.order}",
        *query.values,
    )
    rows = [_row({key: each[key] for key in each.keys() if key != "walked"}) for each in found if each["name"]]  # noqa: SIM118
    return rows, found[0]["walked"] < window


def _window(wanted: Wanted) -> int:
    """Each application's next names are read before they are merged, so of many only few."""
    return max(_WINDOW // 10, _WINDOW // len(wanted.applications or (None,)))


async def _read(connection: Connection, wanted: Wanted) -> list[Row]:
    query = _Query(wanted)
    branches = query.branches(wanted.limit, by_text=bool(wanted.text))
    found = await connection.fetch(
        f"with found as materialized (select * from ({branches}) each_one order by {query.order}"
        f" limit {wanted.limit}) {_DETAILS} order by {query.order}",
        *query.values,
    )
    return [_row(dict(each)) for each in found]


class _Query:
    """The parts of one page's SQL, and its values."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self.values: list[Any] = []
        self._columns, self._by_age, self._descending = _ORDERS[wanted.sort]
        direction = " desc" if self._descending else ""
        self.order = ", ".join(f"{column}{direction}" for column in self._columns.split(", "))

    def branches(self, limit: int, *, by_text: bool) -> str:
        """Each source's next rows, found in its index."""
        parts = []
        if self._wanted.product in (None, "power", "secure"):
            parts += self._of_source(_ENROLLED, limit, by_text)
        if self._wanted.product in (None, "monitor"):
            parts += self._of_source(_MONITORED, limit, by_text)
        return " union all ".join(f"({part})" for part in parts)

    def matches(self, name: str) -> str:
        text = self._wanted.text
        pattern = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        place = self._value(f"%{pattern}%" if len(text) >= _FEWEST_CHARACTERS else f"{pattern}%")
        return f"{name} like {place}"

    def _of_source(self, source: _Source, limit: int, by_text: bool) -> list[str]:
        wanted = self._wanted
        conditions = self._conditions(source, by_text)
        if wanted.applications is None or by_text:
            if wanted.applications is not None:
                conditions.append(f"application_id = any({self._value(list(wanted.applications))})")
            if wanted.product is not None and source is _ENROLLED:
                conditions.append(f"product = {self._value(wanted.product)}")
            where = " and ".join(conditions) or "true"
            return [
                f"select {source.columns} from {source.table} where {where}"
                f" order by {self._sorted(source)} limit {limit}"
            ]
        owner = self._value(list(wanted.applications))
        selects = []
        products = [wanted.product] if wanted.product else ["power", "secure"]
        for product in products if source is _ENROLLED else [None]:
            own = [*conditions, "application_id = owner.id"]
            if product is not None:
                own.append(f"product = {self._value(product)}")
            selects.append(
                f"select each_own.* from unnest({owner}::text[]) owner (id) cross join lateral ("
                f"select {source.columns} from {source.table} where {' and '.join(own)}"
                f" order by {self._sorted(source, product_is_fixed=True)} limit {limit}) each_own"
            )
        return selects

    def _sorted(self, source: _Source, *, product_is_fixed: bool = False) -> str:
        """The list's order in the table's own terms, so that an index gives it."""
        direction = " desc" if self._descending else ""
        columns = [source.added, source.name] if self._by_age else [source.name]
        if source is _ENROLLED and not product_is_fixed:
            columns.append("product")
        if source is _MONITORED and not product_is_fixed:
            columns.append("application_id")
        return ", ".join(f"{column}{direction}" for column in columns)

    def _conditions(self, source: _Source, by_text: bool) -> list[str]:
        wanted, conditions = self._wanted, []
        if by_text:
            conditions += [f"name_grams({source.name}) @> {self._value(_grams(wanted.text))}::int[]"]
            conditions += [self.matches(source.name)]
        if wanted.status is not None:
            is_problem = source.is_problem if wanted.status == "problem" else self._healthy(source)
            conditions.append(is_problem)
        if wanted.after is not None:
            conditions += self._after(source, wanted.after)
        return conditions

    def _healthy(self, source: _Source) -> str:
        return "is_active" if source is _ENROLLED else "state = 'present'"

    def _after(self, source: _Source, after: Key) -> list[str]:
        """The bound on the first column lets an index begin there; the row decides."""
        sign = "<" if self._descending else ">"
        columns, values = (
            [source.name, source.product, "application_id"],
            [
                self._value(after.name),
                self._value(after.product),
                self._value(after.application_id),
            ],
        )
        if self._by_age:
            columns, values = [source.added, *columns], [self._value(after.added_at), *values]
        first = f"{columns[0]} {sign}= {values[0]}"
        return [first, f"({', '.join(columns)}) {sign} ({', '.join(values)})"]

    def _value(self, value: Any) -> str:
        self.values.append(value)
        kind = {str: "::text", datetime: "::timestamptz"}.get(type(value), "")
        return f"${len(self.values)}{kind}"


def _grams(text: str) -> list[int]:
    """As ``name_grams``: of a text that may stand anywhere in a name, or at its beginning if it is short."""
    codes = [ord(character) & 127 for character in (text if len(text) >= _FEWEST_CHARACTERS else f"^{text}")]
    return [(a * 128 + b) * 128 + c for a, b, c in zip(codes, codes[1:], codes[2:], strict=False)]


def _row(values: dict[str, Any]) -> Row:
    return Row(**values)


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
    """How many names some applications have, by product and status."""

    active: int
    inactive: int
    monitored: int
    missing: int


async def count_domains(connection: Connection, applications: Sequence[str] | None) -> Totals:
    """By the tallies that the tables keep; names whose records are missing are counted up to 10,000."""
    row = await connection.fetchrow(
        """
        select
            coalesce((select sum(domains) from domain_tallies where span = (domain_spans())[1] and is_active
                and ($1::text[] is null or application_id = any($1))), 0)::bigint as active,
            coalesce((select sum(domains) from domain_tallies where span = (domain_spans())[1] and not is_active
                and ($1::text[] is null or application_id = any($1))), 0)::bigint as inactive,
            coalesce((select sum(domains) from monitored_tallies where span = 'day'
                and ($1::text[] is null or application_id = any($1))), 0)::bigint as monitored,
            (select count(*) from (select from monitored_domains where state = 'missing'
                and ($1::text[] is null or application_id = any($1)) limit 10000) m) as missing
        """,
        list(applications) if applications is not None else None,
    )
    assert row is not None, "a select without a table has one row"
    return Totals(**row)
