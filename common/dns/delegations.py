"""Remembers which servers zones have, for tasks that ask zones' own servers about many records.

For questions that a wrong memory cannot harm: a record that the remembered servers do not have is asked for again, of
the servers that a resolver names then. A delegation is kept for its TTL and no longer than the check interval, so a
record counts as present by a delegation no older than an answer of a resolver may be.
"""

from __future__ import annotations

from dataclasses import dataclass

from common.host_ports import HostPort

_MOST_ZONES = 20_000  # some 500 octets each


@dataclass(frozen=True, slots=True)
class Delegation:
    """The servers of `zone`, which hold for `seconds` from when they were found; 0 if that is not known."""

    zone: str
    servers: tuple[HostPort, ...]
    seconds: float = 0.0


class Delegations:
    """Remembers the delegations of zones. A process makes one.

    Mutable state: a delegation of each zone, and until when it holds, the oldest first.
    """

    def __init__(self, *, longest_seconds: float, most_zones: int = _MOST_ZONES) -> None:
        self._longest_seconds = longest_seconds
        self._most_zones = most_zones
        self._kept: dict[str, tuple[Delegation, float]] = {}

    def find(self, name: str, apex: str, now: float) -> Delegation | None:
        """Return the delegation of the nearest zone that `name` may be in, if it is remembered.

        None above `apex`: servers of a public suffix know only which servers to ask instead.
        """
        zone = name
        while zone == apex or zone.endswith(f".{apex}"):
            if zone in self._kept:
                delegation, until = self._kept[zone]
                if now < until:
                    return delegation
                del self._kept[zone]
            zone = zone.partition(".")[2]
        return None

    def remember(self, delegation: Delegation, now: float) -> None:
        """Remember a delegation that has servers, for as long as it holds."""
        if delegation.servers and delegation.seconds:
            self._kept.pop(delegation.zone, None)
            self._kept[delegation.zone] = delegation, now + min(delegation.seconds, self._longest_seconds)
            if len(self._kept) > self._most_zones:
                del self._kept[next(iter(self._kept))]
