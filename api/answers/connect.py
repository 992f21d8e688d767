"""Flows of the connect modal: each answer and each event shows the flow whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NotRequired

from typing_extensions import TypedDict

from api.answers.connect_enrolments import FlowEnrolmentAnswer, flow_enrolment
from api.answers.connect_plan import FlowPlan, WrittenSet, flow_plan, written_set
from api.answers.connect_ways import FlowWay, FormRecord, flow_way, form_record
from api.answers.preparation import RecordToSet, records_to_set
from api.services.flow_preparing import FlowPreparation
from common.connect import flow_events
from common.db import connect_flows, preparations
from common.db.domains import CertificateState
from common.flow_states import State
from common.flows import inspection as inspected
from common.flows.handover import FlowProblem, Handover, ReturnOutcome
from common.flows.requested import SightingStatus
from common.flows.ways import WayName
from common.records import RecordType


class FlowSteps(TypedDict):
    """How far the inspection of the domain is."""

    provider: inspected.StepState
    """Who hosts the zone."""
    records: inspected.StepState
    """What the zone holds."""
    ways: inspected.StepState
    """How the records can be set."""


class FlowDomainConnect(TypedDict):
    """Whether the provider's Domain Connect is open to the flow."""

    isOpen: bool
    """It is one of the `ways`."""
    code: NotRequired[str]
    """Why it is not; left out where it is."""
    message: NotRequired[str]
    """The same in words."""


class FlowProvider(TypedDict):
    """The DNS provider of the domain."""

    id: str
    """Empty for a provider that is not known."""
    name: str
    """As people know it."""
    helpUrl: str | None
    """The provider's own instructions."""
    setupType: inspected.SetupType
    """`automatic`: the best way needs no typing at the provider."""
    domainConnect: FlowDomainConnect | None
    """Null where the provider does not have it."""


class _Priority(TypedDict):
    priority: NotRequired[str]


class _Manual(TypedDict):
    manual: NotRequired[FormRecord]


class FlowConflict(TypedDict):
    """An existing record that stands in the way."""

    host: str
    """Relative to the apex, which is `@`."""
    type: RecordType
    """Of the existing record."""
    value: str
    """As the zone has it."""
    priority: NotRequired[str]
    """Of MX records only."""
    code: str
    """The rule that it breaks."""
    reason: str
    """The same in words."""
    suggested: str | None
    """What to publish instead, where records can be merged."""


class FlowRecord(TypedDict):
    """A record that the flow sets, its `host` relative to the apex."""

    type: RecordType
    """Of the record."""
    host: str
    """`@` is the apex; a host that ends with a dot is the whole name."""
    value: str
    """As it is to stand in the zone."""
    ttl: int
    """Seconds."""
    priority: NotRequired[str]
    """Of MX records only."""
    status: SightingStatus
    """What the last look saw of it."""
    manual: NotRequired[FormRecord]
    """What to type into the provider's form; left out until the provider is known."""


class FlowHandover(TypedDict):
    """Where the person goes to let a Domain Connect provider apply the template, and with what they came back.

    What they came back with is the browser's word; the DNS decides.
    """

    url: str
    """The provider's consent page."""
    returned: ReturnOutcome | None
    """`done`: the provider applied the template; null until a browser is back."""
    error: str | None
    """Why the provider did not apply it: a code of RFC 6749 §4.1.2.1, or `other`."""
    description: str | None
    """The provider's text, to be shown as text."""


class FlowPropagation(TypedDict):
    """How far the records of a flow are live."""

    status: flow_events.PropagationStatus
    """`timeout` after 72 hours."""
    since: datetime | None
    """When the flow began to look for its records."""
    looks: int
    """How often the records were looked for."""
    next_look_at: datetime | None
    """Null once they are not looked for any more."""


class FlowError(TypedDict):
    """What went wrong in a flow."""

    code: str
    """For programs; the handbook lists all."""
    message: str
    """What happened, in a sentence."""
    hint: str
    """What to do next."""
    fields: list[str]
    """The names of the credentials that are wrong, where that is known."""


class Flow(TypedDict):
    """A domain being connected; the handbook explains its states."""

    id: str
    """Of this flow."""
    job_id: str
    """Of the flow, or of the sharing link that opened it: events carry it too."""
    state: State
    """Where the flow is."""
    version: int
    """Grows with each change."""
    domain: str | None
    """The apex; null until a domain is chosen."""
    subdomain: str | None
    """Null at the apex."""
    host: str | None
    """The whole name that is connected."""
    user_id: str | None
    """Your own id of the user, as the configuration or the token gave it."""
    created_at: datetime
    """When the flow began."""
    updated_at: datetime
    """When it last changed."""
    warnings: Sequence[str]
    """What of the configuration was ignored."""
    steps: FlowSteps | None
    """How far the inspection of the domain is; null before it begins."""
    provider: FlowProvider | None
    """The DNS provider; null until it is known."""
    ways: list[FlowWay] | None
    """How the records can be set, the best first."""
    recordConflicts: list[FlowConflict] | None
    """Existing records that stand in the way; null where there are none."""
    records: list[FlowRecord]
    """The records that are to be set."""
    plan: FlowPlan | None
    """What will be added, replaced, merged and kept."""
    way: WayName | None
    """The way that was chosen."""
    setup_type: flow_events.SetupType | None
    """`manual` where the person types the records; null until a way is chosen."""
    written: list[WrittenSet] | None
    """Record sets that the flow has written, each with what was there before."""
    handover: FlowHandover | None
    """Null where the way is not Domain Connect."""
    propagation: FlowPropagation | None
    """Null before the records are looked for."""
    enrolments: list[FlowEnrolmentAnswer]
    """Products that the names are enrolled in, each with its `status`; empty until the records are live."""
    error: FlowError | None
    """Why the last move did not succeed."""


