"""Admission: shares this process between the applications, so that none waits behind another's slow requests.

Rules
    a request holds a slot for `_HOLD_SECONDS` at most: a slot is for work, and most of a long request is waiting
    a request that asks the DNS also holds one of its application's own slots until it ends: questions to servers that
        do not answer take seconds each, and the resolver has a bounded number of passes
    tokens are verified in turns too: of the application that the request names, from its address, so that a request
        which names another's application takes no turn of it
    an application with too many requests waiting is answered 429 for further ones
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from common.fair_queue import FairQueue, TooManyWaiting

_SLOTS = 32
_HOLD_SECONDS = 0.1
_MOST_WAITING = 200
_VERIFICATIONS = 8  # each needs a connection of the pool
_DNS_SLOTS = 32  # of one application; a quarter of the resolver's passes (`common.dns.resolvers.MOST_PASSES`)
_MOST_WAITING_FOR_DNS = 128

__all__ = ["Admission", "TooManyWaiting"]


class Admission:
    """One a process. Mutable state: the queues, and those of the applications that ask the DNS now, with the number of
    requests that use each."""

    def __init__(self) -> None:
        self._slots = FairQueue(_SLOTS, longest_hold_seconds=_HOLD_SECONDS, most_waiting_per_tenant=_MOST_WAITING)
        self._verifications = FairQueue(
            _VERIFICATIONS, longest_hold_seconds=_HOLD_SECONDS, most_waiting_per_tenant=_MOST_WAITING
        )
        self._dns: dict[str, tuple[FairQueue, int]] = {}

    @asynccontextmanager
    async def verification_slot(self, address: str, named_application_id: str) -> AsyncIterator[None]:
        """For the time in which a token is verified. Raises: `TooManyWaiting`."""
        async with self._verifications.slot(f"{address} {named_application_id[:64]}"):
            yield

    @asynccontextmanager
    async def slot(self, application_id: str) -> AsyncIterator[None]:
        """Raises: `TooManyWaiting`."""
        async with self._slots.slot(application_id):
            yield

    @asynccontextmanager
    async def dns_slot(self, application_id: str) -> AsyncIterator[None]:
        """For a request that asks the DNS, in place of `slot`. Raises: `TooManyWaiting`."""
        queue = self._enter(application_id)
        try:
            async with queue.slot(application_id), self._slots.slot(application_id):
                yield
        finally:
            self._leave(application_id)

    def _enter(self, application_id: str) -> FairQueue:
        queue, users = self._dns.get(application_id) or (_dns_queue(), 0)
        self._dns[application_id] = (queue, users + 1)
        return queue

    def _leave(self, application_id: str) -> None:
        queue, users = self._dns.pop(application_id)
        if users > 1:
            self._dns[application_id] = (queue, users - 1)


def _dns_queue() -> FairQueue:
    return FairQueue(_DNS_SLOTS, most_waiting_per_tenant=_MOST_WAITING_FOR_DNS)
