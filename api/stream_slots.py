"""Slots of event streams in one process, shared out so that no tenant keeps the streams of others away.

A stream holds a socket for minutes. While every slot is taken, a tenant with few streams gets the oldest slot of the
tenant with the most; the stream that had it ends, and its client connects again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from common.errors import FrontageError


class NoSlotFree(FrontageError):
    """The tenant has as many streams as it may have, or as any other while all slots are taken."""


class StreamSlots:
    """Mutable state: by tenant, the call that ends each stream, the oldest first."""

    def __init__(self, *, most: int, most_of_tenant: int) -> None:
        self._most = most
        self._most_of_tenant = most_of_tenant
        self._ends: dict[str, dict[object, Callable[[], None]]] = {}

    @contextmanager
    def taken(self, tenant: str, end: Callable[[], None]) -> Iterator[None]:
        """Hold a slot. `end` is called if it goes to another tenant. Raises: `NoSlotFree`."""
        has = len(self._ends.get(tenant, ()))
        if has >= self._most_of_tenant:
            raise NoSlotFree
        if sum(map(len, self._ends.values())) >= self._most:
            self._take_from_largest(has)
        key = object()
        self._ends.setdefault(tenant, {})[key] = end
        try:
            yield
        finally:
            self._release(tenant, key)

    def _take_from_largest(self, has: int) -> None:
        """End the oldest stream of the largest tenant, for a tenant that `has` so many.

        Raises: `NoSlotFree` if none would be left with as many as it then has.
        """
        largest = max(self._ends, key=lambda tenant: len(self._ends[tenant]))
        if len(self._ends[largest]) <= has + 1:
            raise NoSlotFree
        key, end = next(iter(self._ends[largest].items()))
        self._release(largest, key)
        end()

    def _release(self, tenant: str, key: object) -> None:
        """Nothing if the slot was taken from the stream."""
        held = self._ends.get(tenant, {})
        held.pop(key, None)
        if not held:
            self._ends.pop(tenant, None)
