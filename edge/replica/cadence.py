"""When a replicator looks at the feed next: decisions only.

Where the server notifies, a look without a notification is a poll, in case one is lost; one follows soon after a
change, since a commit beside another one may not notify. A server that notifies nothing is polled as fast as changes
come: the pause is a fiftieth of the time since the last change, so a change is late by a fraction of the time that
nothing happened.
"""

from __future__ import annotations

_SOON_SECONDS = 0.1
_SHORTEST_SECONDS = 0.02
_LONGEST_SECONDS = 1.0
_SHARE = 0.02


class Cadence:
    """The pauses of one replicator. Times are monotonic seconds."""

    def __init__(self, poll_seconds: float, *, is_notified: bool) -> None:
        """`poll_seconds`: the pause where nothing has changed and the server notifies."""
        self._poll_seconds = poll_seconds
        self._is_notified = is_notified
        self._version: int | None = None
        self._changed_at = 0.0
        self._looked_at = 0.0

    def pause_seconds(self, now: float, version: int | None) -> float:
        """Return how long to wait for a notification. `version`: the one that is served now."""
        is_changed = version != self._version
        if is_changed:
            self._version, self._changed_at = version, now
        if self._is_notified:
            return min(_SOON_SECONDS, self._poll_seconds) if is_changed else self._poll_seconds
        return min(max((now - self._changed_at) * _SHARE, _SHORTEST_SECONDS), _LONGEST_SECONDS)

    def rest_seconds(self, now: float, pace_seconds: float) -> float:
        """Return how long to wait in any case. `pace_seconds`: the least time between two looks."""
        return max(0.0, self._looked_at + pace_seconds - now)

    def looks(self, now: float) -> None:
        """Note a look at the feed."""
        self._looked_at = now
