"""What the edge's two state machines have in common: `edge.proxy.connection_states` and `edge.proxy.exchange_states`.

A state has one attribute for each event that can happen in it: the state that the event leads to. Its owner moves on
by ``self.state = self.state.on_forward``, and assigns no state otherwise. A request makes five such moves, and reading
an attribute costs a tenth of what a call of ``advance(state, event)`` does: calls would be 4 % of all instructions.

An event that cannot happen in a state has no attribute there. Reading it raises `AttributeError`: the event loop logs
the error with the connection and closes it, and the connection's loss ends the exchange.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar


class State:
    """A state of one machine; equal to itself only."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


S = TypeVar("S", bound=State)


def set_transitions(table: Mapping[S, Mapping[str, S]]) -> Mapping[S, Mapping[str, S]]:
    """Give each state of the table its events, and return the table."""
    for state, events in table.items():
        for event, following in events.items():
            setattr(state, event, following)
    return table
