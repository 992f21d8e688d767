"""An application with an origin and a live customer, and a page that has a browser's token."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bench.lab.knot import Knot, find_knot
from common.db.applications import update_application
from tests.integration.api.browsers.parts import FRESH, LIVE, OWN, TARGET, Browser
from tests.integration.api.connecting import APEX, KEY, PARENT, World, open_world, zone_file
from tests.integration.api.partner import Partner

ZONE = (
    (APEX, "NS", f"ns.{APEX}."),
    (f"ns.{APEX}", "A", "127.0.0.1"),
    (LIVE, "CNAME", f"{TARGET}."),
    (FRESH, "CNAME", f"{TARGET}."),
)


@pytest.fixture
async def world(dsn: str, tmp_path: Path, probe_port: int) -> AsyncIterator[World]:
    if find_knot() is None:
        pytest.skip("knot is not installed")
    zones = {"test": zone_file(PARENT), APEX: zone_file(ZONE)}
    async with (
        Knot.serve(zones, keys={KEY["key_name"]: KEY["key_secret"]}) as knot,
        open_world(dsn, tmp_path, probe_port, knot.address) as world,
    ):
        yield world


@pytest.fixture
async def partner(world: World) -> Partner:
    """With an origin of its own, and a customer whose domain is live."""
    async with world.service.database.transaction() as connection:
        await update_application(connection, world.partner.id, application_url=OWN)
    answer = await world.partner.post(LIVE, url=f"{OWN}/of-the-customer")
    assert answer.status == 200, answer.body
    return world.partner


@pytest.fixture
def browser(partner: Partner) -> Browser:
    return Browser(partner, partner.token(scope="connect", userId="user-7"))
