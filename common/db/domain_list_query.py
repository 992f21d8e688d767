"""Which part of the list of domains is asked for: the terms of `common.db.domain_list`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypeAlias, get_args

Product: TypeAlias = Literal["power", "secure", "monitor"]
Status: TypeAlias = Literal["active", "problem"]
Sort: TypeAlias = Literal["name", "-name", "added", "-added", "expiry", "-expiry", "status", "-status"]
PRODUCTS: tuple[Product, ...] = get_args(Product)
STATUSES: tuple[Status, ...] = get_args(Status)
SORTS: tuple[Sort, ...] = get_args(Sort)

NEVER = datetime.max  # noqa: DTZ901 - as the driver reads it
"""The moment ``infinity``, without a time zone."""


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """How far a search goes before it answers a part, in names but for `index_seconds`."""

    window: int = 2_000
    walked: int = 10_000
    fewest_own: int = 10
    """The names of each of several applications that a walk reads at least."""
    indexed: int = 1_000
    index_seconds: float = 0.05
    fewest_characters: int = 3
    """The length of the shortest text that the index finds."""


@dataclass(frozen=True, slots=True)
class ListKey:
    """The place where a part of the list ends: the next one begins after it. `lapses_at` may be infinite (`NEVER`)."""

    name: str
    product: Product
    application_id: str
    added_at: datetime
    lapses_at: datetime
    is_well: bool


SEARCH_LIMITS: Final = SearchLimits()


@dataclass(frozen=True, slots=True)
class DomainListQuery:
    """The part of the list to be read.

    `text`: a part of the name, in lower case; `note`: in its place, a key and a text of the domains' metadata, which
    are listed by name. `sort`: by ``expiry``, what is inactive comes first, then what lapses soonest, and at the end
    what has no certificate; by ``status``, what needs attention comes first.
    """

    applications: Sequence[str] | None
    text: str = ""
    product: Product | None = None
    status: Status | None = None
    sort: Sort = "name"
    after: ListKey | None = None
    limit: int = 50
    limits: SearchLimits = SEARCH_LIMITS
    note: tuple[str, str] | None = None

    @property
    def is_of_many(self) -> bool:
        """Whether the list is of several applications, but not of every one."""
        return self.applications is not None and len(self.applications) > 1
