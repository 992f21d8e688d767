"""Origins that no server has set: a PUT vouches for them."""

from __future__ import annotations

from tests.integration.api.browsers.parts import FRESH, LIVE, Browser, power
from tests.integration.api.connecting import World
from tests.integration.api.partner import Partner


async def test_a_put_vouches_for_an_origin(world: World, partner: Partner) -> None:
    await Browser(partner, partner.token()).finish(domain=FRESH, **power("https://other.example/x"))

    async def vouched() -> dict[str, bool]:
        async with world.service.database.connection() as connection:
            rows = await connection.fetch("select domain, routed_content(d) as content from domains d")
        return {row["domain"]: row["content"].get("origin_vouched", True) for row in rows}

    assert await vouched() == {FRESH: True, LIVE: True}
    async with world.service.database.transaction() as connection:
        await connection.execute("update domains set origin_vouched = false where domain = $1", FRESH)
    assert await vouched() == {FRESH: False, LIVE: True}
    assert (await partner.put(FRESH, applicationUrl="https://other.example/x")).status == 200
    assert await vouched() == {FRESH: True, LIVE: True}
