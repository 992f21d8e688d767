"""Several domains at once: chosen, checked, ended and exported; found from anywhere; and one that waits for its DNS."""

from __future__ import annotations

import csv
import io

import pytest

from common.db import domains
from common.db.users import Organisation
from tests.integration.api.partner import Partner
from tests.integration.dashboard.conftest import Browser, Dashboard, Page

NAMES = [f"shop{number}.customer.test" for number in range(3)]


@pytest.fixture
async def organisation(dashboard: Dashboard) -> Organisation:
    return await dashboard.organisation("Ours")


@pytest.fixture
async def partner(dashboard: Dashboard, organisation: Organisation) -> Partner:
    partner = await dashboard.partner(organisation)
    for name in NAMES:
        dashboard.service.point(name)
        assert (await partner.post(name)).status == 200
    return partner


@pytest.fixture
async def browser(dashboard: Dashboard, organisation: Organisation, partner: Partner) -> Browser:
    """A developer of the partner's organisation."""
    return await dashboard.signed_in("dev@ours.example", organisation)


async def choose(browser: Browser, partner: Partner, action: str, *names: str, **more: str) -> Page:
    token = (await browser.get("/dashboard/domains")).csrf
    form = [("csrf", token), ("action", action), *more.items()]
    form += [("chosen", f"power {partner.id} {name}") for name in names]
    return await browser.send("POST", "/dashboard/domains", data=form, headers={"Origin": browser.url})


async def held(dashboard: Dashboard) -> set[str]:
    async with dashboard.service.database.connection() as connection:
        return {each.domain for each in await domains.find_many(connection, NAMES)}


async def test_chosen_domains_are_ended_after_a_question(
    dashboard: Dashboard, browser: Browser, partner: Partner
) -> None:
    asked = await choose(browser, partner, "remove", *NAMES[:2])
    assert "Stop serving 2 domains?" in asked.words
    assert await held(dashboard) == set(NAMES)
    assert (await choose(browser, partner, "remove", *NAMES[:2], typed="2")).status == 303
    assert "2 domains are served no longer." in (await browser.get("/dashboard/domains")).words
    assert await held(dashboard) == {NAMES[2]}


async def test_what_is_refused_of_one_is_told_and_the_others_are_done(browser: Browser, partner: Partner) -> None:
    await choose(browser, partner, "recheck", NAMES[0], "gone.customer.test")
    words = (await browser.get("/dashboard/domains")).words
    assert "1 domain is checked again now. Not done: 1 domain. gone.customer.test" in words
    await choose(browser, partner, "recheck")
    assert "Choose domains first" in (await browser.get("/dashboard/domains")).words


@pytest.mark.parametrize("chosen", ["power", "power {id} -no-name-.test", "dns {id} shop.customer.test"])
async def test_what_is_no_row_is_refused(browser: Browser, partner: Partner, chosen: str) -> None:
    form = {"chosen": chosen.format(id=partner.id), "action": "recheck"}
    assert (await browser.post("/dashboard/domains", **form)).status == 400


async def test_nobody_else_chooses_finds_or_exports_them(dashboard: Dashboard, partner: Partner) -> None:
    stranger = await dashboard.signed_in("eve@other.example", await dashboard.organisation("Other"), "owner")
    assert (await choose(stranger, partner, "remove", NAMES[0], typed="1")).status == 404
    assert await held(dashboard) == set(NAMES)
    assert NAMES[0] not in (await stranger.get("/dashboard/search?q=shop")).words
    assert len((await stranger.get("/dashboard/domains/export")).text.splitlines()) == 1


async def test_the_list_is_counted_and_exported_as_filtered(browser: Browser, partner: Partner) -> None:
    assert "3 domains powered or secured" in (await browser.get("/dashboard/domains")).words
    table = await browser.get("/dashboard/domains/export?text=shop1")
    heads, row = csv.reader(io.StringIO(table.text))
    shown = dict(zip(heads, row, strict=True))
    assert (shown["domain"], shown["product"], shown["application id"]) == (NAMES[1], "power", partner.id)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("shop1", "Domains shop1.customer.test"),
        ("a part", "Applications A partner"),
        ("webhook", "Webhooks: deliveries"),
        ("", "Pages Overview"),
        ("no-such-thing", "No application, domain or page has this."),
    ],
)
async def test_the_search_finds_applications_domains_and_pages(browser: Browser, text: str, found: str) -> None:
    assert found in (await browser.get(f"/dashboard/search?q={text}")).words


async def test_a_domain_without_its_record_is_kept_as_pending_with_what_to_set(
    dashboard: Dashboard, browser: Browser, partner: Partner
) -> None:
    base = f"/dashboard/applications/{partner.id}"
    form = {"domain": "new.customer.test", "product": "power", "application_url": "https://origin.example.com/a"}
    page = await browser.post(f"{base}/domains/new", **form)
    assert (page.status, page.location) == (303, f"{base}/prepared/new.customer.test")
    pending = await browser.get(page.location)
    assert "its DNS does not lead here yet." in pending.words
    assert "GET /domains" not in pending.words
    assert "CNAME at new.customer.test" in pending.words
    assert f'href="{page.location}"' in (await browser.get("/dashboard/domains")).text
    ended = await browser.post(page.location)
    assert (ended.status, (await browser.get(page.location)).status) == (303, 404)
    dashboard.service.point("new.customer.test")
    assert (await browser.post(f"{base}/domains/new", **form)).location == f"{base}/domains/new.customer.test"
