"""How many connections a worker holds, in all and by client: bookkeeping only, two dictionary operations a connection.

The protocol object that receives `connection_lost` holds the connection's place: it calls `ConnectionLimits.admit` once
and `leave` once, also after a refusal. A connection handed to another protocol object leaves and is admitted again in
the same turn of the loop, so no other connection can take its place. This module must not touch sockets: the response
to a refused client is its port's business.
"""

from __future__ import annotations

import resource

from common.ip_addresses import limit_key
from common.metrics import Family, Labels
from common.settings import Networks
from edge.http.forwarded import address_of, is_in

# How many refused connections get an error response at a time; the others are aborted.
_MAX_TOLD = 256
_SPARE_DESCRIPTORS = 64  # listeners, the replica, logs, look-ups


class ConnectionLimits:
    """One a worker. A client is an IPv4 address or an IPv6 /64; trusted proxies stand for many, and have no cap."""

    __slots__ = (
        "_by_client",
        "_in_all",
        "_per_client",
        "_trusted",
        "_turned_away",
        "_turned_away_now",
        "malformed_headers",
        "open_count",
    )

    def __init__(self, *, in_all: int = 2**31, per_client: int = 2**31, trusted_proxies: Networks = ()) -> None:
        self._in_all = in_all
        self._per_client = per_client
        self._trusted = trusted_proxies
        self._by_client: dict[str, int] = {}
        self._turned_away = {"in_all": 0, "per_client": 0}
        self._turned_away_now = 0
        self.open_count = 0
        self.malformed_headers = 0  # malformed PROXY headers; counted by `edge.transport.proxy_protocol`

    def __repr__(self) -> str:
        return f"<{self.open_count} open of {len(self._by_client)} clients, {self._turned_away_now} turned away now>"

    def admit(self, peername: object) -> str | None:
        """The place taken, to be given to `leave`; None: there is none for this client."""
        if self.open_count >= self._in_all:
            self._turn_away("in_all")
            return None
        client = client_key(peername)
        held = self._by_client.get(client, 0)
        if held >= self._per_client and not self._is_exempt(peername):
            self._turn_away("per_client")
            return None
        self.open_count += 1
        self._by_client[client] = held + 1
        return client

    def leave(self, place: str | None) -> None:
        if place is None:
            self._turned_away_now -= 1
            return
        self.open_count -= 1
        held = self._by_client[place]
        if held > 1:
            self._by_client[place] = held - 1
        else:
            del self._by_client[place]

    @property
    def may_answer(self) -> bool:
        """Whether a connection refused now may get an error response, instead of being aborted."""
        return self._turned_away_now <= _MAX_TOLD

    def families(self) -> list[Family]:
        samples: dict[Labels, list[float]] = {(cap,): [float(count)] for cap, count in self._turned_away.items()}
        return [
            Family("frontage_edge_turned_away", "Connections over a cap.", "counter", ("cap",), samples=samples),
            Family.of(
                "frontage_edge_malformed_proxy_headers",
                "Connections of trusted proxies cut off for it.",
                "counter",
                self.malformed_headers,
            ),
        ]

    def _turn_away(self, cap: str) -> None:
        self._turned_away[cap] += 1
        self._turned_away_now += 1

    def _is_exempt(self, peername: object) -> bool:
        return bool(self._trusted) and is_in(address_of(peername), self._trusted)


def client_key(peername: object) -> str:
    """Whom a connection counts against, from its transport's peername."""
    return limit_key(address_of(peername))


def room_for_connections() -> int:
    """What this process' descriptors allow for: each client's connection may need one to an origin."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2**31 if soft == resource.RLIM_INFINITY else max(1, (soft - _SPARE_DESCRIPTORS) // 2)
