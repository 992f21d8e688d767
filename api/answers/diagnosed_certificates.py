"""What a diagnosis says of the domain's certificate: its order, and what stands in the way of a CA."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NotRequired

from typing_extensions import TypedDict

from api.answers.diagnosed_dns import UNKNOWN, DiagnosedRecord, UnknownPart
from api.services import diagnosis as service
from api.services.diagnosis import Caa, DomainHolding
from common.db import orders
from common.db.renewal_risks import Actor, Risk, RiskCode
from common.edge_probe import Reached
from common.probe import PROBE_PATH


class DiagnosedCaa(TypedDict):
    """Whether CAA records let our CAs issue."""

    status: Literal["anyone may issue", "restricted", "forbidden", "unknown"]
    host: NotRequired[str]
    """The name that has the records, which are there with `restricted` and `forbidden`."""
    records: NotRequired[list[str]]
    authorities: NotRequired[Sequence[str]]
    """The CAs that the records name."""
    needed: bool
    """A CA is asked for certificates here, which obeys these records."""


class DiagnosedChallengePath(TypedDict):
    """Whether the CA's requests for a challenge reach the edges."""

    reaches: Reached
    """Where HTTP requests to the domain arrive."""
    asked: str
    needed: bool


class DiagnosedCertificate(TypedDict):
    """The certificate of the domain."""

    status: Literal["none", "issued", "live", "lapsed"]
    """`live` only while edges serve it."""
    issuer: NotRequired[str]
    not_before: NotRequired[datetime]
    not_after: NotRequired[datetime]
    issued_at: NotRequired[datetime]
    live_at: NotRequired[datetime | None]
    own: NotRequired[bool]
    """Brought by the application."""


class DiagnosedRisk(TypedDict):
    """What would fail at the renewal."""

    code: RiskCode
    action: str
    who: Actor
    """Who can do it: the one who keeps the DNS, the partner or the operator."""
    record: DiagnosedRecord | None
    """The record to add, or with `aaaa_elsewhere` to remove."""


class DiagnosedOrder(TypedDict):
    """The order of a certificate."""

    status: orders.State
    kind: orders.Kind
    attempts: int
    last_error: str | None
    failing_since: datetime | None
    next_attempt_at: datetime | None
    """The next time that something is done: an attempt, a check, a renewal."""
    next_free_slot: datetime | None
    """When the limits of the CA leave room, if they leave none now."""
    renew_at: datetime | None
    phases: dict[str, float]
    """Seconds that each phase of the order took."""
    renewal_risk: DiagnosedRisk | None
    """Why a CA could not validate the domain at its renewal, by the last rehearsals."""


def caa_part(found: Caa | None, *, is_needed: bool) -> DiagnosedCaa:
    """Render whether CAA records let our CAs issue."""
    if found is None or not found.authorization.is_known:
        return {"status": "unknown", "needed": is_needed}
    authorization = found.authorization
    if not authorization.records:
        return {"status": "anyone may issue", "needed": is_needed}
    return {
        "status": "forbidden" if found.forbids else "restricted",
        "host": authorization.name,
        "records": list(authorization.records),
        "authorities": found.authorities,
        "needed": is_needed,
    }


def challenge_path_part(diagnosis: service.Diagnosis) -> DiagnosedChallengePath:
    """Render whether the CA's requests for a challenge reach the edges."""
    reached = diagnosis.dns.reached if diagnosis.dns is not None else Reached.UNKNOWN
    asked = f"http://{diagnosis.name.visited_host}{PROBE_PATH}…"
    is_delegated = diagnosis.ownership is not None and diagnosis.ownership.is_delegated
    return {"reaches": reached, "asked": asked, "needed": diagnosis.uses_acme and not is_delegated}


def certificate_part(diagnosis: service.Diagnosis, now: datetime) -> DiagnosedCertificate | UnknownPart:
    """Render the certificate: without an edge it is ``issued``, whatever `live_at` records."""
    holding, nodes = diagnosis.holding, diagnosis.nodes
    if holding is None:
        return UNKNOWN
    is_served = nodes is None or nodes.edges.alive > 0
    if (own := holding.own) is not None:
        return {
            "status": "lapsed" if own.not_after <= now else "live" if is_served else "issued",
            "issuer": own.issuer,
            "not_before": own.not_before,
            "not_after": own.not_after,
            "issued_at": own.stored_at,
            "live_at": own.stored_at,
            "own": True,
        }
    certificate = holding.certificate
    if certificate is None:
        return {"status": "none"}
    is_live = certificate.live_at is not None and is_served
    return {
        "status": "lapsed" if certificate.not_after <= now else "live" if is_live else "issued",
        "issuer": certificate.issuer,
        "not_before": certificate.not_before,
        "not_after": certificate.not_after,
        "issued_at": certificate.issued_at,
        "live_at": certificate.live_at,
    }


def order_part(holding: DomainHolding | None) -> DiagnosedOrder | UnknownPart | None:
    """Render the order of the domain's certificate."""
    if holding is None:
        return UNKNOWN
    order = holding.order
    if order is None:
        return None
    return {
        "status": order.state,
        "kind": order.kind,
        "attempts": order.attempts,
        "last_error": order.last_error,
        "failing_since": order.failing_since,
        "next_attempt_at": order.due_at,
        "next_free_slot": holding.full.free_at if holding.full else None,
        "renew_at": order.renew_at,
        "phases": dict(order.phases),
        "renewal_risk": _risk(order.risk),
    }


def _risk(risk: Risk | None) -> DiagnosedRisk | None:
    if risk is None or not risk.counts:
        return None
    record: DiagnosedRecord | None = None
    if risk.record is not None:
        record = {"type": risk.record.type, "host": risk.record.host, "value": risk.record.value}
    return {"code": risk.code, "action": risk.action, "who": risk.who, "record": record}
