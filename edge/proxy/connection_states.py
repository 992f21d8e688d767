"""The states of a client's connection, and the events that lead from one to the next: one table.

READING     a request is awaited, or its head is incomplete; responses of the edge itself leave from here
EXCHANGE    one request is with an `Exchange`
TUNNEL      bytes of both sides are passed on
LINGERING   the last bytes were written; input is discarded until the client's end (`edge.transport.lingering`)
CLOSED      the transport is closing; unsent bytes may still leave
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from edge.proxy.states import State, set_transitions


class ConnectionState(State):
    """A state, and what each event that can happen in it leads to."""

    __slots__ = ("on_abort", "on_close", "on_finish", "on_forward", "on_linger", "on_loss", "on_tunnel")

    on_forward: ConnectionState  # a request is given to an exchange
    on_finish: ConnectionState  # the exchange is over, and the connection can serve another
    on_tunnel: ConnectionState  # the origin switched protocols
    on_linger: ConnectionState  # the last response was written, and input of the client may be on its way
    on_close: ConnectionState  # the same, and no input can follow; or a client is waited for no longer
    on_abort: ConnectionState  # the connection ends at once, with whatever is under way
    on_loss: ConnectionState  # the transport is gone


READING: Final = ConnectionState("READING")
EXCHANGE: Final = ConnectionState("EXCHANGE")
TUNNEL: Final = ConnectionState("TUNNEL")
LINGERING: Final = ConnectionState("LINGERING")
CLOSED: Final = ConnectionState("CLOSED")

TRANSITIONS: Final[Mapping[ConnectionState, Mapping[str, ConnectionState]]] = set_transitions(
    {
        READING: {
            "on_forward": EXCHANGE,
            "on_linger": LINGERING,
            "on_close": CLOSED,
            "on_abort": CLOSED,
            "on_loss": CLOSED,
        },
        EXCHANGE: {
            "on_finish": READING,
            "on_tunnel": TUNNEL,
            "on_linger": LINGERING,
            "on_close": CLOSED,
            "on_abort": CLOSED,
            "on_loss": CLOSED,
        },
        TUNNEL: {"on_linger": LINGERING, "on_close": CLOSED, "on_abort": CLOSED, "on_loss": CLOSED},
        LINGERING: {"on_abort": CLOSED, "on_loss": CLOSED},
        CLOSED: {"on_abort": CLOSED, "on_loss": CLOSED},
    }
)


class Input(IntEnum):
    """Whether bytes of the client arrive."""

    OPEN = 0
    PAUSED = 1  # by us
    ENDED = 2  # by the client


# By themselves: to look a member up in its class costs as much as two calls.
OPEN: Final = Input.OPEN
PAUSED: Final = Input.PAUSED
ENDED: Final = Input.ENDED
