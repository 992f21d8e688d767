"""What a partner's support tells a customer whose connection stands where it stands: one sentence for each state."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from common.flow_states import State
from common.flows.handover import FlowProblem
from common.flows.ways import WayName

_ADVICE: Final[Mapping[State, str]] = MappingProxyType(
    {
        State.CHOOSING: "Open the page again and type the domain.",
        State.CHECKING: "Wait a moment: the DNS of the domain is being looked at.",
        State.UNCHECKED: "Try again in a few minutes: the DNS of the domain could not be asked.",
        State.PLANNED: "Open the page again and agree to the changes, or set the records below by hand.",
        State.APPLYING: "Wait a moment: the records are being written.",
        State.HALTED: "Try again, or set the records below by hand.",
        State.WAITING: "Confirm the change at the DNS provider, or set the records below by hand.",
        State.PROPAGATING: "Wait: the records are set. Until they are seen everywhere takes up to an hour.",
        State.ENROLLING: "Wait a moment: the records are there, and the certificate follows by itself.",
        State.FINISHED: "Nothing: the domain is connected.",
        State.TIMED_OUT: "Compare the records below with those at the DNS provider, and correct them.",
        State.UNDOING: "Wait a moment: the changes are being taken back.",
        State.UNDONE: "Nothing: the changes were taken back. To connect the domain, begin again.",
        State.CLOSED: "Begin again: the connection was given up before anything was written.",
    }
)
_BY_HAND: Final = "Set the records below at the DNS provider. They are found by themselves; the page may be closed."


def advise(state: State, way: WayName | None, problem: FlowProblem | None) -> str:
    """Return the sentence for the customer. A problem's own hint goes before the state's."""
    if state is State.WAITING and way == "manual":
        return _BY_HAND
    if problem is not None and problem.hint and state in (State.HALTED, State.UNCHECKED, State.CLOSED):
        return problem.hint
    return _ADVICE[state]
