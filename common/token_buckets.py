"""Token buckets: how much each of many keys may do in a time.

The API limits requests by them, the edge questions to its DNS.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

_MOST_BUCKETS = 100_000


class TokenBuckets:
    """One bucket a key, made full at its first use. Beyond `most` the longest unused one is dropped.

    Mutable state: by key, the tokens there were and when.
    """

    def __init__(self, per_second: float, burst: float, *, most: int = _MOST_BUCKETS) -> None:
        self._per_second = per_second
        self._burst = burst
        self._most = most
        self._buckets: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, key: Hashable, now: float) -> float:
        """Take a token. Return 0, or the seconds until there is one, and then takes none."""
        wait = self.wait_seconds(key, now)
        if not wait:
            self._buckets[key] = (self._tokens(key, now) - 1.0, now)
            self._buckets.move_to_end(key)
            if len(self._buckets) > self._most:
                self._buckets.popitem(last=False)
        return wait

    @property
    def burst(self) -> int:
        """Return how many requests may come at once."""
        return int(self._burst)

    @property
    def refill_seconds(self) -> int:
        """Return the seconds in which a whole burst comes back."""
        return round(self._burst / self._per_second)

    def left(self, key: Hashable, now: float) -> int:
        """Return the whole tokens that are there."""
        return int(self._tokens(key, now))

    def wait_seconds(self, key: Hashable, now: float) -> float:
        """Return the seconds until there is a token; 0 if there is one."""
        return max(0.0, (1.0 - self._tokens(key, now)) / self._per_second)

    def _tokens(self, key: Hashable, now: float) -> float:
        tokens, at = self._buckets.get(key, (self._burst, now))
        return min(self._burst, tokens + (now - at) * self._per_second)
