"""The columns `requested` and `statuses`: the records that a flow wants in the zone, and what was seen of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from common.domain_settings import NO_SETTINGS, DomainSettings
from common.records import Record, as_json, from_json, owner_name

Product = Literal["power", "secure"]
SightingStatus = Literal["propagated", "missing", "unknown"]


@dataclass(frozen=True, slots=True)
class RecordPurpose:
    """The product that a record enrols its name in, and the settings of that enrolment."""

    product: Product | None = None
    settings: DomainSettings = NO_SETTINGS
    is_monitored: bool = False


@dataclass(frozen=True, slots=True)
class Requested:
    """A record that a flow wants in the zone, and what it enrols its name in once it is live."""

    record: Record
    purpose: RecordPurpose = RecordPurpose()

    def name(self, domain: str) -> str:
        """Return the name that holds the record, in normal form; `domain` is the apex."""
        return owner_name(self.record, domain)

    def as_json(self) -> dict[str, Any]:
        """Return the value as it is stored."""
        purpose = self.purpose
        return {
            **as_json(self.record),
            "product": purpose.product,
            **purpose.settings.as_json(),
            "monitor": purpose.is_monitored,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Requested:
        """Return the value that `as_json` stored."""
        fields = {name: stored[name] for name in ("type", "host", "value", "ttl")}
        purpose = RecordPurpose(stored["product"], DomainSettings.from_json(stored), stored["monitor"])
        return cls(from_json(fields | ({"priority": stored["priority"]} if "priority" in stored else {})), purpose)


@dataclass(frozen=True, slots=True)
class RecordSighting:
    """What the last look saw of a requested record: an entry of the column `statuses`, in the order of `requested`."""

    status: SightingStatus

    @property
    def is_live(self) -> bool:
        """Return whether the record is in the DNS."""
        return self.status == "propagated"

    def as_json(self) -> dict[str, Any]:
        """Return the value as it is stored."""
        return {"status": self.status}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> RecordSighting:
        """Return the value that `as_json` stored."""
        return cls(stored["status"])
