"""Pages of a list that goes back in time, found where its index has them.

The key of the list and of its index are the same columns. They are compared as one row, because of a plain equality
the planner concludes that the ids alone will do, and walks past the rows of all others to reach old ones (seen: 60 ms
in place of 0.3 among 200,000). From a row the planner does not conclude that its columns are not null, by which some of
the indexes are partial: that is a condition of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_AFTER_ALL = "evt_g"  # ids go on in hexadecimal


@dataclass(frozen=True, slots=True)
class PageClause:
    """A page as SQL: `clause` from ``where`` on; `values` are its parameters, beginning with $1."""

    clause: str
    values: tuple[object, ...]


def find_page(
    key: Mapping[str, str],
    id_column: str,
    *,
    before: str | None,
    limit: int,
    filters: Mapping[str, str | None],
) -> PageClause:
    """Return the SQL of the page before the event `before` (None: the first), newest first, of the list with this key.

    `key` maps the list's columns to their values; `filters` are columns beside the key, left out where they are None.
    Columns are the caller's constants, never from outside.
    """
    columns = (*key, id_column)
    row = ", ".join(columns)
    ours = ", ".join(f"${place}" for place in range(1, len(key) + 1))
    conditions = [f"({row}) < ({ours}, ${len(key) + 1})", f"({row}) > ({ours}, '')"]
    conditions += [f"{column} is not null" for column in key]
    values = [*key.values(), before or _AFTER_ALL]
    for column, value in filters.items():
        if value is not None:
            values.append(value)
            conditions.append(f"{column} = ${len(values)}")
    order = ", ".join(f"{column} desc" for column in columns)
    clause = f"where {' and '.join(conditions)} order by {order} limit ${len(values) + 1}"
    return PageClause(clause, (*values, limit))
