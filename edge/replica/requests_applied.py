"""Which requests to the API caused the changes that are being applied, for the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from common.db.feed import FeedEntry

_MOST_REQUESTS = 100
_MOST_KEYS = 8


class RequestsApplied:
    """Collects the requests of one application of changes.

    Bounded: a replica that was away for long has many to apply.
    """

    def __init__(self) -> None:
        self._keys: dict[str, list[str]] = {}

    def note(self, entries: Iterable[FeedEntry]) -> None:
        """Remember the first keys of each of the first requests."""
        for entry in entries:
            if entry.request_id is None or (entry.request_id not in self._keys and len(self._keys) == _MOST_REQUESTS):
                continue
            keys = self._keys.setdefault(entry.request_id, [])
            if len(keys) < _MOST_KEYS:
                keys.append(f"{entry.kind} {entry.key}")

    def shown(self) -> Iterator[tuple[str, list[str]]]:
        """Yield each request's id and the kinds and keys of its changes."""
        yield from self._keys.items()
