"""The records monitored under one name as a set: what an edit makes of it, and what the last check still says of the
rest. Pure; two records are the same by `common.records.identity`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from common.records import Record, identity

Records = tuple[Record, ...]
State = Literal["unchecked", "present", "missing"]


@dataclass(frozen=True, slots=True)
class Seen:
    """What the last check found; none of either before the first check."""

    state: State = "unchecked"
    present: Records | None = None
    missing: Records | None = None


def distinct(records: Iterable[Record]) -> Records:
    """Each record once, the first of its kind, in the order given."""
    by_identity: dict[tuple[object, ...], Record] = {}
    for record in records:
        by_identity.setdefault(identity(record), record)
    return tuple(by_identity.values())


def without(records: Records, unwanted: Records) -> Records:
    gone = set(map(identity, unwanted))
    return tuple(record for record in records if identity(record) not in gone)


def carry_over(seen: Seen, records: Records) -> Seen:
    """What is still known once `records` are monitored instead: nothing of new ones, the same of those that stay.

    An edit by itself is no transition: with the last missing record gone, nothing is missing any more.
    """
    if seen.present is None or seen.missing is None:
        return Seen()
    was_present, was_missing = set(map(identity, seen.present)), set(map(identity, seen.missing))
    present = tuple(record for record in records if identity(record) in was_present)
    missing = tuple(record for record in records if identity(record) in was_missing)
    if missing and seen.state == "missing":
        return Seen("missing", present, missing)
    return Seen("present" if len(present) == len(records) else "unchecked", present, missing)
