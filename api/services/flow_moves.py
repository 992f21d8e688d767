"""A person's moves of a flow: which are possible, written once more where the flow has changed meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from api.errors import FLOW_BUSY, FLOW_STATE, Refused
from common.clock import Clock
from common.connect import flow_events
from common.db import connect_flows
from common.db.connect_flows import Changes, Flow, FlowChanged
from common.db.pool import Database
from common.flow_states import Move, NotPossible, State, next_state

MOST_TRIES = 3

_IN_WORDS: Mapping[Move, str] = MappingProxyType(
    {
        Move.CHOOSE: "take another domain",
        Move.INSPECT: "be planned again",
        Move.APPLY: "be applied",
        Move.HAND_OVER: "be applied",
        Move.SEARCH_AGAIN: "be checked",
        Move.ENROL_AGAIN: "be checked",
        Move.UNDO: "be undone",
        Move.CLOSE: "be closed",
    }
)
"""What a person asked of a flow."""


async def move_flow(
    database: Database,
    clock: Clock,
    flow: Flow,
    move: Move,
    changes: Callable[[Flow], Changes],
    *,
    to: State | None = None,
    completed: bool = False,
) -> Flow:
    """Write the move with its changes, and return the flow.

    `to`: the state, where the move goes on at once. `completed`: the person has done their part.

    Raises: `Refused`.
    """
    for _ in range(MOST_TRIES):
        state = possible_state(flow, move)
        try:
            async with database.transaction() as connection:
                moved = await connect_flows.move(connection, flow, **(changes(flow) | {"state": to or state}))
                return await flow_events.complete(connection, moved, clock.now()) if completed else moved
        except FlowChanged:
            async with database.connection() as connection:
                flow = await connect_flows.find(connection, flow.id, flow.application_id) or flow
    raise busy()


def possible_state(flow: Flow, move: Move) -> State:
    """Return the state after the move. Raises: `Refused`."""
    try:
        return next_state(flow.state, move)
    except NotPossible as error:
        words = _IN_WORDS.get(move, "do this")
        hint = f"a flow that is {flow.state.replace('_', ' ')} cannot {words}: read it again to see where it is"
        raise Refused(FLOW_STATE, code=f"flow_{flow.state}", hint=hint) from error


def busy() -> Refused:
    """Return the refusal of a request that met others at the flow."""
    return Refused(FLOW_BUSY, hint="the flow is changing: read it again")
