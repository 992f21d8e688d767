"""The diagnosis of a domain. A part that could not be observed has the status ``unknown`` and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Final, Literal, NotRequired

from typing_extensions import TypedDict

from api.notices import describe_edge, describe_lapsed, describe_unreached
from api.services import diagnosis as service
from api.services.diagnosis import Caa, Dns, DomainHolding, Nodes, SeenRecord
from api.services.next_step import NextStep, State
from common.db import orders
from common.db.domains import Product, Status
from common.db.edge_nodes import EdgeNode
from common.db.policies import Scope
from common.db.renewal_risks import Actor, Risk, RiskCode
from common.dns import Outcome
from common.edge_probe import Reached
from common.enrolment.ownership import OwnershipClaim, OwnershipVerdict, txt_record
from common.origin_faults import OriginFault
from common.probe import PROBE_PATH

OwnershipStatus = Literal[
    "yours", "free", "moves here", "not proven", "reserved", "blocked", "suspended", "another application's"
]


class UnknownPart(TypedDict):
    """A part that could not be observed."""

    status: Literal["unknown"]


class DiagnosedRecord(TypedDict):
    """A record as the DNS has it, or should have it."""

    type: str
    host: str
    value: str


class DiagnosedBlock(TypedDict):
    """What an operator has every request answered, instead of forwarding it."""

    scope: Scope
    """`application` where the whole application is suspended."""
    status: int
    reason: str
    since: datetime


class DiagnosedProduct(TypedDict):
    """An enrolment of the domain."""

    product: Product
    status: Status
    applicationUrl: str
    departed_at: datetime | None
    """When its DNS was seen to have left."""


class DiagnosedDelegation(DiagnosedRecord):
    """The record that delegates the domain's ACME challenge."""

    is_seen: bool
    """The record is in the DNS, as it should be."""


class DiagnosedOwnership(TypedDict):
    """Whether the application may have the domain."""

    status: OwnershipStatus
    claim: OwnershipClaim | None
    """How the DNS shows whose the domain is."""
    txt_record: DiagnosedRecord | None
    """Proves the domain to be the application's, whatever else leads here; null for a wildcard, which only the
    delegation proves."""
    delegation: DiagnosedDelegation | None
    """Proves the domain too, and lets a CA validate it wherever its visitors are led; null where the installation has
    no zone for it, or the application neither holds nor prepares the domain, which is no wildcard."""


class DiagnosedTarget(TypedDict):
    """The application's cname target: the partner's part."""

    status: Literal["ok", "wrong", "unknown"]
    expected_one_of: list[DiagnosedRecord]
    found: list[DiagnosedRecord]
    seen_here_at: datetime | None
    """When it was last seen to lead here."""
    elsewhere_since: datetime | None
    has_lapsed: bool
    """It reserves no domain any more."""


class DiagnosedDns(TypedDict):
    """Where the domain leads, and where it should lead."""

    status: Literal["ok", "ok, behind a proxy", "missing", "wrong", "unknown"]
    code: str | None
    """Why the domain could not be resolved."""
    expected: list[DiagnosedRecord]
    found: list[DiagnosedRecord]
    cname_target: DiagnosedTarget | None
    """Null for a root."""


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


class DiagnosedEdgeFault(TypedDict):
    """What an edge met at the origin."""

    edge: str
    code: OriginFault


class DiagnosedOrigin(TypedDict):
    """Whether the origin answers."""

    status: Literal["ok", "unreachable", "unreachable from edges", "unknown"]
    url: str
    code: OriginFault | None
    reason: str | None
    unreached_from: list[DiagnosedEdgeFault] | None
    """The edges that could not connect to it in the last minute, or had no valid response from it; null where that is
    unknown."""


class DiagnosedMonitor(TypedDict):
    """Whether certificates are obtained now."""

    status: Literal["running", "not running"]


class DiagnosedEdge(TypedDict):
    """An edge, and what is wrong with it."""

    edge: str
    reason: str


class DiagnosedEdgeCertificate(TypedDict):
    """The certificate that an edge serves."""

    edge: str
    is_current: bool
    """Whether it is the newest one."""
    serial: str | None
    """In hexadecimal; null where it is one of before, or not known."""


class DiagnosedEdges(TypedDict):
    """Whether the edges serve what was stored."""

    status: Literal["ok", "not running", "behind", "lost"]
    running: int
    behind: list[DiagnosedEdge]
    """Edges that do not serve the newest changes yet."""
    lapsed: list[DiagnosedEdge]
    """Edges that report no more."""
    certificates: list[DiagnosedEdgeCertificate]
    """What visitors of this domain get, by edge; those that report no more as they last reported."""


