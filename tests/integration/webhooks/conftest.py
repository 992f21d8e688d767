"""Where webhooks are sent to."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bench.lab.sink import WebhookSink


@pytest.fixture
async def sink() -> AsyncIterator[WebhookSink]:
    async with WebhookSink.serve() as sink:
        yield sink
