from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

import pytest

from api.stream_slots import NoSlotFree, StreamSlots


class Streams:
    """Opened by tenants; `ended` are those whose slot went to another one."""

    def __init__(self, slots: StreamSlots) -> None:
        self._slots = slots
        self.open = ExitStack()
        self.ended: list[str] = []

    def take(self, tenant: str, count: int = 1) -> None:
        for number in range(count):
            self.open.enter_context(self._slots.taken(tenant, partial(self.ended.append, f"{tenant}{number}")))


@pytest.fixture
def streams() -> Iterator[Streams]:
    streams = Streams(StreamSlots(most=6, most_of_tenant=4))
    with streams.open:
        yield streams


def test_a_tenant_has_at_most_its_own_share(streams: Streams) -> None:
    streams.take("a", 4)
    with pytest.raises(NoSlotFree):
        streams.take("a")
    streams.take("b")
    assert streams.ended == []


def test_while_all_are_taken_the_largest_gives_its_oldest_up(streams: Streams) -> None:
    streams.take("a", 4)
    streams.take("b", 2)
    streams.take("c")
    assert streams.ended == ["a0"]
    streams.take("c")
    assert streams.ended == ["a0", "a1"]
    with pytest.raises(NoSlotFree):
        streams.take("c")  # each has two


def test_a_stream_that_ends_leaves_its_slot(streams: Streams) -> None:
    slots = StreamSlots(most=1, most_of_tenant=1)
    with slots.taken("a", lambda: None), pytest.raises(NoSlotFree), slots.taken("b", lambda: None):
        pass
    with slots.taken("b", lambda: None):
        pass


def test_a_slot_that_was_taken_is_not_given_back_twice() -> None:
    slots = StreamSlots(most=2, most_of_tenant=2)
    with ExitStack() as open_:
        first = slots.taken("a", lambda: None)
        first.__enter__()
        open_.enter_context(slots.taken("a", lambda: None))
        open_.enter_context(slots.taken("b", lambda: None))  # has the first one's
        first.__exit__(None, None, None)
        with pytest.raises(NoSlotFree):
            open_.enter_context(slots.taken("c", lambda: None))
