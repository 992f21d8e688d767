"""A record that a flow wants in the zone, and what it enrols its name in once it is live. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from common.records import Record, as_json, from_json, owner_name

Product = Literal["power", "secure"]


@dataclass(frozen=True, slots=True)
class RecordPurpose:
    """`root_path_access` None: the application's applies."""

    product: Product | None = None
    application_url: str | None = None
    redirect_to: str | None = None
    root_path_access: tuple[str, ...] | None = None
    is_monitored: bool = False


@dataclass(frozen=True, slots=True)
class Requested:
    record: Record
    purpose: RecordPurpose = RecordPurpose()

    def name(self, domain: str) -> str:
        """Whose record it is, in normal form; `domain` is the apex."""
        return owner_name(self.record, domain)

    def as_json(self) -> dict[str, Any]:
        purpose = self.purpose
        return {
            **as_json(self.record),
            "product": purpose.product,
            "applicationUrl": purpose.application_url,
            "redirectTo": purpose.redirect_to,
            "powerRootPathAccess": purpose.root_path_access,
            "monitor": purpose.is_monitored,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Requested:
        fields = {name: stored[name] for name in ("type", "host", "value", "ttl")}
        paths = stored["powerRootPathAccess"]
        purpose = RecordPurpose(
            stored["product"],
            stored["applicationUrl"],
            stored["redirectTo"],
            None if paths is None else tuple(paths),
            stored["monitor"],
        )
        return cls(from_json(fields | ({"priority": stored["priority"]} if "priority" in stored else {})), purpose)
