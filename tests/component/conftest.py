from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

import pytest
import uvloop

from bench.lab.server import NameServer
from bench.lab.sink import WebhookSink
from bench.lab.zone import Zone

DEADLINE_SECONDS = 290.0  # a little before the time-out of all tests


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Whatever moves bytes is tried on both loops."""
    return {"uvloop": _uvloop, "asyncio": asyncio.new_event_loop}


def _uvloop() -> asyncio.AbstractEventLoop:
    """Its signal handlers may not raise, as the one that ends other tests that hang does."""
    loop = uvloop.new_event_loop()
    loop.call_later(DEADLINE_SECONDS, _end, loop)
    return loop


def _end(loop: asyncio.AbstractEventLoop) -> None:
    for task in asyncio.all_tasks(loop):
        task.cancel("the test takes too long")


@pytest.fixture
async def server() -> AsyncIterator[NameServer]:
    async with NameServer.serve(Zone()) as server:
        yield server


@pytest.fixture
async def sink() -> AsyncIterator[WebhookSink]:
    async with WebhookSink.serve() as sink:
        yield sink
