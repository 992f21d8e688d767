"""Compare what a filled template writes with the plan: both must be equal.

A provider that applies a template removes what conflicts with its records (draft-ietf-dconn-domainconnect, Conflict
Detection): with a CNAME, everything of its name; with an address, other addresses and a CNAME; with an MX record, other
MX records; with a text, those that begin with the template's prefix. So the way is open only where that leads to the
sets of the plan: what the person is shown is what happens.
"""

from __future__ import annotations

from common.connect.domain_connect.templates import Filled
from common.domain_check import spf
from common.domain_check.zone_view import ZoneView
from common.flows.plan import Change, Plan
from common.records import RecordType

_ADDRESSES = frozenset({"A", "AAAA"})
_OTHER_FAMILY: dict[str, RecordType] = {"A": "AAAA", "AAAA": "A"}


def find_disagreement(filled: Filled, plan: Plan, view: ZoneView) -> str | None:
    """Return why the template would do something else than the plan, in a sentence; None if it does the plan."""
    for change in plan.changes:
        if change.key in filled.records:
            if not _leads_to(filled.records[change.key], change):
                return f"Domain Connect cannot leave the other {change.type} records of {change.name} as they are."
        elif change.before != change.after and not (not change.after and _is_removed_with(change, filled)):
            return f"Domain Connect cannot change the {change.type} records of {change.name}."
    return _find_unplanned(filled, plan, view)


def _leads_to(written: frozenset[str], change: Change) -> bool:
    before, after = frozenset(change.before), frozenset(change.after)
    if change.type != "TXT":
        return after == written
    removed = {value for value in before if spf.is_spf(value)} if any(map(spf.is_spf, written)) else set()
    return after == (before - removed) | written


def _is_removed_with(change: Change, filled: Filled) -> bool:
    kinds = {kind for name, kind in filled.records if name == change.name}
    return "CNAME" in kinds or (change.type in (*_ADDRESSES, "CNAME") and bool(kinds & _ADDRESSES))


def _find_unplanned(filled: Filled, plan: Plan, view: ZoneView) -> str | None:
    """Report addresses of the other family that the provider would remove.

    These are addresses that the plan keeps or knows nothing of.
    """
    planned = {change.key for change in plan.changes}
    for name, kind in filled.records:
        other = _OTHER_FAMILY.get(kind)
        if other is None or (name, other) in filled.records or (name, other) in planned:
            continue
        answer = view.host(name).answers.get(other)
        if answer is None or answer.values:
            return f"Domain Connect would remove the {other} records of {name}."
    return None
