"""A diagnosis as JSON. Times are ISO 8601, UTC; a part that could not be observed is ``unknown``."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from api.notices import describe_edge, describe_lapsed, describe_unreached
from api.services.diagnosis import Caa, Diagnosis, Dns, DomainHolding, Nodes, SeenRecord
from api.services.next_step import NextStep
from common.dns import Outcome
from common.edge_probe import Reached
from common.enrolment.ownership import OwnershipVerdict, txt_record
from common.probe import PROBE_PATH

_UNKNOWN = {"status": "unknown"}
_OWNERSHIP: Final = MappingProxyType(
    {
        OwnershipVerdict.ENROL: "free",
        OwnershipVerdict.MOVE: "moves here",
        OwnershipVerdict.UNPROVEN: "not proven",
        OwnershipVerdict.RESERVED: "reserved",
        OwnershipVerdict.BLOCKED: "blocked",
        OwnershipVerdict.SUSPENDED: "suspended",
        OwnershipVerdict.HELD: "another application's",
        OwnershipVerdict.LEADS_TO_HOLDER: "another application's",
        OwnershipVerdict.UNKNOWN: "another application's",
    }
)


def rendered(diagnosis: Diagnosis, step: NextStep, now: datetime) -> dict[str, Any]:
    return {
        "domain": diagnosis.name.text,
        "status": step.state,
        "next_step": step.words,
        "blocked": _blocked(diagnosis.holding),
        "products": _products(diagnosis.holding),
        "ownership": _ownership(diagnosis),
        "dns": _dns(diagnosis.dns),
        "caa": _caa(diagnosis.caa) | {"needed": diagnosis.uses_acme},
        "challenge_path": _challenge_path(diagnosis) | {"needed": diagnosis.uses_acme},
        "certificate": _certificate(diagnosis, now),
        "order": _order(diagnosis.holding),
        "origin": _origin(diagnosis),
        "monitor": _monitor(diagnosis.nodes),
        "edges": _edges(diagnosis.nodes),
    }


def _blocked(holding: DomainHolding | None) -> dict[str, Any] | None:
    """What edges answer every request instead of forwarding it; null where they forward."""
    policy = holding.policy if holding is not None else None
    return None if policy is None else {"scope": policy.scope, **policy.as_json()}


def _ownership(diagnosis: Diagnosis) -> dict[str, Any]:
    """`txt_record` proves the domain to be the application's, whatever else leads here."""
    ownership = diagnosis.ownership
    if ownership is None:
        return dict(_UNKNOWN)
    is_held = diagnosis.holding is not None and bool(diagnosis.holding.domains)
    host, value = txt_record(diagnosis.name.text, ownership.application_id)
    return {
        "status": "yours" if is_held else _OWNERSHIP[ownership.verdict],
        "claim": ownership.claim,
        "txt_record": {"type": "TXT", "host": host, "value": value},
    }


def _origin(diagnosis: Diagnosis) -> dict[str, Any] | None:
    """None where there is none to ask. `unreached_from`: the edges that could not connect to it in the last minute, or
    had no valid answer from it."""
    origin = diagnosis.origin
    if origin is None:
        return None if diagnosis.holding is not None else dict(_UNKNOWN)
    unreached = diagnosis.unreached
    edges = None if unreached is None else [{"edge": each.edge.label, "code": each.fault} for each in unreached]
    shown = {"status": origin.status, "url": origin.url, "code": origin.fault, "reason": origin.words or None}
    if unreached and origin.status != "unreachable":
        words = "; ".join(map(describe_unreached, unreached))
        shown |= {
            "status": "unreachable from edges",
            "code": unreached[0].fault,
            "reason": f"in the last minute, edge {words}",
        }
    return shown | {"unreached_from": edges}


def _monitor(nodes: Nodes | None) -> dict[str, Any]:
    """Whether certificates are obtained now."""
    if nodes is None:
        return dict(_UNKNOWN)
    return {"status": "running" if nodes.is_issuing else "not running"}


def _edges(nodes: Nodes | None) -> dict[str, Any]:
    if nodes is None:
        return dict(_UNKNOWN)
    reach = nodes.edges
    status = "not running" if not reach.alive else "behind" if reach.behind else "lost" if reach.lost else "ok"
    behind = [{"edge": edge.label, "reason": describe_edge(edge)} for edge in reach.behind]
    lapsed = [{"edge": edge.label, "reason": describe_lapsed(edge)} for edge in reach.lapsed]
    return {"status": status, "running": reach.alive, "behind": behind, "lapsed": lapsed}


def _products(holding: DomainHolding | None) -> list[dict[str, Any]] | None:
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


def _dns(dns: Dns | None) -> dict[str, Any]:
    if dns is None:
        return _UNKNOWN
    return {
        "status": _dns_status(dns),
        "code": dns.findings.unresolved.value if dns.findings.unresolved else None,
        "expected": _records(dns.expected),
        "found": _records(dns.found),
        "cname_target": _cname_target(dns),
    }


def _cname_target(dns: Dns) -> dict[str, Any] | None:
    """None for a root."""
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


def _dns_status(dns: Dns) -> str:
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


def _target_status(step_one: Outcome) -> str:
    if not step_one.is_known:
        return "unknown"
    return "ok" if step_one is Outcome.RECORDS else "wrong"


def _records(records: Iterable[SeenRecord]) -> list[dict[str, str]]:
    return [{"type": record.type, "host": record.host, "value": record.value} for record in records]


def _caa(found: Caa | None) -> dict[str, Any]:
    if found is None or not found.authorization.is_known:
        return dict(_UNKNOWN)
    authorization = found.authorization
    if not authorization.records:
        return {"status": "anyone may issue"}
    return {
        "status": "forbidden" if found.forbids else "restricted",
        "host": authorization.name,
        "records": list(authorization.records),
        "authorities": found.authorities,
    }


def _challenge_path(diagnosis: Diagnosis) -> dict[str, Any]:
    reached = diagnosis.dns.reached if diagnosis.dns is not None else Reached.UNKNOWN
    return {"reaches": reached.value, "asked": f"http://{diagnosis.name.text}{PROBE_PATH}…"}


def _certificate(diagnosis: Diagnosis, now: datetime) -> dict[str, Any]:
    """``live`` only while edges serve it: without an edge the certificate is `issued`, whatever `live_at` records."""
    holding, nodes = diagnosis.holding, diagnosis.nodes
    if holding is None:
        return _UNKNOWN
    certificate = holding.certificate
    if certificate is None:
        return {"status": "none"}
    is_served = nodes is None or nodes.edges.alive > 0
    status = "live" if certificate.live_at is not None and is_served else "issued"
    return {
        "status": status if certificate.not_after > now else "lapsed",
        "issuer": certificate.issuer,
        "not_before": certificate.not_before,
        "not_after": certificate.not_after,
        "issued_at": certificate.issued_at,
        "live_at": certificate.live_at,
    }


def _order(holding: DomainHolding | None) -> dict[str, Any] | None:
    """`next_attempt_at` is the next time that something is done: an attempt, a look, a renewal."""
    if holding is None:
        return dict(_UNKNOWN)
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
    }
