"""Events, their deliveries, and the endpoint that they go to. Lists go back in time, newest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from typing_extensions import TypedDict

from api.answers.lists import ListOf, list_of
from common.db import deliveries, events, webhook_endpoints
from common.db.deliveries import Status as DeliveryStatus
from common.db.events import EventType
from common.endpoint_health import disables_at
from common.urls import hide_query


class WebhookEvent(TypedDict):
    """An event, and the status of its delivery."""

    id: str
    type: EventType
    created_at: datetime
    delivery: DeliveryStatus | None
    payload: dict[str, Any]


class WebhookEvents(ListOf[WebhookEvent]):
    """A part of the list of events."""

    events: list[WebhookEvent]
    """Deprecated: the name of `items` in 1.0.0."""


class Delivery(TypedDict):
    """A delivery with its attempts."""

    event_id: str
    type: EventType
    domain: str | None
    subdomain: str | None
    status: DeliveryStatus
    superseded_by: str | None
    created_at: datetime
    next_attempt_at: datetime | None
    settled_at: datetime | None
    last_error: str | None
    attempts: Sequence[Mapping[str, Any]]


class Deliveries(ListOf[Delivery]):
    """A part of the list of deliveries."""

    deliveries: list[Delivery]
    """Deprecated: the name of `items` in 1.0.0."""


class Replay(TypedDict):
    """Deliveries that will be sent again.

    `more`: there may be more in the range; the same call goes on with the next.
    """

    message: str
    replayed: int
    more: bool


class TestEvent(TypedDict):
    """A test event that will be sent."""

    message: str
    id: str


class Endpoint(TypedDict):
    """How the endpoint of the webhook fares."""

    url: str | None
    """Where events are sent. Users and keys that may only look get `…` for its query."""
    enabled: bool
    failing_since: datetime | None
    disables_at: datetime | None
    disabled_at: datetime | None
    last_error: str | None


def events_page(found: Sequence[events.Event], limit: int, *, shows_links: bool) -> WebhookEvents:
    """Render a part of the list of events; a full one has a `next`. `shows_links`: as `shown_payload`."""
    items = [_event(each, shows_links=shows_links) for each in found]
    return {**list_of(items, found[-1].id if len(found) == limit else None, limit), "events": items}


def deliveries_page(found: Sequence[deliveries.Delivery], limit: int) -> Deliveries:
    """Render a part of the list of deliveries; a full one has a `next`."""
    items = list(map(_delivery, found))
    return {**list_of(items, found[-1].event_id if len(found) == limit else None, limit), "deliveries": items}


def endpoint(url: str | None, state: webhook_endpoints.Endpoint, *, shows_query: bool) -> Endpoint:
    """Render the state of the endpoint. `disables_at`: the first failure from then on disables it."""
    return {
        "url": shown_url(url, shows_query=shows_query),
        "enabled": url is not None and state.disabled_at is None,
        "failing_since": state.failing_since,
        "disables_at": disables_at(state),
        "disabled_at": state.disabled_at,
        "last_error": state.last_error,
    }


def shown_url(url: str | None, *, shows_query: bool) -> str | None:
    """Return the URL of a webhook; without `shows_query`, with a mark for its query, where a key may stand."""
    return url if url is None or shows_query else hide_query(url)


def shown_payload(event: events.Event, *, shows_links: bool) -> dict[str, Any]:
    """Return an event's payload; without `shows_links`, its `connect_link` is None: a sharing link opens flows."""
    hidden = {} if shows_links or "connect_link" not in event.payload else {"connect_link": None}
    return event.payload | hidden


def _event(event: events.Event, *, shows_links: bool) -> WebhookEvent:
    return {
        "id": event.id,
        "type": event.type,
        "created_at": event.created_at,
        "delivery": event.delivery,
        "payload": shown_payload(event, shows_links=shows_links),
    }


def _delivery(delivery: deliveries.Delivery) -> Delivery:
    return {
        "event_id": delivery.event_id,
        "type": delivery.type,
        "domain": delivery.domain,
        "subdomain": delivery.subdomain,
        "status": delivery.status,
        "superseded_by": delivery.superseded_by,
        "created_at": delivery.created_at,
        "next_attempt_at": delivery.next_attempt_at,
        "settled_at": delivery.settled_at,
        "last_error": delivery.last_error,
        "attempts": delivery.log,
    }
