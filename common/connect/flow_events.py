"""The events of a flow: recorded in the transaction that makes them happen, each once for a flow.

domain.flow.completed       what the person had to do is done
domain.added                the records are live, and what they enrol is enrolled
domain.propagation.timeout  the records were not live in time
domain.flow.undone          what was written is taken back
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from common.db import connect_flows, events
from common.db.connect_flows import Flow
from common.db.events import NewEvent
from common.db.pool import Connection
from common.flow_states import State
from common.records import as_json

FlowEvent = Literal["domain.flow.completed", "domain.added", "domain.propagation.timeout", "domain.flow.undone"]
SetupType = Literal["automatic", "manual"]
PropagationStatus = Literal["pending", "success", "timeout"]
_AUTOMATIC = ("domain_connect", "provider_api", "dynamic_update")


def setup_type(way: str | None) -> SetupType | None:
    """Return what the API and webhooks call the way."""
    if way is None:
        return None
    return "automatic" if way in _AUTOMATIC else "manual"


def propagation_status(flow: Flow) -> PropagationStatus | None:
    """Return how far the records of the flow are live; None before they are looked for."""
    if flow.since is None:
        return None
    if flow.state in (State.ENROLLING, State.FINISHED):
        return "success"
    return "timeout" if flow.state is State.TIMED_OUT else "pending"


async def complete(connection: Connection, flow: Flow, moment: datetime) -> Flow:
    """Record, once, that the person has done what there was to do.

    In the caller's transaction, in which the flow was just written.
    """
    if flow.completed_at is not None:
        return flow
    await record(connection, flow, "domain.flow.completed")
    return await connect_flows.touch(connection, flow, completed_at=moment)


async def record(connection: Connection, flow: Flow, kind: FlowEvent, *, connect_link: str | None = None) -> None:
    """Record an event of a flow, in the caller's transaction."""
    shown: dict[str, list[Any]] = {"records_propagated": [], "records_non_propagated": []}
    for number, requested in enumerate(flow.requested):
        is_live = number < len(flow.statuses) and flow.statuses[number].is_live
        shown["records_propagated" if is_live else "records_non_propagated"].append(as_json(requested.record))
    provider = None if flow.looked is None else flow.looked.provider
    fields = {
        "user_id": flow.user_id,
        "job_id": flow.job_id,
        "data": shown,
        "connect_link": connect_link,
        "provider": provider.name if provider is not None else None,
        "setup_type": setup_type(flow.way),
        "propagation_status": propagation_status(flow),
        **{f"{product}_status": _status(flow, product) for product in ("power", "secure", "monitor")},
    }
    await events.record(connection, NewEvent(flow.application_id, kind, flow.domain, flow.subdomain, fields))


def _status(flow: Flow, product: str) -> str:
    """Return how far a product of the flow is enrolled.

    ``exempt`` where the configuration does not ask for the product; of several names, the worst.
    """
    wanted = any(
        each.purpose.is_monitored if product == "monitor" else each.purpose.product == product
        for each in flow.requested
    )
    statuses = {each.status for each in flow.enrolments if each.product == product}
    if not wanted:
        return "exempt"
    return next((each for each in ("failed", "pending") if each in statuses), "success" if statuses else "pending")