class Diagnosis(TypedDict):
    """What is wrong with a domain. A part that could not be observed has the status `unknown`."""

    domain: str
    status: State
    next_step: str
    """The one thing to do, in a sentence."""
    blocked: DiagnosedBlock | None
    """What an operator has every request answered, instead of forwarding it; null where requests are forwarded."""
    products: list[DiagnosedProduct] | None
    ownership: DiagnosedOwnership | UnknownPart
    dns: DiagnosedDns | UnknownPart
    caa: DiagnosedCaa
    challenge_path: DiagnosedChallengePath
    certificate: DiagnosedCertificate | UnknownPart
    order: DiagnosedOrder | UnknownPart | None
    origin: DiagnosedOrigin | UnknownPart | None
    """Null where the domain has no origin: it is not enrolled, or sends visitors elsewhere."""
    monitor: DiagnosedMonitor | UnknownPart
    edges: DiagnosedEdges | UnknownPart


_UNKNOWN: Final[UnknownPart] = {"status": "unknown"}
_OWNERSHIP: Final[Mapping[OwnershipVerdict, OwnershipStatus]] = MappingProxyType(
    {
        OwnershipVerdict.ENROL: "free",
        OwnershipVerdict.MOVE: "moves here",
        OwnershipVerdict.UNPROVEN: "not proven",
        OwnershipVerdict.UNDELEGATED: "not proven",
        OwnershipVerdict.RESERVED: "reserved",
        OwnershipVerdict.BLOCKED: "blocked",
        OwnershipVerdict.SUSPENDED: "suspended",
        OwnershipVerdict.HELD: "another application's",
        OwnershipVerdict.LEADS_TO_HOLDER: "another application's",
        OwnershipVerdict.UNKNOWN: "another application's",
    }
)


def diagnosis_answer(diagnosis: service.Diagnosis, step: NextStep, now: datetime) -> Diagnosis:
    """Render a diagnosis with its next step."""
    return {
        "domain": diagnosis.name.text,
        "status": step.state,
        "next_step": step.words,
        "blocked": _blocked(diagnosis.holding),
        "products": _products(diagnosis.holding),
        "ownership": _ownership(diagnosis),
        "dns": _dns(diagnosis.dns),
        "caa": _caa(diagnosis.caa, is_needed=diagnosis.uses_acme),
        "challenge_path": _challenge_path(diagnosis),
        "certificate": _certificate(diagnosis, now),
        "order": _order(diagnosis.holding),
        "origin": _origin(diagnosis),
        "monitor": _monitor(diagnosis.nodes),
        "edges": _edges(diagnosis.nodes, diagnosis.holding),
    }


def _blocked(holding: DomainHolding | None) -> DiagnosedBlock | None:
    policy = holding.policy if holding is not None else None
    if policy is None:
        return None
    return {"scope": policy.scope, "status": policy.status, "reason": policy.reason, "since": policy.set_at}


def _ownership(diagnosis: service.Diagnosis) -> DiagnosedOwnership | UnknownPart:
    ownership = diagnosis.ownership
    if ownership is None:
        return _UNKNOWN
    is_held = diagnosis.holding is not None and bool(diagnosis.holding.domains)
    host, value = txt_record(diagnosis.name.text, ownership.application_id)
    return {
        "status": "yours" if is_held else _OWNERSHIP[ownership.verdict],
        "claim": ownership.claim,
        "txt_record": None if diagnosis.name.is_wildcard else {"type": "TXT", "host": host, "value": value},
        "delegation": _delegation(ownership),
    }


def _delegation(ownership: service.Ownership) -> DiagnosedDelegation | None:
    record = ownership.delegation
    if record is None:
        return None
    return {"type": "CNAME", "host": record.host, "value": record.value, "is_seen": ownership.is_delegated}


def _origin(diagnosis: service.Diagnosis) -> DiagnosedOrigin | UnknownPart | None:
    origin = diagnosis.origin
    if origin is None:
        return None if diagnosis.holding is not None else _UNKNOWN
    unreached = diagnosis.unreached
    answer: DiagnosedOrigin = {
        "status": origin.status,
        "url": origin.url,
        "code": origin.fault,
        "reason": origin.words or None,
        "unreached_from": None if unreached is None else [{"edge": e.edge.label, "code": e.fault} for e in unreached],
    }
    if unreached and origin.status != "unreachable":
        words = "; ".join(map(describe_unreached, unreached))
        answer["status"], answer["code"] = "unreachable from edges", unreached[0].fault
        answer["reason"] = f"in the last minute, edge {words}"
    return answer


