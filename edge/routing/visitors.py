"""Which visitors of a domain are refused: by their address, and by how many requests they send.

Asked before the origin is, and before any other rule but an operator's block and the ACME challenge; only of domains
that have such rules. What one look costs does not depend on how many networks or clients there are.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Final

from common.ip_addresses import limit_key, parse_client_address
from common.visitors import NetworkSet
from edge.http.error_responses import ADDRESS_REFUSED, TOO_MANY_REQUESTS, ErrorResponse

_MOST_CLIENTS: Final = 100_000


@dataclass(frozen=True, slots=True)
class VisitorRules:
    """Rules of one domain, compiled once for its route. `allowed`: None for every address."""

    allowed: NetworkSet | None
    denied: NetworkSet
    requests: int = 0  # 0: no limit
    seconds: int = 1


class VisitRates:
    """How many requests each client of each domain has sent lately, in one worker.

    Mutable state: by domain and client, when its whole allowance is back (the generic cell rate algorithm). Of more
    than `most`, those that sent nothing for longest are forgotten, and begin with a whole allowance.
    """

    __slots__ = ("_full_at", "_most", "_now")

    def __init__(self, now: Callable[[], float], most: int = _MOST_CLIENTS) -> None:
        self._now = now
        self._most = most
        self._full_at: OrderedDict[tuple[str, str], float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._full_at)

    def take(self, domain: str, client: str, requests: int, seconds: int) -> float:
        """Count a request. Return 0, or the seconds until the client may send it, and then count none."""
        key, now, interval = (domain, client), self._now(), seconds / requests
        full_at = max(self._full_at.get(key, now), now)
        wait = full_at - now - (seconds - interval)
        if wait > 1e-9:
            return wait
        self._full_at[key] = full_at + interval
        self._full_at.move_to_end(key)
        if len(self._full_at) > self._most:
            self._full_at.popitem(last=False)
        return 0.0


def refuse_visitor(rules: VisitorRules, rates: VisitRates, domain: str, address: str) -> ErrorResponse | None:
    """Return what a request from this address is answered instead of being forwarded, if it is refused."""
    client = parse_client_address(address)
    if client is None or client in rules.denied or (rules.allowed is not None and client not in rules.allowed):
        return ADDRESS_REFUSED
    if rules.requests:
        wait = rates.take(domain, limit_key(str(client)), rules.requests, rules.seconds)
        if wait:
            return TOO_MANY_REQUESTS._replace(retry_after_seconds=ceil(wait))
    return None
