"""Webhooks as partners see them: what happened, what became of it, and sending it again."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from api.bounds import BOUNDS
from api.errors import NO_WEBHOOK, NOT_FOUND, WEBHOOK_DISABLED, Refused
from api.schemas.webhooks import DeliveriesQuery, EventsQuery, ReplayBody, is_event_id
from common.db import audit, deliveries, events, webhook_endpoints
from common.db.applications import Application
from common.db.deliveries import Delivery, UndeliveredStatus
from common.db.events import Event, NewEvent
from common.db.pool import Connection, Database
from common.db.webhook_endpoints import Endpoint


class Replayed(NamedTuple):
    """How many deliveries are sent again; `has_more`: as many as one call may, and there may be others."""

    deliveries: int
    has_more: bool


class WebhookService:
    """Events, deliveries and endpoints. One instance per process."""

    def __init__(self, database: Database, *, most_replayed: int = BOUNDS.most_replayed) -> None:
        self._database = database
        self._most_replayed = most_replayed

    async def list_events(self, application: Application, query: EventsQuery) -> list[Event]:
        """Return a page of the application's events, newest first."""
        async with self._database.connection() as connection:
            return await events.list_events(
                connection,
                application.id,
                before=query.before,
                limit=query.limit,
                event_type=query.type,
                domain=query.domain,
            )

    async def list_deliveries(self, application: Application, query: DeliveriesQuery) -> list[Delivery]:
        """Return a page of the application's deliveries, newest first."""
        async with self._database.connection() as connection:
            return await deliveries.list_deliveries(
                connection,
                application.id,
                before=query.before,
                limit=query.limit,
                status=query.status,
                event_id=query.event,
            )

    async def replay(self, application: Application, event_id: str) -> None:
        """Send an event again. Raises: `Refused`."""
        async with self._database.transaction() as connection:
            if not is_event_id(event_id) or not await events.has_event(connection, application.id, event_id):
                raise Refused(NOT_FOUND)
            if await audit.find_earlier(connection, "webhook.replay", event_id) is not None:
                return
            await _require_open(connection, application)
            await deliveries.replay(connection, event_id, application.id)
            await audit.record(connection, "webhook.replay", event_id, application_id=application.id)

    async def replay_range(self, application: Application, body: ReplayBody) -> Replayed:
        """Send again what has the body's status in its range. Raises: `Refused`."""
        return await self.replay_between(application, body.since, body.until, body.status)

    async def replay_between(
        self, application: Application, since: datetime, until: datetime | None, status: UndeliveredStatus = "failed"
    ) -> Replayed:
        """Send again what has that status and happened from `since` on and before `until`.

        Raises: `Refused`.
        """
        action = "webhook.replay_failed"
        async with self._database.transaction() as connection:
            if (done := await audit.find_earlier(connection, action, application.id)) is not None:
                count = (done.after or {}).get("deliveries", 0)
                return Replayed(count, count == self._most_replayed)
            await _require_open(connection, application)
            count = await deliveries.replay_settled(
                connection, application.id, since, until, status=status, most=self._most_replayed
            )
            after = {"deliveries": count, "status": status, "since": since, "until": until}
            await audit.record(connection, action, application.id, application_id=application.id, after=after)
            return Replayed(count, count == self._most_replayed)

    async def send_test(self, application: Application) -> str:
        """Record a test event and return its id. Raises: `Refused`."""
        async with self._database.transaction() as connection:
            if (sent := await audit.find_earlier(connection, "webhook.test")) is not None:
                return sent.subject
            await _require_open(connection, application)
            event_id = await events.record(connection, NewEvent(application.id, events.TEST, None, None, {}))
            await audit.record(connection, "webhook.test", event_id, application_id=application.id)
            return event_id

    async def get_endpoint(self, application: Application) -> Endpoint:
        """Return the state of the application's endpoint."""
        async with self._database.connection() as connection:
            return await webhook_endpoints.get_endpoint(connection, application.id)

    async def enable(self, application: Application) -> int:
        """Enable the endpoint; return how many deliveries had waited for their next attempt.

        Raises: `Refused`.
        """
        if application.webhook_url is None:
            raise Refused(NO_WEBHOOK)
        async with self._database.transaction() as connection:
            hurried = await webhook_endpoints.reset(connection, application.id)
            await audit.record(connection, "webhook.enable", application.id, application_id=application.id)
            return hurried


async def _require_open(connection: Connection, application: Application) -> None:
    """Refuse an application without an enabled webhook. Raises: `Refused`."""
    if application.webhook_url is None:
        raise Refused(NO_WEBHOOK)
    if (await webhook_endpoints.get_endpoint(connection, application.id)).disabled_at is not None:
        raise Refused(WEBHOOK_DISABLED, hint="POST /webhooks/endpoint/enable sends again, what is pending first")
