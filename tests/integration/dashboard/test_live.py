"""Parts of pages that are sent anew: they end with the rights of their user, and outlive a database that is away."""

from __future__ import annotations

import aiohttp
import pytest

from api.dashboard import live
from api.dashboard.handlers import domains
from common.db import sessions, users
from common.errors import DatabaseUnavailable
from tests.integration.dashboard.conftest import Browser, Dashboard
from tests.integration.dashboard.test_tenants import SHOP, power


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domains, "_LIVE_SECONDS", 0.02)


async def followed(browser: Browser, application_id: str) -> aiohttp.ClientResponse:
    """The stream of a domain's certificate, of which the first part has come."""
    path = f"/dashboard/applications/{application_id}/domains/{SHOP}/live"
    response = await browser.session.get(browser.url + path)
    assert response.content_type == "text/event-stream"
    await response.content.readuntil(b"\n\n")
    return response


@pytest.mark.parametrize("end", ["session", "membership"])
async def test_a_stream_ends_with_the_rights_of_its_user(dashboard: Dashboard, end: str) -> None:
    organisation = await dashboard.organisation()
    partner = await dashboard.partner(organisation)
    await power(dashboard, partner)
    browser = await dashboard.signed_in("vic@acme.example", organisation, "viewer")
    stream = await followed(browser, partner.id)
    async with dashboard.service.database.transaction() as connection:
        user = await users.find_user(connection, "vic@acme.example")
        assert user is not None
        if end == "session":
            await sessions.end_all(connection, user.id)
        else:
            await users.remove_membership(connection, user.id, organisation.id)
    async with stream:
        await stream.content.read()  # until it ends


async def test_a_stream_goes_on_when_the_database_was_away(
    dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    partner = await dashboard.partner()
    await power(dashboard, partner)
    browser = await dashboard.signed_in("ops@x.test")
    stream = await followed(browser, partner.id)
    asked, found = 0, live.find_visitor

    async def sometimes(*arguments: object) -> object:
        nonlocal asked
        asked += 1
        if asked < 3:
            raise DatabaseUnavailable("away")
        return await found(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(live, "find_visitor", sometimes)
    async with dashboard.service.database.transaction() as connection:
        await connection.execute("delete from orders")
    async with stream:
        assert b"none is ordered" in await stream.content.readuntil(b"\n\n")
    assert asked >= 3
