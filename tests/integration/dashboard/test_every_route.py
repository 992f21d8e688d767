"""Rules that hold for every route, as the application itself lists them: a form needs its session's own token, another
organisation's ids are not there, and no text is an internal error."""

from __future__ import annotations

import re
from unittest.mock import MagicMock

import pytest

from api.dashboard import live, middlewares
from api.dashboard.app import build_dashboard
from common.errors import DatabaseUnavailable
from common.settings import load
from tests.integration.dashboard.conftest import Browser, Dashboard
from tests.integration.dashboard.test_tenants import SHOP, power

ROUTES = sorted(
    (route.method, f"/dashboard{route.resource.canonical}")
    for route in build_dashboard(MagicMock(settings=load({}))).router.routes()
    if route.resource is not None and "static" not in route.resource.canonical and route.method in ("GET", "POST")
)
FORMS = [path for method, path in ROUTES if method == "POST"]
OF_A_TENANT = [(method, path) for method, path in ROUTES if "{application}" in path or "{organisation}" in path]


def filled(path: str, **values: str) -> str:
    given = {"name": SHOP, "event": "evt_" + "0" * 34, "flow": "flow_" + "0" * 24, "token": "x" * 43} | values
    return re.sub(r"{(\w+)}", lambda found: given[found[1]], path)


async def sent(browser: Browser, method: str, path: str, **form: str) -> int:
    options = {"data": form, "headers": {"Origin": browser.url}} if method == "POST" else {}
    return (await browser.send(method, path, **options)).status


async def test_no_form_is_taken_without_the_sessions_own_token(dashboard: Dashboard) -> None:
    organisation = await dashboard.organisation()
    partner = await dashboard.partner(organisation)
    await power(dashboard, partner)
    operator, other = await dashboard.signed_in("ops@x.test"), await dashboard.signed_in("ops2@x.test")
    guest, theirs = await dashboard.browser(), (await other.get()).csrf
    async with dashboard.service.database.connection() as connection:
        before = await connection.fetchval("select count(*) from audit")
        for path in FORMS:
            url = filled(path, application=partner.id, organisation=organisation.id)
            typed = {"typed": SHOP, "action": "remove_power", "kind": "client", "wanted": "rotate", "name": "Theirs"}
            assert await sent(operator, "POST", url, **typed) == 403, path
            assert await sent(operator, "POST", url, csrf=theirs, **typed) == 403, path
            assert await sent(guest, "POST", url, csrf=theirs, **typed) in (303, 403), path
        assert await connection.fetchval("select count(*) from audit") == before


async def test_another_organisations_ids_are_not_there(dashboard: Dashboard) -> None:
    ours, theirs = await dashboard.organisation("Ours"), await dashboard.organisation("Theirs")
    partner = await dashboard.partner(theirs)
    await power(dashboard, partner)
    owner = await dashboard.signed_in("eve@ours.example", ours, "owner")
    csrf = (await owner.get()).csrf
    assert len(OF_A_TENANT) > 20
    for method, path in OF_A_TENANT:
        url = filled(path, application=partner.id, organisation=theirs.id)
        form = {"csrf": csrf, "typed": SHOP, "action": "remove_power", "email": "a@x.test", "role": "owner"}
        assert await sent(owner, method, url, **form) == 404, (method, path)


async def test_without_the_database_each_page_says_so_and_when_to_ask_again(
    dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    partner = await dashboard.partner(organisation := await dashboard.organisation())
    browser = await dashboard.signed_in("ops@x.test")

    async def away(*_: object) -> None:
        raise DatabaseUnavailable("connection refused at 10.0.0.5")

    monkeypatch.setattr(middlewares, "find_visitor", away)
    monkeypatch.setattr(live, "find_visitor", away)
    for method, path in ROUTES:
        if method == "GET":
            page = await browser.get(filled(path, application=partner.id, organisation=organisation.id))
            assert (page.status, page.headers["Retry-After"]) == (503, "5"), path
            assert "The database cannot be reached" in page.words
            assert re.search(r'href="([^"]*)">Try again<', page.text)[1] == page.path, path  # type: ignore[index]
            assert "10.0.0.5" not in page.text


async def test_text_with_a_nul_is_no_internal_error(dashboard: Dashboard) -> None:
    organisation = await dashboard.organisation()
    partner = await dashboard.partner(organisation)
    browser = await dashboard.signed_in("ops@x.test")
    csrf = (await browser.get()).csrf
    for method, path in ROUTES:
        url = filled(path, application=partner.id, organisation=organisation.id)
        for name in ("text", "application", "after", "subject", "next") if method == "GET" else ("email", "user"):
            query = f"?{name}=a%00b" if method == "GET" else ""
            status = await sent(browser, method, url + query, csrf=csrf, **{name: "a\0b"})
            assert status == (404 if method == "GET" else 400), (method, path)
        for name in re.findall(r"{(\w+)}", path):
            of_it = {"application": partner.id, "organisation": organisation.id, name: "a%00b"}
            assert await sent(browser, method, filled(path, **of_it), csrf=csrf) == 404, (method, path)
