"""The diagnosis of a domain. A part that could not be observed has the status ``unknown`` and nothing else."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Literal

from typing_extensions import TypedDict

from api.answers.diagnosed_certificates import (
    DiagnosedCaa,
    DiagnosedCertificate,
    DiagnosedChallengePath,
    DiagnosedOrder,
    caa_part,
    certificate_part,
    challenge_path_part,
    order_part,
)
from api.answers.diagnosed_dns import UNKNOWN, DiagnosedDns, DiagnosedOwnership, UnknownPart, dns_part, ownership_part
from api.notices import describe_edge, describe_lapsed, describe_unreached
from api.services import diagnosis as service
from api.services.diagnosis import DomainHolding, Nodes
from api.services.next_step import NextStep, State
from common.db.domains import Product, Status
from common.db.edge_nodes import EdgeNode
from common.db.policies import Scope
from common.origin_faults import OriginFault


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


def diagnosis_answer(diagnosis: service.Diagnosis, step: NextStep, now: datetime) -> Diagnosis:
    """Render a diagnosis with its next step."""
    return {
        "domain": diagnosis.name.text,
        "status": step.state,
        "next_step": step.words,
        "blocked": _blocked(diagnosis.holding),
        "products": _products(diagnosis.holding),
        "ownership": ownership_part(diagnosis),
        "dns": dns_part(diagnosis.dns),
        "caa": caa_part(diagnosis.caa, is_needed=diagnosis.uses_acme),
        "challenge_path": challenge_path_part(diagnosis),
        "certificate": certificate_part(diagnosis, now),
        "order": order_part(diagnosis.holding),
        "origin": _origin(diagnosis),
        "monitor": _monitor(diagnosis.nodes),
        "edges": _edges(diagnosis.nodes, diagnosis.holding),
    }


def _blocked(holding: DomainHolding | None) -> DiagnosedBlock | None:
    policy = holding.policy if holding is not None else None
    if policy is None:
        return None
    return {"scope": policy.scope, "status": policy.status, "reason": policy.reason, "since": policy.set_at}


def _origin(diagnosis: service.Diagnosis) -> DiagnosedOrigin | UnknownPart | None:
    origin = diagnosis.origin
    if origin is None:
        return None if diagnosis.holding is not None else UNKNOWN
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
        return UNKNOWN
    return {"status": "running" if nodes.is_issuing else "not running"}


def _edges(nodes: Nodes | None, holding: DomainHolding | None) -> DiagnosedEdges | UnknownPart:
    if nodes is None:
        return UNKNOWN
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
