"""The phases of an exchange, and the events that lead from one to the next: one table; and how an exchange ends.

    BUFFERING   the body is taken in first, where the application wants that (`edge.proxy.buffered_exchange`)
    WAITING     a lease is asked for
    SENT        the head is with the origin
    BODY        the final response's head has gone down to the client, and not all of its body came with it
    TUNNEL      101: bytes both ways, no HTTP
    FINISHED    reached once, from every other phase

The request's body flows through whatever the phase.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from edge.proxy.states import State, set_transitions


class Phase(State):
    """A phase, and what each event that can happen in it leads to."""

    __slots__ = ("on_buffer", "on_buffered", "on_end", "on_repeat", "on_respond", "on_send", "on_switch")

    on_buffer: Phase  # the body is to be taken in before a lease is asked for
    on_buffered: Phase  # the body is whole, or there is no room for more of it
    on_send: Phase  # a lease is there, and the head is sent
    on_repeat: Phase  # the request is sent again: the one retry, or for the other form of the root
    on_respond: Phase  # the final response's head goes down, without all of its body
    on_switch: Phase  # 101: the origin switches protocols
    on_end: Phase  # by any of the ways that `Ending` lists


WAITING: Final = Phase("WAITING")
BUFFERING: Final = Phase("BUFFERING")
SENT: Final = Phase("SENT")
BODY: Final = Phase("BODY")
TUNNEL: Final = Phase("TUNNEL")
FINISHED: Final = Phase("FINISHED")

TRANSITIONS: Final[Mapping[Phase, Mapping[str, Phase]]] = set_transitions(
    {
        WAITING: {"on_buffer": BUFFERING, "on_send": SENT, "on_end": FINISHED},
        BUFFERING: {"on_buffered": WAITING, "on_end": FINISHED},
        SENT: {"on_repeat": WAITING, "on_respond": BODY, "on_switch": TUNNEL, "on_end": FINISHED},
        BODY: {"on_end": FINISHED},
        TUNNEL: {"on_end": FINISHED},
        FINISHED: {},
    }
)


class Ending(IntEnum):
    """How an exchange ended, and so what becomes of the client's connection."""

    COMPLETE = 0  # the response went down to its last byte, and the connection can serve another request
    LAST = 1  # the same, or the tunnel's end; the connection closes
    REFUSED = 2  # nothing of a response went down: `Exchange.failure` is to be answered
    BROKEN_OFF = 3  # in the middle of a response: the client must see that it is incomplete
    BROKEN_OFF_BY_RESET = 4  # the same, where the end of the connection would look like the end of the response
    CANCELLED = 5  # by the client's side, which decides what follows


# By themselves: to look a member up in its class costs as much as two calls.
COMPLETE: Final = Ending.COMPLETE
LAST: Final = Ending.LAST
REFUSED: Final = Ending.REFUSED
BROKEN_OFF: Final = Ending.BROKEN_OFF
BROKEN_OFF_BY_RESET: Final = Ending.BROKEN_OFF_BY_RESET
CANCELLED: Final = Ending.CANCELLED
