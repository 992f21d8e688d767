"""Bounds the connections of a worker, in all and by client: bookkeeping only, two dictionary operations a connection.

The protocol object that receives `connection_lost` holds the connection's place: it calls `ConnectionLimits.admit` once
and `leave` once, also after a refusal. A connection handed to another protocol object leaves and is admitted again in
the same turn of the loop, so no other connection can take its place. This module must not touch sockets: the response
to a refused client is its port's business.
"""

from __future__ import annotations

import resource

from common.ip_addresses import Network, limit_key
from common.metrics import Family, Labels
from edge.http.forwarded import address_of, is_in

# How many refused connections get an error response at a time; the others are aborted.
_MAX_ANSWERED = 256
_SPARE_DESCRIPTORS = 64  # listeners, the replica, logs, look-ups


class ConnectionLimits:
    """Counts a worker's connections.

    A client is an IPv4 address or an IPv6 /64; trusted proxies stand for many, and have no cap.
    """

    __slots__ = (
        "_by_client",
        "_in_all",
        "_per_client",
        "_refused",
        "_refused_now",
        "_trusted",
        "malformed_headers",
        "open_count",
    )

    def __init__(
        self, *, in_all: int = 2**31, per_client: int = 2**31, trusted_proxies: tuple[Network, ...] = ()
    ) -> None:
        self._in_all = in_all
        self._per_client = per_client
        self._trusted = trusted_proxies
        self._by_client: dict[str, int] = {}
        self._refused = {"in_all": 0, "per_client": 0}
        self._refused_now = 0
        self.open_count = 0
        self.malformed_headers = 0  # malformed PROXY headers; counted by `edge.transport.proxy_protocol`

    def __repr__(self) -> str:
        return f"<{self.open_count} open of {len(self._by_client)} clients, {self._refused_now} turned away now>"

    def admit(self, peername: object) -> str | None:
        """Take a place. Return it, to be given to `leave`; None: there is none for this client."""
        if self.open_count >= self._in_all:
            self._count_refused("in_all")
            return None
        client = client_key(peername)
        held = self._by_client.get(client, 0)
        if held >= self._per_client and not self._is_exempt(peername):
            self._count_refused("per_client")
            return None
        self.open_count += 1
        self._by_client[client] = held + 1
        return client

    def leave(self, place: str | None) -> None:
        """Give up a place; None is that of a refused connection."""
        if place is None:
            self._refused_now -= 1
            return
        self.open_count -= 1
        held = self._by_client[place]
        if held > 1:
            self._by_client[place] = held - 1
        else:
            del self._by_client[place]

    @property
    def may_answer(self) -> bool:
        """Return whether a connection refused now may get an error response, instead of being aborted."""
        return self._refused_now <= _MAX_ANSWERED

    def families(self) -> list[Family]:
        """Return the metrics."""
        samples: dict[Labels, list[float]] = {(cap,): [float(count)] for cap, count in self._refused.items()}
        return [
            Family("frontage_edge_turned_away", "Connections over a cap.", "counter", ("cap",), samples=samples),
            Family.of(
                "frontage_edge_malformed_proxy_headers",
                "Connections of trusted proxies cut off for it.",
                "counter",
                self.malformed_headers,
            ),
        ]

    def _count_refused(self, cap: str) -> None:
        self._refused[cap] += 1
        self._refused_now += 1

    def _is_exempt(self, peername: object) -> bool:
        return bool(self._trusted) and is_in(address_of(peername), self._trusted)


def client_key(peername: object) -> str:
    """Return the key that a connection counts against, from its transport's peername."""
    return limit_key(address_of(peername))


def room_for_connections() -> int:
    """Return how many clients this process' descriptors allow for: each may need a connection to an origin."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2**31 if soft == resource.RLIM_INFINITY else max(1, (soft - _SPARE_DESCRIPTORS) // 2)
