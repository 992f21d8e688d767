"""The SQL that reads a part of the list of domains, made of the list's orders and conditions.

A statement reads each order from an index that has it. What the indexes are, and what a search reads of them, is in
`common.db.domain_list`, which sends the statements.
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isqrt
from typing import Any

from common.db.domain_list_query import NEVER, DomainListQuery

_NAMES_PER_APPLICATION = 10


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


class ListStatement:
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
        grams, most = self._value(_grams(self._wanted.text)), self._wanted.limits.indexed + 1
        return ", ".join(
            f"all_of_{each.table} as materialized"
            f" (select * from {each.table} where name_grams({each.name}) @> {grams}::int[]),"
            f" held_of_{each.table} as materialized (select * from all_of_{each.table} limit {most})"
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


def first_names(branches: str, order: str, most: int) -> str:
    """Return the SQL of the first `most` names of the branches, with each one's place."""
    return (
        f"select first.*, row_number() over () as place, row_number() over () = {most} as is_last"
        f" from (select * from ({branches}) each_one order by {order} limit {most}) first"
    )


def until_one_ends(branches: str, order: str) -> str:
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
