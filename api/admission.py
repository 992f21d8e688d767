"""Admission: shares this process between the applications, so that none waits behind another's slow requests.

Rules
    a request holds a slot for `_HOLD_SECONDS` at most: a slot is for work, and most of a long request is waiting
    slots are few, because requests in slots share one core, which no queue divides between their applications
    a request that asks the DNS also holds one of its application's own slots until it ends: questions to servers that
        do not answer take seconds each, and the resolver has a bounded number of passes
    tokens and client secrets are verified in turns of the clients' addresses, and for one address in turns of the
        applications that its requests name: neither many names from one address nor a request that names another's
        application take another's turn
    what needs no token of the API's runs in turns of the clients' addresses; none is refused, for connections are
        bounded, and each has one request at work
    a tenant with too many requests waiting is answered 429 for further ones
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from common.fair_queue import FairQueue, TooManyWaiting

_SLOTS = 6  # these and those that verify are fewer than the pool's connections, for which requests wait in no turn
_HOLD_SECONDS = 0.05
_MOST_WAITING = 200
_VERIFICATIONS = 3
_OPEN = 3
_OPEN_HOLD_SECONDS = 0.005  # what takes longer waits for its client, the database, or a thread
_DNS_SLOTS = 32  # of one application; a quarter of the resolver's passes (`common.dns.resolvers.MOST_PASSES`)
_MOST_WAITING_FOR_DNS = 128

FULL_QUEUE_SECONDS = 1.0
"""After which a request that met a full queue may come again."""

__all__ = ["FULL_QUEUE_SECONDS", "Admission", "TooManyWaiting"]


class _QueueOfEach:
    """A queue for each key that is in use. Mutable state: the queues, with the number of requests that use each."""

    def __init__(self, new_queue: Callable[[], FairQueue]) -> None:
        self._new_queue = new_queue
        self._used: dict[str, tuple[FairQueue, int]] = {}

    def __len__(self) -> int:
        return len(self._used)

    @asynccontextmanager
    async def slot(self, key: str, tenant: str) -> AsyncIterator[None]:
        """Wait for a slot and hold it. Raises: `TooManyWaiting`."""
        queue, users = self._used.get(key) or (self._new_queue(), 0)
        self._used[key] = (queue, users + 1)
        try:
            async with queue.slot(tenant):
                yield
        finally:
            queue, users = self._used.pop(key)
            if users > 1:
                self._used[key] = (queue, users - 1)


class Admission:
    """Bounds the requests that run at once. One instance per process. Mutable state: the queues."""

    def __init__(self) -> None:
        self._slots = _working_queue(_SLOTS)
        self._open = FairQueue(_OPEN, longest_hold_seconds=_OPEN_HOLD_SECONDS)
        self._verifications = _working_queue(_VERIFICATIONS)
        self._verifications_of_address = _QueueOfEach(lambda: _working_queue(_VERIFICATIONS))
        self._dns_of_application = _QueueOfEach(
            lambda: FairQueue(_DNS_SLOTS, most_waiting_per_tenant=_MOST_WAITING_FOR_DNS)
        )

    @asynccontextmanager
    async def verification_slot(self, address: str, named_application_id: str) -> AsyncIterator[None]:
        """Hold a place while a token or a client secret is verified. Raises: `TooManyWaiting`."""
        async with (
            self._verifications_of_address.slot(address, named_application_id[:64]),
            self._verifications.slot(address),
        ):
            yield

    @asynccontextmanager
    async def open_slot(self, address: str) -> AsyncIterator[None]:
        """Hold a slot for a request that needs no token: of a page, of `POST /token`, of the dashboard."""
        async with self._open.slot(address):
            yield

    @asynccontextmanager
    async def slot(self, application_id: str) -> AsyncIterator[None]:
        """Wait for a slot of the application and hold it. Raises: `TooManyWaiting`."""
        async with self._slots.slot(application_id):
            yield

    @asynccontextmanager
    async def dns_slot(self, application_id: str) -> AsyncIterator[None]:
        """Hold a slot, in place of `slot`, for a request that asks the DNS. Raises: `TooManyWaiting`."""
        async with self._dns_of_application.slot(application_id, application_id), self._slots.slot(application_id):
            yield


def _working_queue(capacity: int) -> FairQueue:
    return FairQueue(capacity, longest_hold_seconds=_HOLD_SECONDS, most_waiting_per_tenant=_MOST_WAITING)