def _monitor(nodes: Nodes | None) -> DiagnosedMonitor | UnknownPart:
    if nodes is None:
        return _UNKNOWN
    return {"status": "running" if nodes.is_issuing else "not running"}


def _edges(nodes: Nodes | None, holding: DomainHolding | None) -> DiagnosedEdges | UnknownPart:
    if nodes is None:
        return _UNKNOWN
    reach = nodes.edges
    return {
        "status": "not running" if not reach.alive else "behind" if reach.behind else "lost" if reach.lost else "ok",
        "running": reach.alive,
        "behind": [{"edge": edge.label, "reason": describe_edge(edge)} for edge in reach.behind],
        "lapsed": [{"edge": edge.label, "reason": describe_lapsed(edge)} for edge in reach.lapsed],
        "certificates": [] if holding is None else list(map(partial(_served, holding.serial), holding.served_at)),
    }


def _served(serial: str | None, at: tuple[EdgeNode, bool]) -> DiagnosedEdgeCertificate:
    edge, is_current = at
    return {"edge": edge.label, "is_current": is_current, "serial": serial if is_current else None}


def _products(holding: DomainHolding | None) -> list[DiagnosedProduct] | None:
    if holding is None:
        return None
    return [
        {
            "product": domain.product,
            "status": domain.status,
            "applicationUrl": domain.application_url,
            "departed_at": domain.departed_at,
        }
        for domain in sorted(holding.domains, key=lambda each: each.product)
    ]


def _dns(dns: Dns | None) -> DiagnosedDns | UnknownPart:
    if dns is None:
        return _UNKNOWN
    return {
        "status": _dns_status(dns),
        "code": dns.findings.unresolved.value if dns.findings.unresolved else None,
        "expected": _records(dns.expected),
        "found": _records(dns.found),
        "cname_target": _cname_target(dns),
    }


def _cname_target(dns: Dns) -> DiagnosedTarget | None:
    if not dns.target_expected:
        return None
    return {
        "status": _target_status(dns.findings.step_one),
        "expected_one_of": _records(dns.target_expected),
        "found": _records(dns.target_found),
        "seen_here_at": dns.sighting.here_at if dns.sighting else None,
        "elsewhere_since": dns.sighting.elsewhere_since if dns.sighting else None,
        "has_lapsed": dns.sighting is not None and dns.sighting.has_lapsed,
    }


def _dns_status(dns: Dns) -> Literal["ok", "ok, behind a proxy", "missing", "wrong", "unknown"]:
    findings = dns.findings
    if findings.unresolved is Outcome.NO_NAME:
        return "missing"
    if findings.unresolved is Outcome.CHAIN:
        return "wrong"
    if findings.unresolved is not None:
        return "unknown"
    if not findings.is_pointed:
        return "wrong"
    seen = {(record.type, record.value) for record in dns.found}
    direct = any((record.type, record.value) in seen for record in dns.expected)
    return "ok" if direct else "ok, behind a proxy"


def _target_status(step_one: Outcome) -> Literal["ok", "wrong", "unknown"]:
    if not step_one.is_known:
        return "unknown"
    return "ok" if step_one is Outcome.RECORDS else "wrong"


def _records(records: Iterable[SeenRecord]) -> list[DiagnosedRecord]:
    return [{"type": record.type, "host": record.host, "value": record.value} for record in records]


def _caa(found: Caa | None, *, is_needed: bool) -> DiagnosedCaa:
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


def _challenge_path(diagnosis: service.Diagnosis) -> DiagnosedChallengePath:
    reached = diagnosis.dns.reached if diagnosis.dns is not None else Reached.UNKNOWN
    asked = f"http://{diagnosis.name.visited_host}{PROBE_PATH}…"
    is_delegated = diagnosis.ownership is not None and diagnosis.ownership.is_delegated
    return {"reaches": reached, "asked": asked, "needed": diagnosis.uses_acme and not is_delegated}


def _certificate(diagnosis: service.Diagnosis, now: datetime) -> DiagnosedCertificate | UnknownPart:
    """Render the certificate: without an edge it is ``issued``, whatever `live_at` records."""
    holding, nodes = diagnosis.holding, diagnosis.nodes
    if holding is None:
        return _UNKNOWN
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


def _order(holding: DomainHolding | None) -> DiagnosedOrder | UnknownPart | None:
    if holding is None:
        return _UNKNOWN
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
