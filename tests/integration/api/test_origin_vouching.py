"""Origins that flows set before browsers were bounded: the migration distrusts them, a PUT vouches for them."""

from __future__ import annotations

import importlib

import pytest

from tests.integration.api.connecting import World
from tests.integration.api.partner import Partner
from tests.integration.api.test_browser_rights import FRESH, LIVE, Browser, partner, power, world

__all__ = ["partner", "world"]


@pytest.mark.usefixtures("world")
async def test_the_migration_distrusts_origins_of_flows_until_a_put(world: World, partner: Partner) -> None:
    statement = importlib.import_module("common.db.migrations.versions.0075_what_ends_flows")._BY_FLOWS
    await Browser(partner, partner.token()).finish(domain=FRESH, **power("https://other.example/x"))

    async def vouched() -> dict[str, bool]:
        async with world.service.database.connection() as connection:
            rows = await connection.fetch("select domain, routed_content(d) as content from domains d")
        return {row["domain"]: row["content"].get("origin_vouched", True) for row in rows}

    assert await vouched() == {FRESH: True, LIVE: True}
    async with world.service.database.transaction() as connection:
        assert [await connection.execute(statement) for _ in range(2)] == ["UPDATE 1", "UPDATE 0"]
    assert await vouched() == {FRESH: False, LIVE: True}
    assert (await partner.put(FRESH, applicationUrl="https://other.example/x")).status == 200
    assert await vouched() == {FRESH: True, LIVE: True}
