"""A customer's zone at knot, and an API that writes into it by RFC 2136."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bench.lab.knot import Knot, find_knot
from tests.integration.api.connecting import APEX, CUSTOMER, KEY, PARENT, World, open_world, zone_file


@pytest.fixture
async def knot() -> AsyncIterator[Knot]:
    if find_knot() is None:
        pytest.skip("knot is not installed")
    zones = {"test": zone_file(PARENT), APEX: zone_file(CUSTOMER)}
    async with Knot.serve(zones, keys={KEY["key_name"]: KEY["key_secret"]}) as knot:
        yield knot


@pytest.fixture
async def world(dsn: str, tmp_path: Path, probe_port: int, knot: Knot) -> AsyncIterator[World]:
    async with open_world(dsn, tmp_path, probe_port, knot.address) as world:
        yield world
