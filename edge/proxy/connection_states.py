"""The states of a client's connection, and what leads from one to the next.

    READING     a request is awaited, or its head is incomplete
                  a complete head that is forwarded                        → EXCHANGE
                  a complete head answered by the edge, keep-alive         → READING
                  a complete head answered by the edge, close; an error    → LINGERING; CLOSED after the input's end
                  end of input, idle or last-request deadline              → CLOSED
    EXCHANGE    one request is with an `Exchange`
                  response complete, or refused with keep-alive            → READING
                  response complete, close; an error                       → LINGERING; CLOSED if no input can follow
                  101 from the origin                                      → TUNNEL
                  the origin breaks off, or makes no progress              → CLOSED
    TUNNEL      bytes of both sides are passed on
                  either side ends                                         → LINGERING or CLOSED
    LINGERING   the last bytes were written; input is discarded until the client's end (`edge.transport.lingering`)
                  the client's end, or a bound of lingering                → CLOSED
    CLOSED      the transport is closing; unsent bytes may still leave

From every state the transport's loss leads to CLOSED. The tests check each change of state against `NEXT_STATES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final


class ConnectionState(IntEnum):
    READING = 0
    EXCHANGE = 1
    TUNNEL = 2
    LINGERING = 3
    CLOSED = 4


READING, EXCHANGE, TUNNEL, LINGERING, CLOSED = ConnectionState

NEXT_STATES: Final[Mapping[ConnectionState, frozenset[ConnectionState]]] = {
    READING: frozenset({READING, EXCHANGE, LINGERING, CLOSED}),
    EXCHANGE: frozenset({READING, TUNNEL, LINGERING, CLOSED}),
    TUNNEL: frozenset({LINGERING, CLOSED}),
    LINGERING: frozenset({CLOSED}),
    CLOSED: frozenset({CLOSED}),
}


class Input(IntEnum):
    """Whether bytes of the client arrive."""

    OPEN = 0
    PAUSED = 1  # by us
    ENDED = 2  # by the client


OPEN, PAUSED, ENDED = Input
