"""The page that a partner shows its customer: by its link alone, in plain words, in the customer's language."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from api.pages import status
from common.db.pool import Database
from tests.children import ROOT
from tests.integration.api.conftest import Service
from tests.integration.api.partner import Partner

SHOP = "shop.customer.test"


async def page(service: Service, link: str, language: str = "en") -> tuple[int, str]:
    path = link.removeprefix(service.settings.base_url)
    async with service.session.get(service.url + path, headers={"Accept-Language": language}) as response:
        assert response.headers["Cache-Control"] == "no-store"
        return response.status, await response.text()


async def enrolled(service: Service) -> tuple[Partner, str]:
    """A partner with a domain, and the link to its page."""
    partner = await service.partner()
    service.point(SHOP)
    assert (await partner.post(SHOP)).status == 200
    made = await partner.call("POST", f"/domains/{SHOP}/status-link", json={})
    assert made.status == 201
    link: str = made.body["link"]
    return partner, link


async def change(database: Database, statement: str) -> None:
    async with database.connection() as connection:
        await connection.execute(statement)


async def test_the_page_says_how_the_domain_is(service: Service, database: Database) -> None:
    partner, link = await enrolled(service)
    status_code, shown = await page(service, link)
    assert status_code == 200
    assert "is almost ready" in shown
    assert "<table" not in shown, "there is nothing to set"
    assert partner.id not in shown
    assert "origin.example.com" not in shown
    await change(database, "update domains set departed_at = now()")
    shown = (await page(service, link))[1]
    assert "leads elsewhere" in shown
    assert "target-1.partner.test" in shown, "the record that is to be set"
    await partner.call("PUT", "/application", json={"maintenance": True})
    assert "is paused" in (await page(service, link))[1]
    await partner.delete(SHOP)
    assert "is not connected" in (await page(service, link))[1]


async def test_a_link_ends_by_time_by_hand_and_by_a_new_one(service: Service, database: Database) -> None:
    partner, first = await enrolled(service)
    path = f"/domains/{SHOP}/status-link"
    assert (await partner.call("GET", path)).body["link"] == first
    second = (await partner.call("POST", path, json={"expiresInDays": 1})).body["link"]
    assert (await page(service, first))[0] == 404
    assert (await page(service, second))[0] == 200
    await change(database, "update status_links set expires_at = now()")
    assert (await page(service, second))[0] == 404
    third = (await partner.call("POST", path, json={})).body["link"]
    assert (await partner.call("DELETE", path)).status == 200
    assert (await page(service, third))[0] == 404
    for method in ("GET", "DELETE"):
        gone = await partner.call(method, path)
        assert (gone.status, gone.body["code"]) == (404, "link_not_found")


@pytest.mark.parametrize("wrong", ["short", "x" * 32, "..%2f" * 8, "a" * 5000])
async def test_what_is_no_link_opens_nothing(service: Service, wrong: str) -> None:
    status_code, shown = await page(service, f"{service.settings.base_url}/status/{wrong}")
    assert status_code == 404
    assert "This link does not work" in shown


async def test_a_link_is_made_for_a_domain_of_the_application_alone(service: Service) -> None:
    await enrolled(service)
    refused = await (await service.partner()).call("POST", f"/domains/{SHOP}/status-link", json={})
    assert (refused.status, refused.body["code"]) == (404, "not_enrolled")


@pytest.mark.parametrize(
    ("language", "locale"),
    [("de-AT,de;q=0.9,en;q=0.5", "de"), ("xx, ar;q=0.8, en;q=0.1", "ar"), ("pt-br", "pt-BR"), ("q=;;,", "en")],
)
async def test_the_page_is_in_the_customers_language(service: Service, language: str, locale: str) -> None:
    _, link = await enrolled(service)
    _, shown = await page(service, link, language)
    assert f'<html lang="{locale}" dir="{"rtl" if locale == "ar" else "ltr"}">' in shown
    assert 'lang="fr"' in (await page(service, f"{link}?lang=fr", language))[1]


def test_the_page_has_the_modals_languages_and_every_word_in_each() -> None:
    modal = {path.stem for path in (Path(ROOT) / "api/sdk/words").glob("*.json")}
    assert set(status.WORDS) == modal | {"en"}
    assert {json.dumps(sorted(words)) for words in status.WORDS.values()} == {json.dumps(sorted(status.WORDS["en"]))}
