"""The column `looked`: what the inspection of a flow's zone has found, or how far it is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from common.flows.ways import ManualWay, Way, way_from_json
from common.records import RecordType

StepState = Literal["waiting", "running", "done"]
SetupType = Literal["automatic", "manual"]


@dataclass(frozen=True, slots=True)
class InspectionSteps:
    """How far an inspection is: who the provider is, what the zone holds, which ways are open."""

    provider: StepState
    records: StepState
    ways: StepState

    def as_json(self) -> dict[str, str]:
        """Return the value as it is stored."""
        return {"provider": self.provider, "records": self.records, "ways": self.ways}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> InspectionSteps:
        """Return the value that `as_json` stored."""
        return cls(stored["provider"], stored["records"], stored["ways"])


ALL_DONE = InspectionSteps("done", "done", "done")


@dataclass(frozen=True, slots=True)
class DomainConnectState:
    """Whether Domain Connect is open at the provider; `code` and `message` state why it is not."""

    is_open: bool
    code: str | None = None
    message: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the value as it is stored."""
        return {"isOpen": True} if self.is_open else {"isOpen": False, "code": self.code, "message": self.message}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> DomainConnectState:
        """Return the value that `as_json` stored."""
        return cls(stored["isOpen"], stored.get("code"), stored.get("message"))


@dataclass(frozen=True, slots=True)
class FoundProvider:
    """The provider of a zone; `id` is empty for one that is not known. `domain_connect`: None where it has none."""

    id: str
    name: str
    help_url: str | None
    setup_type: SetupType
    domain_connect: DomainConnectState | None

    def as_json(self) -> dict[str, Any]:
        """Return the value as it is stored."""
        return {
            "id": self.id,
            "name": self.name,
            "helpUrl": self.help_url,
            "setupType": self.setup_type,
            "domainConnect": None if self.domain_connect is None else self.domain_connect.as_json(),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> FoundProvider:
        """Return the value that `as_json` stored."""
        state = stored["domainConnect"]
        return cls(
            stored["id"],
            stored["name"],
            stored["helpUrl"],
            stored["setupType"],
            None if state is None else DomainConnectState.from_json(state),
        )


@dataclass(frozen=True, slots=True)
class FoundConflict:
    """An existing record that stands in the way, its `host` relative to the apex; `code`: the rule that it breaks.

    `suggested`: the value to publish, where records can be merged.
    """

    host: str
    type: RecordType
    value: str
    priority: str | None
    code: str
    reason: str
    suggested: str | None

    def as_json(self) -> dict[str, Any]:
        """Return the value as it is stored."""
        record = {"host": self.host, "type": self.type, "value": self.value}
        priority = {} if self.priority is None else {"priority": self.priority}
        return record | priority | {"code": self.code, "reason": self.reason, "suggested": self.suggested}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> FoundConflict:
        """Return the value that `as_json` stored."""
        return cls(
            stored["host"],
            stored["type"],
            stored["value"],
            stored.get("priority"),
            stored["code"],
            stored["reason"],
            stored["suggested"],
        )


@dataclass(frozen=True, slots=True)
class FlowInspection:
    """While `steps` are not done, nothing else is there. `server`: the zone's primary server, by its SOA record."""

    steps: InspectionSteps
    provider: FoundProvider | None = None
    ways: tuple[Way, ...] | None = None
    conflicts: tuple[FoundConflict, ...] | None = None
    server: str | None = None

    @property
    def manual(self) -> ManualWay | None:
        """Return the way by hand, once the ways are known."""
        return next((way for way in self.ways or () if isinstance(way, ManualWay)), None)

    def without(self, numbers: Collection[int]) -> FlowInspection:
        """Return it without what a person would type for some of the requested records."""
        ways = tuple(way.without(numbers) if isinstance(way, ManualWay) else way for way in self.ways or ())
        return replace(self, ways=ways)

    def as_json(self) -> dict[str, Any]:
        """Return the value as it is stored."""
        steps = {"steps": self.steps.as_json()}
        if self.provider is None:
            return steps
        return steps | {
            "provider": self.provider.as_json(),
            "ways": [way.as_json() for way in self.ways or ()],
            "conflicts": None if self.conflicts is None else [each.as_json() for each in self.conflicts],
            "server": self.server,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> FlowInspection:
        """Return the value that `as_json` stored."""
        steps = InspectionSteps.from_json(stored["steps"])
        if "provider" not in stored:
            return cls(steps)
        conflicts = stored["conflicts"]
        return cls(
            steps,
            FoundProvider.from_json(stored["provider"]),
            tuple(map(way_from_json, stored["ways"])),
            None if conflicts is None else tuple(map(FoundConflict.from_json, conflicts)),
            stored["server"],
        )
