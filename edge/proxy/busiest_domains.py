"""Finds the domains that are asked for most, within fixed memory, however many there are.

A space-saving summary that forgets: rates are averaged over about a minute, a fixed number of domains is kept, and one
that comes in anew is granted the highest rate that was ever let go, itself fading: so a rate is never shown too low.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import nlargest
from math import exp
from typing import Final

_MEAN_SECONDS: Final = 60.0
_KEPT: Final = 200
_SHOWN: Final = 20
_NOTICEABLE: Final = 0.001  # requests a second


class BusiestDomains:
    """Keeps a worker's rates. Fed by `edge.proxy.domain_traffic`."""

    __slots__ = ("_floor", "_rates")

    def __init__(self) -> None:
        self._rates: dict[str, float] = {}  # requests a second
        self._floor = 0.0

    def settle(self, seconds: float, counted: Mapping[str, int]) -> None:
        """Take in the requests of each domain in the `seconds` since this was last called."""
        fade = exp(-seconds / _MEAN_SECONDS)
        self._floor *= fade
        rates = {domain: rate * fade for domain, rate in self._rates.items()}
        for domain, count in counted.items():
            rates[domain] = rates.get(domain, self._floor) + count / _MEAN_SECONDS
        if len(rates) > _KEPT:
            ordered = nlargest(len(rates), rates.items(), key=lambda item: item[1])
            self._floor = max(self._floor, ordered[_KEPT][1])
            rates = dict(ordered[:_KEPT])
        self._rates = rates

    def top(self) -> dict[str, float]:
        """Return the requests a second of the domains that are asked for most, most first."""
        shown = nlargest(_SHOWN, self._rates.items(), key=lambda item: item[1])
        return {domain: round(rate, 3) for domain, rate in shown if rate >= _NOTICEABLE}
