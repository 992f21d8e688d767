"""The list of domains: its columns sort it, and a search that found nothing yet goes on."""

from __future__ import annotations

import re
from html import unescape

import pytest

from api.bounds import Bounds
from common.db import domains, policies
from common.db.domain_list_query import SearchLimits
from common.domain_settings import DomainSettings
from tests.integration.dashboard.conftest import Browser, Dashboard, Page

NAMES = [f"shop{number}.customer.test" for number in range(6)]


@pytest.fixture
async def browser(dashboard: Dashboard) -> Browser:
    """An owner of an application with six powered domains, one of which has left."""
    organisation = await dashboard.organisation("Ours")
    partner = await dashboard.partner(organisation)
    async with dashboard.service.database.transaction() as connection:
        for name in NAMES:
            await domains.power(connection, name, partner.id, DomainSettings("https://o.example"))
        await connection.execute("update domains set departed_at = now() where domain = $1", NAMES[3])
    return await dashboard.signed_in("eve@ours.example", organisation, "owner")


def names(page: Page) -> list[str]:
    return re.findall(r'class="name" href="[^"]*">([^<]+)<', page.text)


def shops(page: Page) -> list[str]:
    return [name for name in names(page) if name in NAMES]


def link(page: Page, words: str) -> str:
    found = re.search(rf'href="([^"]+)"[^>]*>{words}', page.text)
    assert found, page.words
    return unescape(found[1])


async def test_each_column_sorts_the_list_both_ways(browser: Browser) -> None:
    first = await browser.get("/dashboard/domains")
    for column in ("Name", "Certificate", "Added", "Status"):
        once = await browser.get(link(first, column))
        again = await browser.get(link(once, column))
        assert names(again) == names(once)[::-1], column
        assert sorted(names(once)) == NAMES
    by_status = await browser.get(link(first, "Status"))
    assert names(by_status)[0] == NAMES[3], "what needs attention comes first"


async def test_metadata_is_listed_exported_and_searched_by_key_and_text(dashboard: Dashboard, browser: Browser) -> None:
    async with dashboard.service.database.transaction() as connection:
        await connection.execute(
            "update domains set metadata = jsonb_build_object('plan', 'Pro', 'id', domain) where domain = any($1)",
            NAMES[1:4],
        )
    listed = await browser.get("/dashboard/domains?text=plan=Pro&sort=-added")
    assert names(listed) == NAMES[1:4]
    assert f"plan=Pro, id={NAMES[1]}" in listed.words or f"id={NAMES[1]}, plan=Pro" in listed.words
    for query, found in (
        ("plan=Pro&status=problem", [NAMES[3]]),
        ("plan=Pro&status=active", NAMES[1:3]),
        ("plan=Pro&product=secure", []),
        (f"id={NAMES[2]}", [NAMES[2]]),
        ("plan=pro", []),
        ("plan=%00", []),
    ):
        assert names(await browser.get(f"/dashboard/domains?text={query}")) == found, query
    exported = (await browser.get("/dashboard/domains/export?text=plan=Pro")).text.splitlines()
    assert len(exported) == 4
    assert "Pro" in exported[1]
    assert NAMES[1] in (await browser.get("/dashboard/search?q=plan=Pro")).words
    stranger = await dashboard.signed_in("eve@other.example", await dashboard.organisation("Other"), "owner")
    assert names(await stranger.get("/dashboard/domains?text=plan=Pro")) == []


async def test_a_name_without_a_certificate_says_so(browser: Browser) -> None:
    page = await browser.get("/dashboard/domains")
    assert page.words.count("None yet") == len(NAMES)
    assert page.words.count("No certificate yet") == len(NAMES) - 1  # of the other one the DNS comes first
    assert "Active" not in page.words
    path = link(page, NAMES[0])
    assert "Power: no certificate yet" in (await browser.get(path)).words


async def test_the_overview_names_a_domain_whose_order_fails(dashboard: Dashboard, browser: Browser) -> None:
    stranger = await dashboard.signed_in("mallory@theirs.example", await dashboard.organisation("Theirs"), "owner")
    assert shops(await browser.get()) == [NAMES[3]]
    async with dashboard.service.database.transaction() as connection:
        await connection.execute(
            "insert into orders (domain, application_id, state, hold_until, due_at, last_error)"
            " select domain, application_id, 'failed', now(), now() + interval '1 hour', 'it was refused'"
            " from domains where domain = any($1) on conflict (domain) do update set state = 'failed'",
            NAMES[:1] + NAMES[3:4],
        )
    overview = await browser.get()
    assert shops(overview) == [NAMES[3], NAMES[0]]
    assert "No certificate yet" in overview.words
    operator = await dashboard.signed_in("ops@example.com")
    assert shops(await operator.get()) == [NAMES[3], NAMES[0]]
    assert NAMES[0] not in (await stranger.get()).words


async def test_a_domain_with_two_problems_is_named_once_by_the_graver(dashboard: Dashboard, browser: Browser) -> None:
    async with dashboard.service.database.transaction() as connection:
        await connection.execute(
            "insert into orders (domain, application_id, state, hold_until, due_at, last_error)"
            " select domain, application_id, 'failed', now(), now() + interval '1 hour', 'it was refused'"
            " from domains where domain = any($1) on conflict (domain) do update set state = 'failed'",
            NAMES[:2],
        )
        await policies.put(connection, "domain", NAMES[1], 403, "abuse")
    for path, expected in (
        ("/dashboard", [NAMES[3], NAMES[1], NAMES[0]]),
        ("/dashboard/domains?status=problem", [NAMES[1], NAMES[0], NAMES[3]]),
    ):
        page = await browser.get(path)
        assert shops(page) == expected
        assert page.words.count("Blocked") == 1


NOT_BY_INDEX = SearchLimits(window=2, walked=2, fewest_characters=100)


@pytest.mark.parametrize("bounds", [Bounds(search=NOT_BY_INDEX)], ids=["small"])
async def test_a_search_that_found_nothing_yet_goes_on(browser: Browser) -> None:
    page = await browser.get("/dashboard/domains?text=shop5")
    while "Search on" in page.text:
        assert names(page) == []
        page = await browser.get(link(page, "Search on"))
    assert names(page) == [NAMES[5]]
