"""An order's journal in memory: what an issuer said, in its order."""

from __future__ import annotations

from collections.abc import Collection

from monitor.certificates.issuer import ChallengeKind, IssuanceFailed, Placed


class MemoryJournal:
    """`entries` are pairs of what was said and of whom; `refuses` holds the issuers whose budget is spent."""

    def __init__(self, placed: Placed | None = None, *, refuses: tuple[str, ...] = ()) -> None:
        self.placed = placed
        self.entries: list[tuple[str, str]] = []
        self.ways: tuple[ChallengeKind, ...] = ("http-01",)
        self.exempt: list[bool] = []  # of each reservation
        self._refuses = refuses

    async def publish_challenges(self, values: Collection[str]) -> None:
        self.entries += [("publish", value) for value in values]

    async def reserve(self, issuer: str, *, is_exempt: bool = False) -> None:
        if issuer in self._refuses:
            raise IssuanceFailed("the budget is spent", kind="rate_limited", retry_after_seconds=3600)
        self.entries.append(("reserve", issuer))
        self.exempt.append(is_exempt)

    async def give_back(self, issuer: str) -> None:
        self.entries.append(("give back", issuer))

    async def record_placed(self, placed: Placed) -> None:
        self.placed = placed
        self.entries.append(("placed", placed.url))

    async def record_failed_validation(self, placed: Placed) -> None:
        self.entries.append(("failed validation", placed.url))
