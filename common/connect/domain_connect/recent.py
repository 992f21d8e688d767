"""Recent answers of Domain Connect providers, for domain checks: a provider is asked once in minutes.

A plan is never made by one: it asks anew.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

_FRESH_SECONDS: Final = 300.0
_SILENT_SECONDS: Final = 10.0
_MOST_KEPT: Final = 2000
_MOST_BYTES: Final = 4096
"""Most bytes of an answer that is kept: settings take some hundred."""


class RecentAnswers:
    """Keeps answers of providers for minutes. A process makes one.

    Mutable state: by URL, status and body, and until when they count; by host and port, until when it counts as
    silent. Of each at most `_MOST_KEPT`, the oldest dropped first. Times are the loop's.
    """

    def __init__(self) -> None:
        self._answers: OrderedDict[str, tuple[int, bytes, float]] = OrderedDict()
        self._silent_until: OrderedDict[str, float] = OrderedDict()

    def find(self, url: str, now: float) -> tuple[int, bytes] | None:
        """Return the status and body that are kept for a URL, if they still count."""
        status, body, until = self._answers.get(url, (0, b"", 0.0))
        return (status, body) if now < until else None

    def keep(self, url: str, status: int, body: bytes, now: float) -> None:
        """Keep an answer; an error of the server counts as long as its silence."""
        if len(body) <= _MOST_BYTES:
            seconds = _SILENT_SECONDS if status >= 500 else _FRESH_SECONDS
            self._answers[url] = status, body, now + seconds
            self._answers.move_to_end(url)
            if len(self._answers) > _MOST_KEPT:
                self._answers.popitem(last=False)

    def is_silent(self, authority: str, now: float) -> bool:
        """Return whether the host and port did not answer a moment ago."""
        return now < self._silent_until.get(authority, 0.0)

    def note_silence(self, authority: str, now: float) -> None:
        """Remember that a host and port did not answer."""
        self._silent_until[authority] = now + _SILENT_SECONDS
        self._silent_until.move_to_end(authority)
        if len(self._silent_until) > _MOST_KEPT:
            self._silent_until.popitem(last=False)
