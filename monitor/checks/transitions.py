"""Transitions: what the verdicts of one check make of a domain, and which event to record.

States
    unchecked   not every record has had a verdict yet
    present     every record was found
    missing     some record is missing, or was and not all have been found together since

Rules
    an unknown record stays what it was, or in neither list if nothing was ever known of it
    an alarm is due when a record is missing that the last check did not find missing, on a first check too; and when
    one that was held back is missing again in the next round
    "restored" needs every record found in one check, and a record that was reported missing; what an edit
    has removed since does not count
    whether an alarm that is due goes out or is held back is decided with all the others (`mass`), not here
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from common.db.checks import Check
from common.record_checks.verdicts import RecordVerdict
from common.record_sets import Records, State
from common.records import Record, identity


@dataclass(frozen=True, slots=True)
class Transition:
    """What one check changes in a domain's row, and whether an alarm is due.

    `present` and `missing` are None as long as nothing is known of any record. `has_turned`: all was present, and
    something is missing now. Of the alarm: `is_new` if something is missing that was not before, `is_waiting` if one
    was held back and stands, `is_confirmed` if it has waited for the next round.
    """

    state: State
    present: Records | None
    missing: Records | None
    has_found_missing: bool
    has_turned: bool
    is_complete: bool
    is_all_present: bool
    is_restored: bool
    is_new: bool
    is_waiting: bool
    is_confirmed: bool

    @property
    def may_alarm(self) -> bool:
        """Return whether an alarm is due, or held back and still true."""
        return self.is_new or self.is_waiting


@dataclass(frozen=True, slots=True)
class ReportDecision:
    """Which event to record, if any; what the partner then knows, and since when an alarm is held back."""

    event: Literal["domain.record_missing", "domain.record_restored"] | None
    reported: Records | None
    held_at: datetime | None


def decide(check: Check, verdicts: Sequence[RecordVerdict], *, round_seconds: float) -> Transition:
    """Decide what the verdicts change.

    `verdicts` are in the order of the check's records; `round_seconds` is how often a domain is checked.
    """
    is_complete = RecordVerdict.UNKNOWN not in verdicts
    was_present, was_missing = _identities(None if is_complete else check.seen.present), _identities(check.seen.missing)
    present, missing, found_missing = [], [], []
    for record, verdict in zip(check.records, verdicts, strict=True):
        key = identity(record) if verdict is RecordVerdict.UNKNOWN else None
        if verdict is RecordVerdict.PRESENT or key in was_present:
            present.append(record)
        elif verdict is RecordVerdict.MISSING or key in was_missing:
            missing.append(record)
        if verdict is RecordVerdict.MISSING:
            found_missing.append(record)
    is_all_present = len(present) == len(check.records) and is_complete
    is_known = bool(present or missing or is_all_present)
    is_new = any(identity(record) not in was_missing for record in found_missing)
    waited = check.claimed_at - check.held_at if check.held_at and found_missing else None
    return Transition(
        state="missing" if missing else "present" if is_all_present else check.seen.state,
        present=tuple(present) if is_known else check.seen.present,
        missing=tuple(missing) if is_known else check.seen.missing,
        has_found_missing=bool(found_missing),
        has_turned=is_new and check.seen.state == "present",
        is_complete=is_complete,
        is_all_present=is_all_present,
        is_restored=is_all_present and has_any(check.records, check.reported),
        is_new=is_new,
        is_waiting=waited is not None,
        is_confirmed=waited is not None and waited > timedelta(seconds=round_seconds / 2),
    )


def decide_report(check: Check, transition: Transition, *, is_mass: bool, is_released: bool) -> ReportDecision:
    """Decide which event goes out, and what is held back.

    `is_mass`: more alarms came at once than are believed. `is_released`: an operator believes them all the same.
    """
    if transition.is_restored:
        return ReportDecision("domain.record_restored", None, None)
    if not transition.missing:
        return ReportDecision(None, None if transition.is_all_present else check.reported, None)
    if transition.is_confirmed or (transition.may_alarm if is_released else transition.is_new and not is_mass):
        return ReportDecision("domain.record_missing", transition.missing, None)
    return ReportDecision(None, check.reported, check.held_at or (check.claimed_at if transition.is_new else None))


def has_any(records: Sequence[Record], reported: Records | None) -> bool:
    """Return whether any of the records is among the reported ones."""
    return bool(reported) and not _identities(reported).isdisjoint(map(identity, records))


def _identities(records: Records | None) -> frozenset[tuple[str, str, str, str | None]]:
    return frozenset(map(identity, records or ()))
