"""Makes plans: what has to change in a zone for the requested records, record set by record set.

A record set is all records of one name and one type: what zones are written in, and what a person can compare.

Rules
    a conflicting record (`common.domain_check.conflicts`) leaves its set; a requested one that is there already stays
    SPF texts and CAA sets are merged, everything else that conflicts is replaced
    where a name is to lead to us by A records, its AAAA records that lead elsewhere go, and the other way round
    what a wildcard CNAME of the zone answers as requested is kept, while nothing is written at or beneath the name
    what no plan can mend (a delegated host, a circle of CNAMEs, an SPF record that grows too long) stands in `blocked`
    the digest covers each set before and after: a zone in which they are the same has the same plan
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from common.domain_check import spf
from common.domain_check.conflicts import Conflict, Rule
from common.domain_check.zone_view import ZoneView, relative_host
from common.flows.plan import IN_ZONE, Action, Change, EntryStatus, JournalEntry, Plan, SetKey
from common.flows.requested import Requested
from common.records import Record, RecordType, matches, normal_value, owner_name, split_priority

_NOT_MENDABLE: Final = frozenset({Rule.ZONE_CUT, Rule.CNAME_CIRCLE, Rule.REQUEST})
_DEFAULT_TTL = 300
_PAIRS: Final[Mapping[str, RecordType]] = {"A": "AAAA", "AAAA": "A"}


def make_plan(
    requested: Sequence[Requested], view: ZoneView, conflicts: Iterable[Conflict], *, blocked: Iterable[str] = ()
) -> Plan:
    """Make the plan that puts the requested records in place.

    `view` holds every host of the requested records, and both address types where one is requested. `blocked`: what
    is known to stand in the way already, in sentences.
    """
    conflicts = list(conflicts)
    blocked = [*blocked]
    blocked += [each.reason for each in conflicts if each.rule in _NOT_MENDABLE]
    blocked += [each.reason for each in conflicts if each.rule is Rule.SPF and each.suggested is None]
    sets = _Sets(view, _answered_by_wildcard(requested, view))
    for conflict in conflicts:
        if conflict.rule not in _NOT_MENDABLE:
            sets.resolve(conflict)
    for each in requested:
        sets.request(each.record)
    _remove_other_family(requested, view, sets)
    return Plan(tuple(sets.changes()), tuple(dict.fromkeys(blocked)))


def _answered_by_wildcard(requested: Sequence[Requested], view: ZoneView) -> frozenset[str]:
    """Return the names that a wildcard CNAME leads where they are to go.

    A record that is written at such a name or beneath it would end that (RFC 4592 §2.2.2).
    """
    names = [each.name(view.apex) for each in requested]
    led = {
        name
        for each, name in zip(requested, names, strict=True)
        if each.record.type == "CNAME"
        and view.host(name).wildcard is not None
        and matches(each.record, view.host(name).answer("CNAME").values)
    }
    written = [
        name for each, name in zip(requested, names, strict=True) if name not in led or each.record.type != "CNAME"
    ]
    return frozenset(name for name in led if not any(other == name or other.endswith(f".{name}") for other in written))


def _remove_other_family(requested: Sequence[Requested], view: ZoneView, sets: _Sets) -> None:
    wanted = {(each.name(view.apex), each.record.type) for each in requested}
    for each in requested:
        other = _PAIRS.get(each.record.type)
        name = each.name(view.apex)
        if other is None or each.purpose.product is None or (name, other) in wanted:
            continue
        for value in view.host(name).values(other):
            sets.remove(name, other, value, f"Visitors would go to {value} instead.")


@dataclass(slots=True)
class _Set:
    before: list[str]
    after: list[str]
    ttl: int
    before_ttl: int
    is_merged: bool
    reasons: list[str]


class _Sets:
    """The record sets of one plan in the making, in the order in which they were met."""

    def __init__(self, view: ZoneView, answered_by_wildcard: frozenset[str]) -> None:
        self._view = view
        self._answered_by_wildcard = answered_by_wildcard
        self._sets: dict[SetKey, _Set] = {}

    def resolve(self, conflict: Conflict) -> None:
        """Remove the record of a conflict, or merge what the request needs into its set."""
        name, kind = owner_name(conflict.record, self._view.apex), conflict.record.type
        if conflict.rule is Rule.CAA:
            of_name = self._at(name, kind)
            of_name.is_merged = True
            of_name.reasons.append(conflict.reason)
            value = normal_value("CAA", conflict.suggested or "")
            if conflict.suggested and value not in of_name.after:
                of_name.after.append(value)
            return
        self.remove(name, kind, existing_value(conflict.record), conflict.reason)
        if conflict.rule is Rule.SPF and conflict.suggested is not None:
            of_name = self._at(name, kind)
            of_name.is_merged = True
            merged = normal_value("TXT", conflict.suggested)
            if merged not in of_name.after:
                of_name.after.append(merged)

    def remove(self, name: str, kind: RecordType, value: str, reason: str) -> None:
        """Remove a value from a set."""
        of_name = self._at(name, kind)
        of_name.after = [each for each in of_name.after if each != value]
        of_name.reasons.append(reason)

    def request(self, record: Record) -> None:
        """Add a requested record to its set, unless it is there."""
        of_name = self._at(owner_name(record, self._view.apex), record.type)
        if of_name.is_merged and record.type == "TXT" and spf.is_spf(normal_value("TXT", record.value)):
            return  # it is part of the merged text
        if matches(record, of_name.after):
            return
        of_name.after.append(requested_value(record))
        of_name.ttl = record.ttl

    def changes(self) -> Iterable[Change]:
        """Yield the change of each set."""
        for (name, kind), each in self._sets.items():
            before, after = tuple(sorted(each.before)), tuple(sorted(each.after))
            yield Change(
                _action(before, after, each),
                name,
                relative_host(name, self._view.apex),
                kind,
                before,
                after,
                each.ttl,
                each.before_ttl,
                " ".join(dict.fromkeys(each.reasons)),
            )

    def _at(self, name: str, kind: RecordType) -> _Set:
        if (name, kind) not in self._sets:
            host = self._view.host(name)
            is_answered = kind == "CNAME" and name in self._answered_by_wildcard
            values = list(host.answer(kind).values if is_answered else host.values(kind))
            ttl = host.answer(kind).ttl_seconds or _DEFAULT_TTL
            self._sets[name, kind] = _Set(values, [*values], ttl, ttl, False, [])
        return self._sets[name, kind]


def _action(before: tuple[str, ...], after: tuple[str, ...], of: _Set) -> Action:
    if before == after:
        return "keep"
    if of.is_merged:
        return "merge"
    if not after:
        return "remove"
    return "add" if set(before) <= set(after) else "replace"


def requested_value(record: Record) -> str:
    """Return a record's value in normal form, an MX record's priority before it."""
    priority, value = split_priority(record)
    normal = normal_value(record.type, value)
    return f"{priority or '10'} {normal}" if record.type == "MX" else normal


existing_value = requested_value


def with_merged(requested: Sequence[Requested], plan: Plan, apex: str) -> tuple[Requested, ...]:
    """Return the requested records as they are once the plan is written: SPF texts are the merged ones."""
    merged = {
        change.key: next((value for value in change.after if spf.is_spf(value)), None)
        for change in plan.changes
        if change.type == "TXT" and change.action in ("merge", "keep")
    }
    found = []
    for each in requested:
        value = merged.get((each.name(apex), each.record.type))
        is_spf = value is not None and spf.is_spf(normal_value("TXT", each.record.value))
        found.append(replace(each, record=replace(each.record, value=value)) if is_spf and value else each)
    return tuple(found)


# Writing and taking back --------------------------------------------------------------------------------------------


def journal_of(plan: Plan, written: Sequence[JournalEntry]) -> tuple[JournalEntry, ...]:
    """Return the journal of a write: what is about to be written, beside what was written before.

    Of a set that is written again, what was there at first is kept.
    """
    entries = {entry.change.key: entry for entry in written if entry.status != "taken_back"}
    for change in plan.to_write:
        first = entries.get(change.key)
        if first is None or first.status == "not_written":
            entries[change.key] = JournalEntry(change, "writing")
        else:
            kept = replace(change, before=first.change.before, before_ttl=first.change.before_ttl)
            entries[change.key] = JournalEntry(kept, "writing")
    return tuple(entries.values())


Values = Mapping[SetKey, frozenset[str]]
"""What the zone's own servers have now."""


