"""Parts that several viewers see are rendered once, and shared out fairly."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import ExitStack

import pytest
from aiohttp import web

from api.dashboard import renderings
from api.dashboard.renderings import LivePart, Renderings, Viewer
from common.clock import SystemClock
from common.errors import DatabaseUnavailable
from tests.waiting import let_run, until

MINUTE = 60.0


class Pages(SystemClock):
    """Renders `texts[name]`; while `held` has the name, it waits. Counts what was begun, and what runs. As a clock, it
    goes on by `seconds[name]` with each rendering, and else stands still."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._monotonic = 0.0
        self.texts: dict[str, str] = {}
        self.errors: dict[str, Exception] = {}
        self.begun: Counter[str] = Counter()
        self.running: Counter[str] = Counter()
        self.held: set[str] = set()
        self._changed = asyncio.Event()

    async def render(self, name: str) -> str:
        self.begun[name] += 1
        self.running[name] += 1
        try:
            while name in self.held:
                await self._changed.wait()
                self._changed.clear()
            if name in self.errors:
                raise self.errors[name]
            self._monotonic += self.seconds.get(name, 0.0)
            return self.texts.get(name, name)
        finally:
            self.running[name] -= 1

    def monotonic(self) -> float:
        return self._monotonic

    def part(self, name: str, *, tenant: str = "acme", every: float = MINUTE) -> LivePart:
        return LivePart(self.render, (name,), tenant, every)

    def release(self, name: str) -> None:
        self.held.discard(name)
        self._changed.set()


@pytest.fixture
def pages() -> Pages:
    return Pages()


async def received(viewer: Viewer) -> str:
    await viewer.wait(MINUTE)
    return viewer.take()


async def test_fifty_viewers_of_a_part_are_served_by_one_rendering(pages: Pages) -> None:
    shared = Renderings(pages)
    with ExitStack() as stack:
        viewers = [stack.enter_context(shared.viewer()) for _ in range(50)]
        for viewer in viewers:
            viewer.follow([pages.part("totals")])
        assert [await received(viewer) for viewer in viewers] == ["totals"] * 50
        assert pages.begun == {"totals": 1}


async def test_unequal_parts_are_not_shared(pages: Pages) -> None:
    shared = Renderings(pages)
    with shared.viewer() as one, shared.viewer() as other:
        one.follow([pages.part("ours")])
        other.follow([pages.part("theirs")])
        assert (await received(one), await received(other)) == ("ours", "theirs")


async def test_what_is_unchanged_is_not_sent_again(pages: Pages) -> None:
    with Renderings(pages).viewer() as viewer:
        viewer.follow([pages.part("a", every=0), pages.part("b", every=0)])
        assert await received(viewer) in ("a", "ab")
        await until(lambda: pages.begun["b"] > 3, "renderings that change nothing")
        viewer.take()
        pages.texts["a"] = "changed"
        assert await received(viewer) == "changed"


async def test_a_viewer_who_comes_during_a_rendering_waits_for_the_next(pages: Pages) -> None:
    shared = Renderings(pages)
    pages.held.add("a")
    with shared.viewer() as first, shared.viewer() as second:
        first.follow([pages.part("a", every=0)])
        await until(lambda: pages.running["a"] == 1, "the rendering")
        second.follow([pages.part("a", every=0)])
        pages.release("a")
        assert await received(first) == "a"
        assert second.take() == ""
        assert await received(second) == "a"
        assert pages.begun["a"] >= 2


async def test_nothing_runs_once_the_last_viewer_has_left(pages: Pages) -> None:
    shared = Renderings(pages)
    pages.held.add("a")
    with shared.viewer() as first:
        first.follow([pages.part("a")])
        with shared.viewer() as second:
            second.follow([pages.part("a")])
            await until(lambda: pages.running["a"] == 1, "the rendering")
        assert pages.running["a"] == 1
    await until(lambda: not pages.running["a"], "its end")
    await until(lambda: repr(shared) == "<Renderings 0 parts seen, 0 tasks>", "no task")


async def test_parts_that_are_followed_no_more_are_not_sent(pages: Pages) -> None:
    with Renderings(pages).viewer() as viewer:
        viewer.follow([pages.part("a"), pages.part("b")])
        await until(lambda: pages.begun == {"a": 1, "b": 1}, "both")
        await received(viewer)
        viewer.follow([pages.part("c")])
        assert await received(viewer) == "c"


async def test_slow_renderings_of_one_organisation_do_not_hold_those_of_another(pages: Pages) -> None:
    shared = Renderings(pages, longest_hold_seconds=0.05)
    slow = [f"slow {number}" for number in range(20)]
    pages.held |= set(slow)
    with shared.viewer() as busy, shared.viewer() as other:
        busy.follow([pages.part(name) for name in slow])
        await until(lambda: sum(pages.running.values()) >= renderings._MOST_AT_ONCE, "slow renderings")
        other.follow([pages.part("quick", tenant="other")])
        assert await received(other) == "quick"
        assert sum(pages.begun.values()) < len(slow)  # it did not wait for its turn behind all of them


async def test_so_many_renderings_run_at_once(pages: Pages) -> None:
    names = [f"part {number}" for number in range(20)]
    pages.held |= set(names)
    with Renderings(pages).viewer() as viewer:
        viewer.follow([pages.part(name, tenant=name) for name in names])
        await until(lambda: sum(pages.running.values()) == renderings._MOST_AT_ONCE, "the first renderings")
        for name in names:
            pages.release(name)
            await let_run()
            assert sum(pages.running.values()) <= renderings._MOST_AT_ONCE
        await until(lambda: len(pages.begun) == len(names), "all")


async def test_a_slow_rendering_is_made_less_often(pages: Pages) -> None:
    """Of two parts that are wanted always, one took an hour by the clock."""
    shared = Renderings(pages)
    with shared.viewer() as viewer:
        pages.seconds["slow"] = 3600.0
        viewer.follow([pages.part("slow", every=0)])
        assert await received(viewer) == "slow"
        viewer.follow([pages.part("slow", every=0), pages.part("quick", every=0)])
        await until(lambda: pages.begun["quick"] > 20, "renderings of the quick one")
        assert pages.begun["slow"] == 1


async def test_a_rendering_goes_on_when_the_database_was_away(pages: Pages) -> None:
    with Renderings(pages).viewer() as viewer:
        pages.errors["a"] = DatabaseUnavailable("away")
        viewer.follow([pages.part("a", every=0)])
        assert await received(viewer) == ""  # so that its stream sees that the database is away
        await until(lambda: pages.begun["a"] > 2, "renderings")
        del pages.errors["a"]
        while not (html := await received(viewer)):
            pass
        assert html == "a"
        assert not viewer.has_ended


@pytest.mark.parametrize("error", [web.HTTPNotFound(), ValueError("a bug")])
async def test_a_part_that_is_gone_ends_the_streams_of_all_its_viewers(pages: Pages, error: Exception) -> None:
    shared = Renderings(pages)
    pages.errors["a"] = error
    with shared.viewer() as first, shared.viewer() as second:
        first.follow([pages.part("a")])
        second.follow([pages.part("a")])
        await first.wait(MINUTE)
        await second.wait(MINUTE)
        assert first.has_ended
        assert second.has_ended
        with shared.viewer() as late:
            late.follow([pages.part("a")])
            assert late.has_ended
        assert pages.begun["a"] == 1
    with shared.viewer() as again:
        del pages.errors["a"]
        again.follow([pages.part("a")])
        assert await received(again) == "a"
