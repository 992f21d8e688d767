"""Deliveries carried out: one attempt, and what it means for the event and for its endpoint.

At least once: the attempt comes before the note of it, so a crash between the two makes it be sent again, under
the same id. Rows and their rules are `common.db.deliveries`.
"""

from __future__ import annotations

from datetime import datetime
from random import Random

import orjson

from common.clock import Clock
from common.db import deliveries, webhook_endpoints
from common.db.application_secrets import webhook_secret_identity
from common.db.deliveries import ClaimedDelivery, LogEntry
from common.db.events import payload_of
from common.db.pool import Connection, Database
from common.endpoint_health import EndpointVerdict, judge_endpoint
from common.logs import get_logger
from common.secrets import Keyring
from monitor.claims import LEASE_SECONDS, Runner, write_when_available
from monitor.webhooks.schedule import next_delay_seconds, parse_retry_after
from monitor.webhooks.sender import Sender, WebhookResponse
from monitor.webhooks.signing import signed_headers
from monitor.webhooks.slots import MOST_AT_ONCE, QUICK_SECONDS, Slots

_POLL_SECONDS = 1.0  # partners who ask for a test or a replay wait no longer

_log = get_logger("monitor.webhooks")


def make_runner(
    database: Database,
    sender: Sender,
    keyring: Keyring,
    clock: Clock,
    random: Random,
    *,
    lease_seconds: float = LEASE_SECONDS,
    poll_seconds: float = _POLL_SECONDS,
) -> Runner[ClaimedDelivery]:
    """Create the runner of deliveries. The role runs it, and wakes it when an event was recorded."""
    work = Deliverer(database, sender, keyring, clock, random)
    slots = Slots(clock)

    async def perform(claimed: ClaimedDelivery) -> None:
        try:
            with slots.hold(claimed):
                await work.perform(claimed)
        finally:
            runner.wake()  # its endpoint has room again

    runner = Runner(
        database,
        DeliveryQueue(slots),
        perform,
        concurrency=MOST_AT_ONCE,
        random=random,
        lease_seconds=lease_seconds,
        poll_seconds=poll_seconds,
    )
    return runner


class DeliveryQueue:
    """The queue of due deliveries (`common.db.deliveries`), within this process' slots."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self.extend = deliveries.extend
        self.postpone = deliveries.postpone
        self.next_due_seconds = deliveries.next_due_seconds

    async def claim(self, connection: Connection, /, *, most: int, lease_seconds: float) -> list[ClaimedDelivery]:
        """Claim up to `most` due deliveries, as many of each kind as there are free slots."""
        free = self._slots.free()
        return await deliveries.claim(
            connection,
            most=min(most, free.quick),
            most_slow=min(max(0, most - free.quick), free.slow),
            full=free.hanging,
            lease_seconds=lease_seconds,
        )


class Deliverer:
    """Performs deliveries. One instance per process; it holds nothing between attempts."""

    def __init__(self, database: Database, sender: Sender, keyring: Keyring, clock: Clock, random: Random) -> None:
        self._database = database
        self._sender = sender
        self._keyring = keyring
        self._clock = clock
        self._random = random

    async def perform(self, claimed: ClaimedDelivery) -> None:
        """Make one attempt at a delivery and record its outcome; settle a superseded one without an attempt.

        Raises: `FenceLost`, `DatabaseUnavailable`.
        """
        if claimed.is_superseded:
            async with self._database.transaction() as connection:
                await deliveries.record_superseded(connection, claimed)
            return
        began = self._clock.now()
        began_at = self._clock.monotonic()
        answer = await self._attempt(claimed, began)
        seconds = self._clock.monotonic() - began_at
        entry = {
            "at": began.isoformat(timespec="seconds"),
            "status": answer.status,
            "error": answer.error,
            "seconds": round(seconds, 3),
            "body": answer.body,
        }
        await write_when_available(
            self._database, lambda connection: self._record(connection, claimed, answer, entry, seconds)
        )
        _log.info(
            "webhook attempted", event_id=claimed.event_id, type=claimed.event_type,
            application=claimed.application_id, status=answer.status, error=answer.error, seconds=round(seconds, 3),
        )  # fmt: skip

    async def _attempt(self, claimed: ClaimedDelivery, now: datetime) -> WebhookResponse:
        """Sign the event and post it once."""
        body = orjson.dumps(
            payload_of(
                claimed.event_id,
                claimed.event_type,
                claimed.application_id,
                claimed.occurred_at,
                claimed.domain,
                claimed.subdomain,
                claimed.sequence,
                claimed.fields,
            )
        )
        headers = dict(signed_headers(claimed.event_id, body, self._open_secrets(claimed), now))
        if claimed.request_id is not None:
            headers["X-Request-Id"] = claimed.request_id
        return await self._sender.post(claimed.url, body, headers)

    def _open_secrets(self, claimed: ClaimedDelivery) -> list[str]:
        """Return the webhook's opened secrets, the current one first."""
        identity = webhook_secret_identity(claimed.application_id)
        envelopes = filter(None, (claimed.secret, claimed.previous_secret))
        return [self._keyring.open(envelope, identity).decode() for envelope in envelopes]

    async def _record(
        self, connection: Connection, claimed: ClaimedDelivery, answer: WebhookResponse, entry: LogEntry, seconds: float
    ) -> None:
        """Record the outcome of an attempt, and warn or disable an endpoint that fails for long."""
        if answer.error is None:
            await deliveries.record_delivered(connection, claimed, entry, is_slow=seconds > QUICK_SECONDS)
            return
        endpoint = await webhook_endpoints.note_failure(
            connection, claimed.application_id, answer.error, seconds=seconds
        )
        retry_after = parse_retry_after(answer.retry_after, self._clock.now())
        delay = next_delay_seconds(claimed.failures + 1, retry_after, self._random)
        await deliveries.record_failed(connection, claimed, entry, delay)
        match judge_endpoint(endpoint, is_gone=answer.is_gone, now=self._clock.now()):
            case EndpointVerdict.WARN:
                await webhook_endpoints.warn(connection, claimed.application_id)
                _log.warning("webhook will be disabled", application=claimed.application_id, error=answer.error)
            case EndpointVerdict.DISABLE:
                await webhook_endpoints.disable(connection, claimed.application_id)
                _log.warning("webhook disabled", application=claimed.application_id, error=answer.error)
            case EndpointVerdict.NO_ACTION:
                pass
