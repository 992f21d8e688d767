"""An origin that does not answer is seen where a partner looks first: on the overview and in the list of domains."""

from __future__ import annotations

import re

from common.db import domains
from common.domain_settings import DomainSettings
from tests.integration.dashboard.conftest import Dashboard


async def test_a_failing_origin_is_on_the_overview_in_the_list_and_in_its_filter(dashboard: Dashboard) -> None:
    ours, theirs = await dashboard.organisation("Ours"), await dashboard.organisation("Theirs")
    partner, other = await dashboard.partner(ours), await dashboard.partner(theirs)
    async with dashboard.service.database.transaction() as connection:
        await domains.power(connection, "down.test", partner.id, DomainSettings("https://down.example/shop"))
        await domains.power(connection, "up.test", partner.id, DomainSettings("https://up.example"))
        await connection.execute(
            "insert into origin_outages (application_id, origin, fault, reported_at, since, seen_at, domains, example)"
            " values ($1, 'https://down.example', 'refused', now(), now() - interval '3 hours',"
            " now() - interval '5 minutes', 1, 'down.test')",
            partner.id,
        )
    assert other is not None
    browser = await dashboard.signed_in("dev@x.test", ours)
    overview = (await browser.get("/dashboard")).text
    assert "https://down.example does not answer." in overview
    assert re.search(r"It was last seen to fail <time[^>]*>5 minutes ago</time>", overview)
    assert "All is well" not in overview
    for query in ("", "?status=problem"):
        listed = (await browser.get(f"/dashboard/domains{query}")).text
        assert "Origin fails" in listed
        assert ("up.test" in listed) == (query == "")
    stranger = await dashboard.signed_in("eve@x.test", theirs)
    assert "down.example" not in (await stranger.get("/dashboard")).text
    assert "All is well" in (await stranger.get("/dashboard")).text
