"""Events, deliveries and the endpoint."""

from __future__ import annotations

from typing import Final, get_args

from api.answers.messages import Message
from api.answers.webhooks import Deliveries, Endpoint, Replay, TestEvent, WebhookEvents
from api.bounds import BOUNDS
from api.handlers.webhooks import WebhookHandlers
from api.operations.operation import Operation, Query
from api.operations.parameters import TEXT, back_in_time
from api.schemas import webhooks
from common.db.deliveries import Status as DeliveryStatus
from common.db.events import KEPT_DAYS, EventType

_EVENT_ID: Final = {"type": "string", "pattern": "^evt_[0-9a-f]{34}$"}

OPERATIONS: Final[tuple[Operation[WebhookHandlers], ...]] = (
    Operation(
        "GET",
        "/webhooks/events",
        WebhookHandlers.get_events,
        "getEvents",
        "Webhooks",
        f"List what happened in the last {KEPT_DAYS} days, the newest first",
        WebhookEvents,
        queries=(
            *back_in_time(_EVENT_ID),
            Query("type", {"type": "string", "enum": list(get_args(EventType))}, "Only these."),
            Query("domain", TEXT, "Only of this registrable domain."),
        ),
        errors=(400,),
    ),
    Operation(
        "GET",
        "/webhooks/deliveries",
        WebhookHandlers.get_deliveries,
        "getDeliveries",
        "Webhooks",
        "List deliveries with their attempts, the newest first",
        Deliveries,
        queries=(
            *back_in_time(_EVENT_ID),
            Query("status", {"type": "string", "enum": list(get_args(DeliveryStatus))}, "Only these."),
            Query("event", _EVENT_ID, "Only of this event."),
        ),
        errors=(400,),
    ),
    Operation(
        "POST",
        "/webhooks/events/{id}/replay",
        WebhookHandlers.replay,
        "replayEvent",
        "Webhooks",
        "Send an event again",
        Message,
        status=202,
        errors=(404, 409),
        paths={"id": "The event's id."},
    ),
    Operation(
        "POST",
        "/webhooks/deliveries/replay",
        WebhookHandlers.replay_range,
        "replayDeliveries",
        "Webhooks",
        f"Send again what failed in a range of time, the oldest {BOUNDS.most_replayed} first",
        Replay,
        status=202,
        body=webhooks.ReplayBody,
        example={"from": "2026-03-01T00:00:00Z", "to": "2026-03-02T00:00:00Z", "status": "failed"},
        errors=(400, 409),
    ),
    Operation(
        "POST",
        "/webhooks/test",
        WebhookHandlers.test,
        "sendTestEvent",
        "Webhooks",
        "Send a `webhook.test`",
        TestEvent,
        status=202,
        errors=(409,),
    ),
    Operation(
        "GET",
        "/webhooks/endpoint",
        WebhookHandlers.get_endpoint,
        "getEndpoint",
        "Webhooks",
        "Say how the webhook's endpoint fares",
        Endpoint,
    ),
    Operation(
        "POST",
        "/webhooks/endpoint/enable",
        WebhookHandlers.enable,
        "enableEndpoint",
        "Webhooks",
        "Enable the endpoint, and send what is pending",
        Message,
        errors=(409,),
    ),
)
