"""A webhook receiver with faults: errors, silence, answers that break off, slow answers.

The fault is drawn anew for each delivery.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from random import Random

from aiohttp import web

from bench.lab.sink import ReceivedRequest


@dataclass(frozen=True, slots=True)
class SinkFaults:
    """How often, of one, each fault is met: a delivery meets one of them at most.

    Silence lasts for `silence_seconds`, which should be longer than senders wait, and slow answers come within
    `slow_seconds`, which should be shorter.
    """

    errors: float = 0.0
    silence: float = 0.0
    broken: float = 0.0
    slow: float = 0.0
    silence_seconds: float = 3.0
    slow_seconds: float = 1.0


class FaultyReceiver:
    """Answers deliveries for a `WebhookSink` (`answer_by`). `accepted` are the ids of events that got 2xx."""

    def __init__(self, faults: SinkFaults, random: Random) -> None:
        self._faults = faults
        self._random = random
        self.has_faults = True
        self.accepted: set[str] = set()
        self.faulty = 0

    async def answer(self, request: web.Request, delivery: ReceivedRequest) -> web.StreamResponse:
        """Answer a delivery, well or by a fault."""
        faults, drawn = self._faults, self._random.random() if self.has_faults else 1.0
        failing = faults.errors + faults.silence + faults.broken
        self.faulty += drawn < failing + faults.slow
        if drawn < faults.errors:
            return web.Response(status=500)
        if drawn < faults.errors + faults.silence:
            await asyncio.sleep(faults.silence_seconds)
            return web.Response(status=504)
        if drawn < failing:
            return _break_off(request)
        if drawn < failing + faults.slow:
            await asyncio.sleep(self._random.uniform(0.0, faults.slow_seconds))
        self.accepted.add(delivery.json()["id"])
        return web.Response(status=204)


def _break_off(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.write(b"HTTP/1.1 200 OK\r\nContent-Le")
    request.transport.close()
    return web.Response()
