"""The first step: whatever people type where a domain is asked for."""

from __future__ import annotations

from typing import Any

from playwright.async_api import Browser, Page, expect

from tests.browser import SESSION_LOOP
from tests.sdk.scripted_api import API, CONFIG, ScriptedApi, connect, open_page, shows

pytestmark = SESSION_LOOP

TYPED = [
    ("example.com", "example.com", None),
    ("  EXAMPLE.com. ", "example.com", None),
    ("https://www.example.com/path?q=1#top", "www.example.com", None),
    ("http:/example.com", "example.com", None),
    ("//example.com:8443/", "example.com", None),
    ("me@example.com", "example.com", None),
    ("mailto:Me.Too@shop.example.co.uk", "shop.example.co.uk", None),
    ("<https://example.com/>,", "example.com", None),
    ("*.example.com", "example.com", None),
    ("bücher.example", "xn--bcher-kva.example", None),
    ("XN--BCHER-KVA.example", "xn--bcher-kva.example", None),
    ("例え.テスト", "xn--r8jz45g.xn--zckzah", None),
    ("ｅｘａｍｐｌｅ。ｃｏｍ", "example.com", None),
    ("exam\u200bple.com", "example.com", None),
    ("_acme.example.com", "_acme.example.com", None),
    ("example.con", "example.con", "example.com"),
    ("example.ogr", "example.ogr", "example.org"),
    ("shop.example.co.ku", "shop.example.co.ku", "shop.example.co.uk"),
    ("ww.example.com", "ww.example.com", "www.example.com"),
    ("wwwexample.com", "wwwexample.com", "www.example.com"),
    ("example.co", "example.co", None),
    ("example.cm", "example.cm", None),
]
NO_DOMAINS = [
    ("", "domain_empty", None),
    ("https://", "domain_empty", None),
    ("example", "domain_ending", None),
    ("examplecom", "domain_ending", "example.com"),
    ("192.0.2.1", "domain_address", None),
    ("http://[2001:db8::1]/", "domain_address", None),
    ("example,com", "domain_characters", "example.com"),
    ("example com", "domain_characters", "example.com"),
    ("example..com", "domain_characters", "example.com"),
    ("exam!ple.com", "domain_characters", None),
    ("<script>.com", "domain_characters", None),
    ("a" * 64 + ".com", "domain_characters", None),
]


async def test_what_people_type_is_read_as_the_domain_they_mean(page: Page) -> None:
    read = f"typed => import('{API}/source/domain_input.js').then(({{readDomain}}) => typed.map(readDomain))"
    found: list[dict[str, Any]] = await page.evaluate(read, [typed for typed, *_ in (*TYPED, *NO_DOMAINS)])
    right = [(typed, each["name"], each["suggestion"]) for each, (typed, *_) in zip(found, TYPED, strict=False)]
    assert right == TYPED
    assert {each["problem"] for each in found[: len(TYPED)]} == {None}
    wrong = [
        (typed, each["problem"], each["suggestion"])
        for each, (typed, *_) in zip(found[len(TYPED) :], NO_DOMAINS, strict=True)
    ]
    assert wrong == NO_DOMAINS


async def test_a_hint_is_taken_by_a_click_and_left_by_a_second_continue(api: ScriptedApi, page: Page) -> None:
    await connect(page)
    field = page.locator("#domain")
    await expect(field).to_be_focused()
    await field.fill("example.con")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("Did you mean")).to_be_visible()
    assert api.requests == []
    await page.get_by_role("button", name="example.com").click()
    await expect(field).to_have_value("example.com")
    await field.fill("other.con")
    await page.get_by_role("button", name="Continue").click()
    await page.get_by_role("button", name="Continue").click()
    await shows(page, "checking")
    assert api.bodies("/connect/flows")[0]["domain"] == "other.con"


async def test_a_problem_stands_beside_the_field_and_is_read_out(page: Page) -> None:
    await connect(page)
    await page.keyboard.type("example")
    await page.keyboard.press("Enter")
    field = page.locator("#domain")
    await expect(field).to_have_attribute("aria-invalid", "true")
    await expect(page.get_by_role("alert").filter(has_text="ending is missing")).to_be_visible()
    await expect(field).to_be_focused()
    await page.keyboard.type(".com")
    await expect(field).to_have_attribute("aria-invalid", "false")


async def test_a_domain_that_the_api_refuses_is_said_beside_the_field(chromium: Browser, api: ScriptedApi) -> None:
    api.on["create"] = (400, {"message": "Invalid 'domain' parameter", "hint": "expected a root domain: example.com"})
    page = await open_page(await chromium.new_context(), api)
    await connect(page)
    await page.keyboard.type("shop.example.com")
    await page.keyboard.press("Enter")
    await expect(page.locator("#domain")).to_have_attribute("aria-invalid", "true")
    await expect(page.get_by_text("expected a root domain")).not_to_be_visible()
    await page.get_by_text("Details").click()
    await expect(page.get_by_text("expected a root domain")).to_be_visible()
    await expect(page.locator("#domain")).to_have_value("shop.example.com")


async def test_the_domain_of_a_mail_provider_is_not_taken(api: ScriptedApi, page: Page) -> None:
    await connect(page)
    await page.keyboard.type("me@gmail.com")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert").filter(has_text="belongs to an e-mail provider")).to_be_visible()
    assert api.requests == []


async def test_one_of_several_prefilled_domains_is_chosen(api: ScriptedApi, page: Page) -> None:
    await connect(page, CONFIG | {"prefilledDomain": ["one.example", "two.example"]})
    await expect(page.get_by_role("radio", name="one.example")).to_be_focused()
    await expect(page.locator("#domain")).to_be_hidden()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await shows(page, "checking")
    assert api.bodies("/connect/flows")[0]["domain"] == "two.example"


async def test_one_prefilled_domain_is_looked_at_at_once(page: Page) -> None:
    await connect(page, CONFIG | {"prefilledDomain": "shop.customer.example"})
    await shows(page, "checking")
    await page.get_by_role("button", name="Back").click()
    await expect(page.locator("#domain")).to_have_value("shop.customer.example")
