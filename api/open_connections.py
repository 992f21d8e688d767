"""Which connections the API keeps open: bounded in number, in all and by client address. Closes nothing itself.

Rules
    a new connection takes the place of one that waits for its client: for a request, for the rest of one, or for the
        response to be read. What the API itself works on is never evicted
    of these, the address with the most connections loses one, and of its connections the one that waits longest
    an address has at most three quarters of all; a trusted proxy stands for its clients and has no bound of its own
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class OpenConnection(Protocol):
    """A connection of the listener."""

    @property
    def waits_for_client(self) -> bool:
        """Return whether the client has yet to send or to take something."""


C = TypeVar("C", bound=OpenConnection)


@dataclass(frozen=True, slots=True)
class ConnectionDecision(Generic[C]):
    """Whether the connection is kept, and the one to close in its place."""

    is_admitted: bool
    evicted: C | None = None


class OpenConnections(Generic[C]):
    """The open connections of a listener, of which there is one per listener.

    Mutable state: the connections with their address (None for a trusted proxy) and when their last request ended,
    and the number of each address.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[C, tuple[str | None, float]] = {}
        self._by_address: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._held)

    def admit(self, connection: C, address: str | None, now: float) -> ConnectionDecision[C]:
        """Decide whether a new connection stays, and which other one ends for it."""
        evicted = None
        if address is not None and self._by_address[address] >= self._most - self._most // 4:
            evicted = self._slowest(address)
        elif len(self._held) >= self._most:
            evicted = self._slowest()
        else:
            self._add(connection, address, now)
            return ConnectionDecision(True)
        if evicted is None:
            return ConnectionDecision(False)
        self.remove(evicted)
        self._add(connection, address, now)
        return ConnectionDecision(True, evicted)

    def request_ended(self, connection: C, now: float) -> None:
        """Note when the last request of a connection ended."""
        if connection in self._held:
            self._held[connection] = (self._held[connection][0], now)

    def remove(self, connection: C) -> None:
        """Forget a connection, also one that was not admitted or was evicted."""
        address, _ = self._held.pop(connection, (None, 0.0))
        if address is not None:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]

    def _add(self, connection: C, address: str | None, now: float) -> None:
        self._held[connection] = (address, now)
        if address is not None:
            self._by_address[address] += 1

    def _slowest(self, of_address: str | None = None) -> C | None:
        waiting = (
            (-self._by_address[address] if address is not None else 0, since, connection)
            for connection, (address, since) in self._held.items()
            if (of_address is None or address == of_address) and connection.waits_for_client
        )
        return min(waiting, key=lambda each: each[:2], default=(0, 0.0, None))[2]
