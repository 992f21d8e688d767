"""The budget: what an issuer asks before it orders at an authority with limits, and tells afterwards.

One `Budget` belongs to one claimed order, for one attempt. It is how the ledger (`common.db.ca_ledger`) and the order's
own row learn of what happens at the authority, so that a monitor that dies leaves neither a lie in the ledger nor an
order at the authority that nobody finds again. An issuer without limits leaves it alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Begun:
    """An order that an earlier attempt left at an authority, for the very same signing request."""

    issuer: str
    order_url: str


@dataclass(frozen=True, slots=True)
class Replaced:
    """The certificate a renewal replaces (RFC 9773 §5), and who issued it. `chain` is PEM, leaf first."""

    issuer: str
    chain: str


class Budget(Protocol):
    """All of it fails closed: nothing is sent while the ledger cannot be asked. Raises: `DatabaseUnavailable`,
    `FenceLost` when the order is another monitor's by now."""

    @property
    def begun(self) -> Begun | None:
        """Ask that issuer about it before ordering anew; it may be pending, ready, valid or gone."""

    @property
    def replaces(self) -> Replaced | None: ...

    async def reserve(self, issuer: str, *, is_exempt: bool = False) -> None:
        """Before each new order. `is_exempt`: the authority does not count it, being a renewal it suggested.

        Raises: `IssuanceFailed` of kind ``rate_limited`` when nothing is left, with the time until something is.
        """

    async def settle(self, issuer: str, order_url: str) -> None:
        """The authority has made the order: it counts, and `begun` is how the next attempt finds it."""

    async def give_back(self, issuer: str) -> None:
        """The order surely never was made: nothing was sent, or the authority refused it."""

    async def record_failed_validation(self, issuer: str) -> None:
        """The authority looked and did not find the challenge; the order is over and not `begun` any more."""


class Unlimited:
    """A budget that grants everything and remembers nothing."""

    begun: Begun | None = None
    replaces: Replaced | None = None

    async def reserve(self, issuer: str, *, is_exempt: bool = False) -> None: ...

    async def settle(self, issuer: str, order_url: str) -> None: ...

    async def give_back(self, issuer: str) -> None: ...

    async def record_failed_validation(self, issuer: str) -> None: ...
