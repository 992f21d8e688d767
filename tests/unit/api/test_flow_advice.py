"""What support tells a customer: a sentence for each state of a flow."""

from __future__ import annotations

import pytest

from api.dashboard.flow_advice import advise
from common.flow_states import State
from common.flows.handover import FlowProblem

REFUSED = FlowProblem("wrong_token", "The name server does not accept this key.", "Make a new key.")


@pytest.mark.parametrize("state", State)
def test_each_state_has_a_sentence(state: State) -> None:
    assert advise(state, None, None).endswith(".")


def test_a_hint_goes_before_the_states_sentence_where_the_flow_stopped() -> None:
    assert advise(State.HALTED, "dynamic_update", REFUSED) == "Make a new key."
    assert advise(State.PROPAGATING, "dynamic_update", REFUSED) != "Make a new key."


def test_by_hand_and_by_consent_the_customer_does_different_things() -> None:
    assert "Set the records" in advise(State.WAITING, "manual", None)
    assert "Confirm" in advise(State.WAITING, "domain_connect", None)
