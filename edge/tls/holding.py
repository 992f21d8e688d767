"""Holds handshakes that wait for a certificate while its order runs.

Bookkeeping with three caps, so that names being set up cannot tie up a worker: per domain, per client
(an IPv4 address or an IPv6 /64) and in all. It decides no outcome and owns no timer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class Holdable(Protocol):
    """What holding must know of a handshake."""

    @property
    def client(self) -> str:
        """Return the client, as `edge.transport.connection_limits.client_key` names it."""


H = TypeVar("H", bound=Holdable)


@dataclass(frozen=True, slots=True)
class HoldCaps:
    """How many handshakes may be held."""

    per_domain: int = 64
    per_client: int = 32
    in_all: int = 1024


class Held(Generic[H]):
    """The handshakes held now. Owned by `TlsShared`; empty again when every one of them was removed."""

    def __init__(self, caps: HoldCaps) -> None:
        self._caps = caps
        self._by_domain: dict[str, dict[H, None]] = {}  # a dict for its order: first come, first served
        self._by_client: Counter[str] = Counter()
        self._domains: dict[H, str] = {}

    def __len__(self) -> int:
        return len(self._domains)

    def __contains__(self, handshake: H) -> bool:
        return handshake in self._domains

    def add(self, handshake: H, domain: str) -> bool:
        """Hold a handshake that is not held, for the certificate of `domain`. Return False where a cap is reached."""
        caps = self._caps
        here = self._by_domain.get(domain, {})
        if (
            len(self) >= caps.in_all
            or len(here) >= caps.per_domain
            or self._by_client[handshake.client] >= caps.per_client
        ):
            return False
        self._by_domain.setdefault(domain, {})[handshake] = None
        self._domains[handshake] = domain
        self._by_client[handshake.client] += 1
        return True

    def remove(self, handshake: H) -> None:
        """Remove a handshake, if it is held."""
        if handshake not in self:
            return
        domain = self._domains.pop(handshake)
        here = self._by_domain[domain]
        del here[handshake]
        if not here:
            del self._by_domain[domain]
        self._by_client[handshake.client] -= 1
        if not self._by_client[handshake.client]:
            del self._by_client[handshake.client]

    def domains(self) -> list[str]:
        """Return the domains that handshakes are held for."""
        return list(self._by_domain)

    def of(self, domain: str) -> list[H]:
        """Return the handshakes that are held for the domain."""
        return list(self._by_domain.get(domain, ()))
