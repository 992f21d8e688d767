"""The states of a flow, and the moves between them: one table.

Who makes a move
    person      a request to the API
    api         the API process that writes into the zone, under a lease; if it dies, a monitor takes over
    monitor     due work (`monitor.connect`)
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from common.errors import FrontageError


class State(StrEnum):
    """Where a flow stands."""

    CHOOSING = "choosing"  # no domain yet
    CHECKING = "checking"  # provider, zone and ways are being looked at
    UNCHECKED = "unchecked"  # the DNS could not be asked: `error` holds the reason; plan looks again
    PLANNED = "planned"  # the plan is there, nothing of it is written
    APPLYING = "applying"  # the plan is being written
    HALTED = "halted"  # writing or taking back ended before its end: `journal` holds what is in the zone
    WAITING = "waiting"  # the person makes the change, or the provider does; records are looked for
    PROPAGATING = "propagating"  # written and read back; records are looked for
    ENROLLING = "enrolling"  # the records are live; products are being enrolled
    FINISHED = "finished"
    TIMED_OUT = "timed_out"  # the records were not live in time
    UNDOING = "undoing"  # what was written is being taken back
    UNDONE = "undone"
    CLOSED = "closed"  # given up before anything was written


class Move(StrEnum):
    """A change of a flow's state."""

    CHOOSE = "choose"  # a domain; person
    INSPECT = "inspect"  # the zone, once more; person
    PLAN = "plan"  # monitor
    INSPECTION_FAILED = "inspection_failed"  # monitor
    APPLY = "apply"  # person
    HAND_OVER = "hand_over"  # to the person's hands, or to a Domain Connect provider; person
    WRITTEN = "written"  # api, or monitor
    HALT = "halt"  # api, or monitor
    RECORDS_FOUND = "records_found"  # monitor
    TIME_OUT = "time_out"  # monitor
    SEARCH_AGAIN = "search_again"  # for the records; person
    FINISH = "finish"  # monitor
    ENROL_AGAIN = "enrol_again"  # what failed; person
    UNDO = "undo"  # person
    TAKEN_BACK = "taken_back"  # api, or monitor
    CLOSE = "close"  # person, or monitor after a day without a change
    END = "end"  # what the flow came from was taken back: its link, its configuration, its secret; monitor


_S = State
_BEFORE_WRITING = (_S.CHOOSING, _S.CHECKING, _S.UNCHECKED, _S.PLANNED)

TRANSITIONS: Mapping[Move, tuple[frozenset[State], State]] = MappingProxyType(
    {
        Move.CHOOSE: (frozenset(_BEFORE_WRITING), _S.CHECKING),
        Move.INSPECT: (
            frozenset({_S.CHECKING, _S.UNCHECKED, _S.PLANNED, _S.HALTED, _S.WAITING, _S.UNDONE}),
            _S.CHECKING,
        ),
        Move.PLAN: (frozenset({_S.CHECKING}), _S.PLANNED),
        Move.INSPECTION_FAILED: (frozenset({_S.CHECKING}), _S.UNCHECKED),
        Move.APPLY: (frozenset({_S.PLANNED}), _S.APPLYING),
        Move.HAND_OVER: (frozenset({_S.PLANNED}), _S.WAITING),
        Move.WRITTEN: (frozenset({_S.APPLYING}), _S.PROPAGATING),
        Move.HALT: (frozenset({_S.APPLYING, _S.UNDOING}), _S.HALTED),
        Move.RECORDS_FOUND: (frozenset({_S.WAITING, _S.PROPAGATING}), _S.ENROLLING),
        Move.TIME_OUT: (frozenset({_S.WAITING, _S.PROPAGATING}), _S.TIMED_OUT),
        Move.SEARCH_AGAIN: (frozenset({_S.WAITING, _S.PROPAGATING, _S.TIMED_OUT}), _S.PROPAGATING),
        Move.FINISH: (frozenset({_S.ENROLLING}), _S.FINISHED),
        Move.ENROL_AGAIN: (frozenset({_S.ENROLLING, _S.FINISHED}), _S.ENROLLING),
        Move.UNDO: (
            frozenset({_S.UNCHECKED, _S.PLANNED, _S.HALTED, _S.PROPAGATING, _S.FINISHED, _S.TIMED_OUT, _S.CLOSED}),
            _S.UNDOING,
        ),
        Move.TAKEN_BACK: (frozenset({_S.UNDOING}), _S.UNDONE),
        Move.CLOSE: (frozenset(_BEFORE_WRITING), _S.CLOSED),
        Move.END: (frozenset({*_BEFORE_WRITING, _S.WAITING, _S.PROPAGATING, _S.ENROLLING}), _S.CLOSED),
    }
)
"""Where each move may begin, and where it leads."""

ENDED = frozenset({_S.FINISHED, _S.TIMED_OUT, _S.UNDONE, _S.CLOSED})
"""Nothing happens by itself any more."""


class NotPossible(FrontageError):
    """The flow is in a state in which the move cannot be made."""

    def __init__(self, state: State, move: Move) -> None:
        super().__init__(f"a flow that is {state} cannot {move.replace('_', ' ')}")
        self.state = state
        self.move = move


def next_state(state: State, move: Move) -> State:
    """Return the state that a move leads to.

    Raises: `NotPossible`.
    """
    begins, ends = TRANSITIONS[move]
    if state not in begins:
        raise NotPossible(state, move)
    return ends


def is_possible(state: State, move: Move) -> bool:
    """Return whether the move can be made in this state."""
    return state in TRANSITIONS[move][0]
