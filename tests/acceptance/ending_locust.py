"""A further file for locust: ends the run once each of the requests that ``AWAITED`` names was answered.

The names are separated by semicolons.
"""

from __future__ import annotations

import os
from typing import Any

import gevent
from locust import events
from locust.env import Environment


@events.init.add_listener  # type: ignore[untyped-decorator]
def _end_when_all_were_seen(environment: Environment, **_: Any) -> None:
    missing = set(os.environ["AWAITED"].split(";"))

    def note(name: str, **_: Any) -> None:
        missing.discard(name)
        if not missing and environment.runner is not None:
            gevent.spawn(environment.runner.quit)

    environment.events.request.add_listener(note)  # type: ignore[no-untyped-call]
