"""X-Service-Auth: a minted value or one of the partner's own, and its rotation with overlap."""

from __future__ import annotations

import base64
import re

from common.db import application_secrets
from tests.integration.dashboard.conftest import Browser, Dashboard, Page

OWN, NEXT = "a value of the partner's own", "Bearer 0123456789abcdef"


async def sent_by_edges(dashboard: Dashboard, application_id: str) -> str | None:
    """As the feed has it."""
    async with dashboard.service.database.connection() as connection:
        sealed = await connection.fetchval(
            "select routed_content(applications)->>'service_auth' from applications where id = $1", application_id
        )
    if sealed is None:
        return None
    identity = application_secrets.service_auth_identity(application_id)
    return dashboard.service.keyring.open(base64.b64decode(sealed), identity).decode()


def shown(page: Page) -> str:
    found = re.search(r'id="secret-1">([^<]+)<', page.text)
    assert found, page.words
    return found[1]


async def test_edges_send_the_value_so_far_until_the_rotation_is_finished(dashboard: Dashboard) -> None:
    organisation = await dashboard.organisation()
    partner = await dashboard.partner(organisation)
    browser = await dashboard.signed_in("dev@acme.example", organisation)
    path = f"/dashboard/applications/{partner.id}/secrets"

    async def act(wanted: str, value: str = "", by: Browser = browser) -> Page:
        return await by.post(path, kind="service_auth", wanted=wanted, value=value)

    first = shown(await act("on"))
    assert await sent_by_edges(dashboard, partner.id) == first
    second = shown(await act("rotate"))
    assert await sent_by_edges(dashboard, partner.id) == first != second
    assert "edges still send the one so far" in (await browser.get(path)).words
    assert (await act("finish")).status == 303
    assert await sent_by_edges(dashboard, partner.id) == second
    assert (await act("finish")).status == 422  # nothing waits

    assert (await act("rotate", OWN)).status == 303  # the partner has it: it is not shown
    assert (await act("cancel")).status == 303
    assert await sent_by_edges(dashboard, partner.id) == second
    for wrong in ("too short", "x" * 257, "an umlaut in it: ä", "line\nbreak 0123456789"):
        assert (await act("rotate", wrong)).status == 422
    await act("rotate", NEXT)
    await act("finish")
    assert await sent_by_edges(dashboard, partner.id) == NEXT
    await act("rotate")
    assert (await act("off")).status == 303
    assert await sent_by_edges(dashboard, partner.id) is None
    assert (await act("finish")).status == 422
    await act("on", OWN)
    assert await sent_by_edges(dashboard, partner.id) == OWN
    viewer = await dashboard.signed_in("eve@acme.example", organisation, "viewer")
    csrf = (await viewer.get("/dashboard")).csrf
    refused = await viewer.post(path, csrf=csrf, kind="service_auth", wanted="off")
    assert refused.status == 403
    async with dashboard.service.database.connection() as connection:
        recorded = await connection.fetch("select before, after from audit where action = 'application.set'")
    assert OWN not in str(recorded)
    assert NEXT not in str(recorded)
