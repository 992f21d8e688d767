"""The records monitored under one name as a set: edits to it, and the last check's results for records that stay.

Two records are the same by `common.records.identity`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from common.records import Record, identity

Records = tuple[Record, ...]
State = Literal["unchecked", "present", "missing"]


@dataclass(frozen=True, slots=True)
class LastResult:
    """The result of the last check; both are None before the first check."""

    state: State = "unchecked"
    present: Records | None = None
    missing: Records | None = None


def distinct(records: Iterable[Record]) -> Records:
    """Return each record once, the first of its kind, in the order given."""
    by_identity: dict[tuple[object, ...], Record] = {}
    for record in records:
        by_identity.setdefault(identity(record), record)
    return tuple(by_identity.values())


def without(records: Records, unwanted: Records) -> Records:
    """Return the records that are not among `unwanted`, in the order given."""
    gone = set(map(identity, unwanted))
    return tuple(record for record in records if identity(record) not in gone)


def carry_over(seen: LastResult, records: Records) -> LastResult:
    """Return what is known after `records` have replaced the set: unknown for new ones, unchanged for those that stay.

    An edit alone is no transition: when the last missing record is removed, no record is missing.
    """
    if seen.present is None or seen.missing is None:
        return LastResult()
    was_present, was_missing = set(map(identity, seen.present)), set(map(identity, seen.missing))
    present = tuple(record for record in records if identity(record) in was_present)
    missing = tuple(record for record in records if identity(record) in was_missing)
    if missing and seen.state == "missing":
        return LastResult("missing", present, missing)
    return LastResult("present" if len(present) == len(records) else "unchecked", present, missing)
