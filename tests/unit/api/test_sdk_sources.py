"""What the modal's sources repeat of the API: the states of a flow; and of each other: the languages."""

from __future__ import annotations

import re

from api.sdk.assets import HERE
from common.flow_states import ENDED, TRANSITIONS, Move, State

_QUOTED = re.compile(r'"([\w-]+)"')


def quoted(file: str, pattern: str) -> list[str]:
    """Return the quoted words of the first place that matches."""
    found = re.search(pattern, (HERE / file).read_text("utf-8"), re.DOTALL)
    assert found is not None, f"{file} has no {pattern}"
    return _QUOTED.findall(found[1])


def test_the_modal_knows_the_states_of_flows() -> None:
    assert set(quoted("flow.js", r"@typedef \{([^}]*)\} FlowState")) == set(State)
    assert set(quoted("flow.js", r"const ENDED = \[([^\]]*)\]")) == ENDED
    assert set(quoted("modal.js", r"const isReusable = [^\[]*\[([^\]]*)\]")) == TRANSITIONS[Move.CHOOSE][0]


def test_the_modal_has_a_step_for_every_state_but_the_first_and_one_that_was_given_up() -> None:
    shown = re.findall(
        r'case "(\w+)":', (HERE / "flow.js").read_text("utf-8").split("function stepOf")[1].split("\n}")[0]
    )
    assert set(shown) == set(State) - {State.CHOOSING, State.CLOSED}


def test_each_language_has_its_words_and_stands_in_the_type_of_the_configuration() -> None:
    locales = quoted("configuration.js", r"LOCALES = Object.freeze\(\[([^\]]*)\]")
    assert set(locales) == {"en", *(path.stem for path in (HERE / "words").glob("*.json"))}
    assert quoted("configuration.js", r"@property \{([^}]*)\} \[locale\]") == locales
    assert set(quoted("words.js", r"const FROM_RIGHT = \[([^\]]*)\]")) <= set(locales)
