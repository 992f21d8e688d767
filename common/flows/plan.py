"""The columns `plan` and `journal`: what has to change in a zone, and what a flow has written there.

A record set is all records of one name and one type. `common.connect.plan` makes plans and settles journals.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

import orjson

from common.records import RecordType

Action = Literal["add", "replace", "remove", "merge", "keep"]
EntryStatus = Literal["writing", "written", "partly_written", "not_written", "taken_back"]
IN_ZONE: Final = frozenset({"writing", "written", "partly_written"})
"""Of these entries, something is or may be in the zone."""
SetKey = tuple[str, RecordType]
"""The absolute name and the type of a record set."""


@dataclass(frozen=True, slots=True)
class Change:
    """One record set. Values are in normal form, sorted; `ttl` is what it gets, `before_ttl` what it had (seconds)."""

    action: Action
    name: str
    host: str
    type: RecordType
    before: tuple[str, ...]
    after: tuple[str, ...]
    ttl: int
    before_ttl: int
    reason: str

    @property
    def key(self) -> SetKey:
        """Return which record set it is."""
        return self.name, self.type

    def as_json(self) -> dict[str, Any]:
        """Return the value as it is stored."""
        return {
            "action": self.action,
            "name": self.name,
            "host": self.host,
            "type": self.type,
            "before": list(self.before),
            "after": list(self.after),
            "ttl": self.ttl,
            "before_ttl": self.before_ttl,
            "reason": self.reason,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Change:
        """Return the value that `as_json` stored."""
        fields = {name: stored[name] for name in cls.__slots__}
        return cls(**fields | {"before": tuple(stored["before"]), "after": tuple(stored["after"])})


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes that put the requested records in place.

    `changes` hold the kept sets too. `blocked`: why nothing should be written, in sentences.
    """

    changes: tuple[Change, ...]
    blocked: tuple[str, ...] = ()

    @property
    def to_write(self) -> tuple[Change, ...]:
        """Return the changes without the kept sets."""
        return tuple(change for change in self.changes if change.action != "keep")

    @property
    def digest(self) -> str:
        """Return a digest of each set before and after, and of what blocks the plan."""
        content = [
            [*change.key, change.before, change.after] for change in sorted(self.changes, key=lambda each: each.key)
        ]
        return hashlib.sha256(orjson.dumps([content, self.blocked])).hexdigest()[:32]

    def as_json(self) -> dict[str, Any]:
        """Return the value as it is stored."""
        return {
            "digest": self.digest,
            "isEmpty": not self.to_write,
            "blocked": list(self.blocked),
            "changes": [change.as_json() for change in self.changes],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Plan:
        """Return the value that `as_json` stored."""
        return cls(tuple(map(Change.from_json, stored["changes"])), tuple(stored["blocked"]))


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """A record set that a flow has written, or may have: `before` is what was there before the flow first wrote it."""

    change: Change
    status: EntryStatus

    def as_json(self) -> dict[str, Any]:
        """Return the value as it is stored."""
        return self.change.as_json() | {"status": self.status}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> JournalEntry:
        """Return the value that `as_json` stored."""
        return cls(Change.from_json(stored), cast("EntryStatus", stored["status"]))
