"""What would keep a CA from validating a domain at its renewal, as ``orders.renewal_risk`` holds it.

A risk counts once two rehearsals in a row have found it: then its event is recorded, once for as long as it lasts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, Self, TypeAlias

from common.db import events
from common.db.session import Connection
from common.names import parse_enrollable

COUNTS_AFTER = 2

RiskCode: TypeAlias = Literal[
    "caa_forbids",
    "aaaa_elsewhere",
    "challenge_elsewhere",
    "challenge_unreachable",
    "delegation_missing",
    "delegation_unanswered",
]
Actor: TypeAlias = Literal["domain_owner", "operator"]


class RiskRecord(NamedTuple):
    """The DNS record to change: to remove for ``aaaa_elsewhere``, else to add."""

    type: str
    host: str
    value: str


@dataclass(frozen=True, slots=True)
class Risk:
    """Why the next renewal would fail. `action` is a sentence of what to do; `who` must do it."""

    code: RiskCode
    action: str
    who: Actor
    record: RiskRecord | None = None
    seen: int = 1

    @property
    def counts(self) -> bool:
        """Return whether it was found often enough to be reported."""
        return self.seen >= COUNTS_AFTER

    @classmethod
    def read(cls, stored: Mapping[str, Any] | None) -> Self | None:
        """Return the risk that a row holds."""
        if stored is None:
            return None
        record = stored["record"]
        return cls(**{**stored, "record": None if record is None else RiskRecord(*record)})

    def as_stored(self) -> dict[str, Any]:
        """Return what a row holds."""
        return {**asdict(self), "record": None if self.record is None else list(self.record)}


def as_dict(record: RiskRecord | None) -> dict[str, str] | None:
    """Render the record."""
    return None if record is None else record._asdict()


async def record_event(
    connection: Connection, domain: str, application_id: str, risk: Risk, not_after: datetime
) -> None:
    """Record, late in the caller's transaction, that the domain's renewal is at risk."""
    name = parse_enrollable(domain)
    fields = {
        "code": risk.code,
        "action": risk.action,
        "who": risk.who,
        "record": as_dict(risk.record),
        "certificate_expires_at": not_after.astimezone(UTC).isoformat(),
        "days_left": max(0, (not_after - datetime.now(UTC)).days),
    }
    await events.record(
        connection,
        events.NewEvent(application_id, "domain.renewal_at_risk", name.registrable, name.subdomain, fields),
    )