class FlowPreparedDomain(TypedDict):
    """A name of a flow that is to be served before its records change."""

    domain: str
    state: preparations.State
    """As of `DomainPreparation`."""
    reason: str | None
    """Why it waits although the record is seen: a code, as of a refused enrolment."""
    record: RecordToSet | None
    """The record to set first; the flow's own records come once all names are prepared."""


class FlowPreparationAnswer(TypedDict):
    """How far the names of a flow are prepared, so that a site that is up stays up while it moves."""

    isOffered: bool
    """The flow's plan takes away what leads visitors to its names now, or `isNeeded`; and they can be prepared."""
    isNeeded: bool
    """A name is a wildcard, which is enrolled where its challenge is delegated alone."""
    domains: list[FlowPreparedDomain]
    """Empty until they are asked to be prepared."""


def flow_preparation_answer(found: FlowPreparation) -> FlowPreparationAnswer:
    """Render how far the names of a flow are prepared."""
    return {
        "isOffered": found.is_offered,
        "isNeeded": found.is_needed,
        "domains": [
            {
                "domain": each.domain,
                "state": each.preparation.state,
                "reason": each.preparation.reason,
                "record": next(iter(records_to_set(each)), None),
            }
            for each in found.domains
        ],
    }


def flow_answer(of: connect_flows.Flow, certificates: Mapping[str, CertificateState] | None = None) -> Flow:
    """Render a flow, whole. `certificates`: those of names that are enrolled, where they were asked for."""
    looked = of.looked
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
        "steps": None if looked is None else _steps(looked.steps),
        "provider": None if looked is None or looked.provider is None else _provider(looked.provider),
        "ways": None if looked is None or looked.ways is None else list(map(flow_way, looked.ways)),
        "recordConflicts": None if looked is None or looked.conflicts is None else _conflicts(looked.conflicts),
        "records": [_record(of, number) for number in range(len(of.requested))],
        "plan": None if of.plan is None else flow_plan(of.plan),
        "way": of.way,
        "setup_type": flow_events.setup_type(of.way),
        "written": list(map(written_set, of.journal)) or None,
        "handover": None if of.handover is None else _handover(of.handover),
        "propagation": _propagation(of),
        "enrolments": [flow_enrolment(each, certificates or {}) for each in of.enrolments],
        "error": None if of.error is None else flow_error(of.error),
    }


def _steps(steps: inspected.InspectionSteps) -> FlowSteps:
    return {"provider": steps.provider, "records": steps.records, "ways": steps.ways}


def _provider(provider: inspected.FoundProvider) -> FlowProvider:
    state = provider.domain_connect
    return {
        "id": provider.id,
        "name": provider.name,
        "helpUrl": provider.help_url,
        "setupType": provider.setup_type,
        "domainConnect": None if state is None else _domain_connect(state),
    }


def _domain_connect(state: inspected.DomainConnectState) -> FlowDomainConnect:
    answer: FlowDomainConnect = {"isOpen": state.is_open}
    if state.code is not None:
        answer["code"] = state.code
    if state.message is not None:
        answer["message"] = state.message
    return answer


def _conflicts(conflicts: Sequence[inspected.FoundConflict]) -> list[FlowConflict]:
    return list(map(_conflict, conflicts))


def _conflict(conflict: inspected.FoundConflict) -> FlowConflict:
    return {
        "host": conflict.host,
        "type": conflict.type,
        "value": conflict.value,
        **_priority(conflict.priority),
        "code": conflict.code,
        "reason": conflict.reason,
        "suggested": conflict.suggested,
    }


def _priority(priority: str | None) -> _Priority:
    return {} if priority is None else {"priority": priority}


def _record(of: connect_flows.Flow, number: int) -> FlowRecord:
    record = of.requested[number].record
    return {
        "type": record.type,
        "host": record.host,
        "value": record.value,
        "ttl": record.ttl,
        **_priority(record.priority),
        "status": of.statuses[number].status if number < len(of.statuses) else "unknown",
        **_manual(of, number),
    }


def _manual(of: connect_flows.Flow, number: int) -> _Manual:
    way = None if of.looked is None else of.looked.manual
    return {"manual": form_record(way.records[number])} if way is not None and number < len(way.records) else {}


def _handover(handover: Handover) -> FlowHandover:
    return {
        "url": handover.url,
        "returned": handover.returned,
        "error": handover.error,
        "description": handover.description,
    }


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


def flow_error(error: FlowProblem) -> FlowError:
    """Render what went wrong in a flow."""
    return {"code": error.code, "message": error.message, "hint": error.hint, "fields": list(error.fields)}
