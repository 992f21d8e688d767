"""The origin of an enrolled name: who asks whether it answers, and how that fails."""

from __future__ import annotations

from typing import Protocol

from common.db.applications import Application
from common.errors import FrontageError
from common.origin_faults import WORDS, OriginFault

LONGEST_SECONDS = 5.0
"""How long an origin is waited for, as an edge's connecting."""


class Unreachable(FrontageError):
    """The origin did not answer; the text describes the fault, with `detail` in parentheses, and names no address."""

    def __init__(self, fault: OriginFault, detail: str = "") -> None:
        super().__init__(WORDS[fault].asked + (f" ({detail})" if detail else ""))
        self.fault: OriginFault = fault


class AskOrigin(Protocol):
    """Asks origins whether they answer; `common.origin_probe` does it over HTTP."""

    async def __call__(self, text: str, domain: str, application: Application) -> object:
        """Ask the origin at the URL `text` for `domain`, the way `application` has set. Raises: `Unreachable`."""
