"""Waiting for a condition, with a bound. Tests wait for the event itself, never for a fixed time."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn, TypeVar, overload

from common.errors import DatabaseUnavailable

T = TypeVar("T")

SECONDS = 90.0
"""Far longer than any condition takes on a slow machine; a test that passes never waits so long."""
_PAUSE_SECONDS = 0.01


_NotYet = tuple[type[Exception], ...]


@overload
async def until(
    condition: Callable[[], Awaitable[T]], what: str = ..., *, seconds: float = ..., pending: _NotYet = ...
) -> T: ...
@overload
async def until(condition: Callable[[], T], what: str = ..., *, seconds: float = ..., pending: _NotYet = ...) -> T: ...
async def until(
    condition: Callable[[], Any],
    what: str = "",
    *,
    seconds: float = SECONDS,
    pending: _NotYet = (DatabaseUnavailable,),
) -> Any:
    """Return the first true result of `condition`, a function or a coroutine function. An exception in `pending`
    means "not yet".

    Raises: `AssertionError` with `what` after `seconds`, also while the condition itself is awaited.
    """
    try:
        async with asyncio.timeout(seconds):
            while True:
                try:
                    found = condition()
                    if inspect.isawaitable(found):
                        found = await found
                    if found:
                        return found
                except pending:
                    pass
                await asyncio.sleep(_PAUSE_SECONDS)
    except TimeoutError:
        raise _given_up(condition, what, seconds) from None


async def until_equal(read: Callable[[], Awaitable[T]], expected: T, *, seconds: float = SECONDS) -> None:
    """Return once `read` gives the expected value. Raises: `AssertionError` after `seconds`."""

    async def is_equal() -> bool:
        return await read() == expected

    await until(is_equal, f"{expected!r}", seconds=seconds)


async def let_run(turns: int = 1) -> None:
    """Let other tasks run, for this many turns of the event loop."""
    for _ in range(turns):
        await asyncio.sleep(0)


async def never() -> NoReturn:
    """Wait until cancelled: for an answer that does not come."""
    await asyncio.Future[None]()
    raise AssertionError("no one sets its result")


def wait_until(condition: Callable[[], T], what: str = "", *, seconds: float = SECONDS) -> T:
    """Return the first true result of `condition`, for tests without an event loop.

    Raises: `AssertionError` with `what` after `seconds`.
    """
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise _given_up(condition, what, seconds)
        time.sleep(_PAUSE_SECONDS)
    return found


def _given_up(condition: Callable[[], object], what: str, seconds: float) -> AssertionError:
    return AssertionError(f"gave up after {seconds:g} s: {what or condition}")
