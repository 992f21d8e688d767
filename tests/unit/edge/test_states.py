"""The tables of `edge.proxy.connection_states` and `edge.proxy.exchange_states`: every pair of a state and an event."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from edge.proxy import connection_states, exchange_states
from edge.proxy.connection_states import ConnectionState
from edge.proxy.exchange_states import Ending, Phase
from edge.proxy.states import State
from tests.unit.edge.link import Link

CONNECTION = """
            on_forward  on_finish  on_tunnel  on_linger  on_close  on_abort  on_loss
READING     EXCHANGE    -          -          LINGERING  CLOSED    CLOSED    CLOSED
EXCHANGE    -           READING    TUNNEL     LINGERING  CLOSED    CLOSED    CLOSED
TUNNEL      -           -          -          LINGERING  CLOSED    CLOSED    CLOSED
LINGERING   -           -          -          -          -         CLOSED    CLOSED
CLOSED      -           -          -          -          -         CLOSED    CLOSED
"""

EXCHANGE = """
            on_buffer  on_buffered  on_send  on_repeat  on_respond  on_switch  on_end
WAITING     BUFFERING  -            SENT     -          -           -          FINISHED
BUFFERING   -          WAITING      -        -          -           -          FINISHED
SENT        -          -            -        WAITING    BODY        TUNNEL     FINISHED
BODY        -          -            -        -          -           -          FINISHED
TUNNEL      -          -            -        -          -           -          FINISHED
FINISHED    -          -            -        -          -           -          -
"""


def pairs(table: str) -> list[tuple[str, str, str]]:
    events, *rows = (line.split() for line in table.strip().splitlines())
    return [(row[0], event, following) for row in rows for event, following in zip(events, row[1:], strict=True)]


@pytest.mark.parametrize(
    ("kind", "transitions", "table"),
    [
        (ConnectionState, connection_states.TRANSITIONS, CONNECTION),
        (Phase, exchange_states.TRANSITIONS, EXCHANGE),
    ],
)
def test_each_event_leads_where_the_table_says_and_others_raise(
    kind: type[State], transitions: Mapping[State, Mapping[str, State]], table: str
) -> None:
    states = {state.name: state for state in transitions}
    expected = pairs(table)
    assert {state for state, _, _ in expected} == set(states)
    assert {event for _, event, _ in expected} == set(kind.__slots__)
    for name, event, following in expected:
        if following == "-":
            with pytest.raises(AttributeError, match=event):
                getattr(states[name], event)
        else:
            assert getattr(states[name], event) is states[following]


def test_each_name_of_an_ending_is_its_own() -> None:
    for ending in Ending:
        assert getattr(exchange_states, ending.name) is ending


def test_finished_exchange_cannot_end_again(tmp_path: Path) -> None:
    link = Link(tmp_path)
    link.begin(lambda: pytest.fail("an origin was asked"))
    link.client.inbox.append(b"GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n")
    link.client.deliver()
    (connection,) = link.worker.connections
    (exchange,) = connection.exchanges()
    exchange.cancel()
    with pytest.raises(AttributeError, match="on_end"):
        exchange.cancel()
    connection.abort()
    link.loop.run()
