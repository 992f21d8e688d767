"""A client of HTTP/2 that has started."""

from __future__ import annotations

import pytest

from tests.unit.edge.http2.machine import Machine


@pytest.fixture
def client() -> Machine:
    return Machine().start()
