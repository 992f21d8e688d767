"""A child of the edge, at its end."""

from __future__ import annotations

from edge.process.child import Child
from tests.captured_logs import capture_logs


async def test_a_child_that_ends_with_our_words_unread_has_hung_up_and_is_no_fault_of_its_own() -> None:
    heard: list[bytes] = []
    child = Child(["abc"], [], heard.append)  # a module that says nothing and reads nothing
    child.send(b"unread\n")
    with capture_logs() as lines:
        assert await child.run() == 0
    assert (heard, lines) == ([], [])