def settle_journal(journal: Iterable[JournalEntry], now: Values) -> tuple[JournalEntry, ...]:
    """Return the journal once the zone was read back.

    What the zone's own servers have is believed, not what a provider answered.
    """
    return tuple(
        replace(entry, status=_status(entry.change, now[entry.change.key])) if entry.change.key in now else entry
        for entry in journal
    )


def _status(change: Change, there: frozenset[str]) -> EntryStatus:
    if _added(change) <= there and not there & _removed(change):
        return "written"
    return "partly_written" if there & _added(change) or not _removed(change) <= there else "not_written"


def settle_undo(journal: Iterable[JournalEntry], now: Values) -> tuple[JournalEntry, ...]:
    """Return the journal once the zone was read back after an undo."""
    settled = settle_journal(journal, now)
    return tuple(replace(each, status="taken_back") if each.status == "not_written" else each for each in settled)


def believe_zone(entry: JournalEntry, now: Values) -> JournalEntry:
    """Return the entry as written, where the zone has what was given up as not written.

    A provider may take its time.
    """
    change = entry.change
    is_there = entry.status == "not_written" and _status(change, now[change.key]) == "written"
    return replace(entry, status="written") if is_there else entry


def is_changed_since(entry: JournalEntry, now: Values) -> bool:
    """Return whether the zone no longer holds what the flow wrote."""
    return now.get(entry.change.key) != frozenset(entry.change.after)


def plan_undo(journal: Iterable[JournalEntry], now: Values) -> Plan:
    """Make the changes that take back what the flow wrote, and leave what others have changed since."""
    changes = []
    for entry in reversed([entry for entry in journal if entry.status in IN_ZONE]):
        change, there = entry.change, now[entry.change.key]
        after = (there - _added(change)) | _removed(change)
        before, wanted = tuple(sorted(there)), tuple(sorted(after))
        action: Action = "keep" if before == wanted else "remove" if not wanted else "replace" if before else "add"
        changes.append(
            replace(
                change,
                action=action,
                before=before,
                after=wanted,
                ttl=change.before_ttl if change.before else change.ttl,
                before_ttl=change.ttl,
                reason="",
            )
        )
    return Plan(tuple(changes))


def _added(change: Change) -> frozenset[str]:
    return frozenset(change.after) - frozenset(change.before)


def _removed(change: Change) -> frozenset[str]:
    return frozenset(change.before) - frozenset(change.after)
