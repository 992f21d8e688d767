"""The plan of a flow, and what was written by it, as clients see them."""

from __future__ import annotations

from typing_extensions import TypedDict

from common.flows import plan as stored
from common.records import RecordType


class PlannedSet(TypedDict):
    """What happens to a record set: all records of one name and one type.

    Values are in normal form, sorted, an MX record's priority before its host.
    """

    action: stored.Action
    """`keep`: it is right as it is."""
    name: str
    """The whole name."""
    host: str
    """Relative to the apex, which is `@`."""
    type: RecordType
    """Of all records of the set."""
    before: list[str]
    """What is there now."""
    after: list[str]
    """What is to be there."""
    ttl: int
    """What the set gets, in seconds."""
    before_ttl: int
    """What the set had, in seconds."""
    reason: str
    """Why existing records change; empty where none does."""


class WrittenSet(PlannedSet):
    """A record set that the flow has written, or may have; `before` is what was there before it first did."""

    status: stored.EntryStatus
    """What the zone's own servers have of it; `writing` until they were asked."""


class FlowPlan(TypedDict):
    """What has to change in the zone."""

    digest: str
    """Covers each set before and after. Apply takes it, and writes this plan or none."""
    isEmpty: bool
    """All records are there already."""
    blocked: list[str]
    """Why nothing can be written, in sentences."""
    changes: list[PlannedSet]
    """With the kept sets."""


def flow_plan(plan: stored.Plan) -> FlowPlan:
    """Render a plan."""
    return {
        "digest": plan.digest,
        "isEmpty": not plan.to_write,
        "blocked": list(plan.blocked),
        "changes": list(map(planned_set, plan.changes)),
    }


def planned_set(change: stored.Change) -> PlannedSet:
    """Render a change of a record set."""
    return {
        "action": change.action,
        "name": change.name,
        "host": change.host,
        "type": change.type,
        "before": list(change.before),
        "after": list(change.after),
        "ttl": change.ttl,
        "before_ttl": change.before_ttl,
        "reason": change.reason,
    }


def written_set(entry: stored.JournalEntry) -> WrittenSet:
    """Render an entry of the journal."""
    return {**planned_set(entry.change), "status": entry.status}
