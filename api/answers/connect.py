"""Flows of the connect modal: each answer and each event shows the flow whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from typing_extensions import TypedDict

from api.connect import returning
from common.connect import flow_events
from common.db import connect_flows
from common.db.domains import CertificateState
from common.flow_states import State

_RECORD_FIELDS = ("type", "host", "value", "ttl", "priority")


class FlowHandover(TypedDict):
    """Where the person goes to let a Domain Connect provider apply the template, and with what they came back.

    What they came back with is the browser's word; the DNS decides.
    """

    url: str
    returned: returning.Outcome | None
    error: str | None
    description: str | None
    """The provider's text, to be shown as text."""


class FlowPropagation(TypedDict):
    """How far the records of a flow are live."""

    status: flow_events.PropagationStatus
    since: datetime | None
    looks: int
    """How often the records were looked for."""
    next_look_at: datetime | None
    """Null once they are not looked for any more."""


class Flow(TypedDict):
    """A domain being connected; the handbook explains its states."""

    id: str
    job_id: str
    state: State
    version: int
    domain: str | None
    subdomain: str | None
    host: str | None
    """The whole name that is connected."""
    user_id: str | None
    created_at: datetime
    updated_at: datetime
    warnings: Sequence[str]
    steps: dict[str, str] | None
    """How far the check of the domain is."""
    provider: dict[str, Any] | None
    """The DNS provider, and whether it can be written to."""
    ways: list[dict[str, Any]] | None
    """How the records can be set, the best first."""
    recordConflicts: list[dict[str, Any]] | None
    """Existing records that stand in the way."""
    records: list[dict[str, Any]]
    """Each with its `status`, and with `manual`: what to type into the provider's form."""
    plan: Mapping[str, Any] | None
    """What will be added, replaced, merged and kept."""
    way: str | None
    """The way that was chosen."""
    setup_type: flow_events.SetupType | None
    written: list[dict[str, Any]] | None
    """Record sets that the flow has written, each with what was there before."""
    handover: FlowHandover | None
    propagation: FlowPropagation | None
    enrolments: list[dict[str, Any]]
    """Products that the names are enrolled in, each with its `status`."""
    error: Mapping[str, Any] | None


def flow_answer(of: connect_flows.Flow, certificates: Mapping[str, CertificateState] | None = None) -> Flow:
    """Render a flow, whole. `certificates`: those of names that are enrolled, where they were asked for."""
    looked = of.looked or {}
    return {
        "id": of.id,
        "job_id": of.job_id,
        "state": of.state,
        "version": of.version,
        "domain": of.domain,
        "subdomain": of.subdomain,
        "host": of.host,
        "user_id": of.user_id,
        "created_at": of.created_at,
        "updated_at": of.updated_at,
        "warnings": of.warnings,
        "steps": looked.get("steps"),
        "provider": looked.get("provider"),
        "ways": looked.get("ways"),
        "recordConflicts": looked.get("conflicts"),
        "records": [_record(requested, of, number) for number, requested in enumerate(of.requested)],
        "plan": of.plan,
        "way": of.way,
        "setup_type": flow_events.setup_type(of.way),
        "written": _written(of),
        "handover": _handover(of),
        "propagation": _propagation(of),
        "enrolments": [_enrolment(each, certificates or {}) for each in of.enrolments],
        "error": of.error,
    }


def _record(requested: Mapping[str, Any], of: connect_flows.Flow, number: int) -> dict[str, Any]:
    seen = of.statuses[number] if number < len(of.statuses) else {}
    fields = {name: requested[name] for name in _RECORD_FIELDS if name in requested}
    return fields | {"status": "unknown"} | dict(seen) | _manual(of, number)


def _manual(of: connect_flows.Flow, number: int) -> dict[str, Any]:
    """Return what to type into the provider's form, once the provider is known."""
    for way in (of.looked or {}).get("ways", ()):
        if way["way"] == "manual" and number < len(way["records"]):
            return {"manual": way["records"][number]}
    return {}


def _written(of: connect_flows.Flow) -> list[dict[str, Any]] | None:
    return [dict(entry) for entry in of.journal] or None


def _handover(of: connect_flows.Flow) -> FlowHandover | None:
    found = of.handover
    if found is None or "url" not in found:
        return None
    return {
        "url": found["url"],
        "returned": found.get("returned"),
        "error": found.get("error"),
        "description": found.get("description"),
    }


def _enrolment(enrolment: Mapping[str, Any], certificates: Mapping[str, CertificateState]) -> dict[str, Any]:
    is_served = enrolment["product"] != "monitor" and enrolment["name"] in certificates
    return dict(enrolment) | ({"certificate": certificates[enrolment["name"]]} if is_served else {})


def _propagation(of: connect_flows.Flow) -> FlowPropagation | None:
    status = flow_events.propagation_status(of)
    if status is None:
        return None
    is_looked_for = of.state in (State.WAITING, State.PROPAGATING)
    return {
        "status": status,
        "since": of.since,
        "looks": of.looks,
        "next_look_at": of.due_at if is_looked_for else None,
    }
