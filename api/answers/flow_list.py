"""The list of flows, and how far they came."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from typing_extensions import TypedDict

from api.answers.connect import FlowError, flow_error
from api.answers.lists import ListOf, list_of
from common.connect import flow_events
from common.db import connect_flow_list as flows
from common.flow_states import State
from common.flows.ways import WayName


class ListedProvider(TypedDict):
    """The DNS provider of a flow's domain."""

    id: str
    """Empty for a provider that is not known."""
    name: str
    """As people know it."""


class ListedFlow(TypedDict):
    """A flow as the list shows it; `GET /connect/flows/{id}` has the whole."""

    id: str
    job_id: str
    user_id: str | None
    """The `userId` of its configuration or token."""
    state: State
    step: flows.Step
    """The furthest step that it has come to, also once it is over."""
    open: bool
    """It is not over."""
    domain: str | None
    """The apex; null while none is chosen."""
    subdomain: str | None
    host: str | None
    """The whole name that is set up."""
    provider: ListedProvider | None
    """Null before the domain was looked at."""
    way: WayName | None
    """The way that was chosen."""
    setup_type: flow_events.SetupType | None
    error: FlowError | None
    """Why the last move did not succeed."""
    created_at: datetime
    updated_at: datetime
    """When the person or the service last moved it."""
    completed_at: datetime | None
    """When the person had done what there was to do."""
    added_at: datetime | None
    """When the records were live and what they enrol was enrolled."""


class FunnelStep(TypedDict):
    """Flows at one step."""

    step: flows.Step
    """In the order in which people come to them."""
    reached: int
    """Flows that came to this step, or further."""
    stopped: int
    """Flows that are over and came no further; at `live`, those that were undone."""
    open: int
    """Flows that stand there now."""


class ProviderFunnel(TypedDict):
    """The same of the domains at one DNS provider."""

    provider: ListedProvider | None
    """Null for flows whose domain was not looked at."""
    flows: int
    """How many there were."""
    live: int
    """Flows whose domain went live, and is not undone."""
    steps: list[FunnelStep]
    """In their order."""


class Funnel(TypedDict):
    """How far the flows of a time came: where people give up."""

    since: datetime
    """Flows that began from then on."""
    flows: int
    """How many were counted."""
    complete: bool
    """False where there were more: the newest ones were counted."""
    steps: list[FunnelStep]
    """In their order."""
    providers: list[ProviderFunnel]
    """Those with the most flows first."""


def flow_list(part: flows.FlowPart, limit: int) -> ListOf[ListedFlow]:
    """Render a part of the list of flows."""
    return list_of(list(map(_listed, part.flows)), part.next, limit)


def funnel(found: flows.Funnel) -> Funnel:
    """Render how far flows came."""
    return {
        "since": found.since,
        "flows": found.flows,
        "complete": found.is_whole,
        "steps": _steps(found.steps),
        "providers": [
            {
                "provider": _provider(each.id, each.name),
                "flows": each.flows,
                "live": each.live,
                "steps": _steps(each.steps),
            }
            for each in found.providers
        ],
    }


def _listed(of: flows.ListedFlow) -> ListedFlow:
    error = of.error
    return {
        "id": of.id,
        "job_id": of.job_id,
        "user_id": of.user_id,
        "state": of.state,
        "step": of.step,
        "open": of.is_open,
        "domain": of.domain,
        "subdomain": of.subdomain,
        "host": of.host,
        "provider": _provider(of.provider_id, of.provider_name),
        "way": of.way,
        "setup_type": flow_events.setup_type(of.way),
        "error": None if error is None else flow_error(error),
        "created_at": of.created_at,
        "updated_at": of.updated_at,
        "completed_at": of.completed_at,
        "added_at": of.added_at,
    }


def _provider(provider_id: str | None, name: str | None) -> ListedProvider | None:
    return None if provider_id is None else {"id": provider_id, "name": name or ""}


def _steps(counts: Sequence[flows.StepCount]) -> list[FunnelStep]:
    return [{"step": each.step, "reached": each.reached, "stopped": each.stopped, "open": each.open} for each in counts]
