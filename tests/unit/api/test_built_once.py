"""A value that takes long is built once, in a thread, and the event loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import threading

from api.built_once import BuiltOnce
from tests.waiting import SECONDS, until


class Build:
    """Takes until `release` is set."""

    def __init__(self) -> None:
        self.begun = 0
        self.release = threading.Event()

    def __call__(self) -> str:
        self.begun += 1
        assert self.release.wait(SECONDS)
        return "built"


async def test_the_loop_goes_on_while_the_value_is_built_once_for_all() -> None:
    build = Build()
    value = BuiltOnce(build)
    first, second = asyncio.create_task(value.get()), asyncio.create_task(value.get())
    await until(lambda: build.begun, "the build")  # in this loop
    build.release.set()
    assert list(await asyncio.gather(first, second, value.get())) == ["built"] * 3
    assert build.begun == 1


async def test_a_caller_that_leaves_does_not_end_the_build() -> None:
    build = Build()
    value = BuiltOnce(build)
    first = asyncio.create_task(value.get())
    await until(lambda: build.begun, "the build")
    first.cancel()
    await asyncio.wait([first])
    build.release.set()
    assert await value.get() == "built"
    assert build.begun == 1
