"""The modal forgives: a wrong credential, a page that is loaded again, a window that was closed, an Escape too many."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Browser, expect

from tests.browser import SESSION_LOOP, axe, screenshot
from tests.sdk.scripted_api import ADD, CONFIG, PLANNED, WAYS, ScriptedApi, connect, open_page, shows
from tests.sdk.test_steps import AT_A_SERVER, LIVE, MANUAL, RECORDING, closed_with, opened_at

pytestmark = SESSION_LOOP

OWN_SERVER = {
    "way": "dynamic_update",
    "fields": [
        {"name": "key_name", "label": "Name of the TSIG key", "isSecret": False, "isRequired": True},
        {"name": "key_secret", "label": "Secret of the key (base64)", "isSecret": True, "isRequired": True},
    ],
}
REFUSED = {
    "state": "halted",
    "way": "dynamic_update",
    "error": {"code": "wrong_token", "message": "The name server does not accept this key."},
}


async def typed_key(chromium: Browser, answer: dict[str, Any], *, answers: bool = True) -> tuple[Any, ScriptedApi]:
    """A modal in which a TSIG key was sent, and answered so; `answers`: at once."""
    planned = PLANNED | {"ways": [WAYS[0], OWN_SERVER, WAYS[-1]]}
    page, api = await opened_at(chromium, planned, "way")
    await page.locator("[data-way=dynamic_update]").click()
    if not answers:
        api.may_answer.clear()
    api.on["apply"] = answer
    await page.locator("[name=key_name]").fill("frontage.")
    await page.locator("[name=key_secret]").fill("d3Jvbmc=")
    await page.keyboard.press("Enter")
    return page, api


async def test_a_wrong_credential_leads_back_to_the_form_and_keeps_what_is_no_secret(chromium: Browser) -> None:
    page, api = await typed_key(chromium, REFUSED)
    await expect(page.get_by_role("alert").filter(has_text="does not accept this")).to_be_visible()
    await shows(page, "credentials")
    name, secret = page.locator("[name=key_name]"), page.locator("[name=key_secret]")
    await expect(name).to_have_value("frontage.")
    await expect(secret).to_have_value("")
    await expect(name).to_be_focused()
    await expect(name).to_have_attribute("aria-invalid", "true")
    await expect(secret).to_have_attribute("aria-invalid", "true")
    await axe(page)
    await screenshot(page, "credentials-refused")
    api.on["plan"] = {"state": "planned", "error": None}
    api.on["apply"] = {"state": "propagating", "records": LIVE, "error": None}
    await secret.fill("cmlnaHQ=")
    await expect(name).to_have_attribute("aria-invalid", "false")
    await page.keyboard.press("Enter")
    await shows(page, "records")
    assert [body["credentials"]["key_secret"] for body in api.bodies("/apply")] == ["d3Jvbmc=", "cmlnaHQ="]
    assert len(api.bodies("/plan")) == 1
    assert await page.evaluate("window.steps.filter(step => step === 'halted')") == []


async def test_an_address_at_which_nothing_answers_is_marked_and_can_be_corrected(chromium: Browser) -> None:
    server = {"name": "server", "label": "Primary server", "isSecret": False, "isRequired": False}
    own_server = OWN_SERVER | {"fields": [*OWN_SERVER["fields"], server]}
    page, api = await opened_at(chromium, PLANNED | {"ways": [WAYS[0], own_server, WAYS[-1]]}, "way")
    await page.locator("[data-way=dynamic_update]").click()
    unreachable = {"code": "provider_unreachable", "message": "The name server did not answer."}
    api.on["apply"] = {"state": "halted", "way": "dynamic_update", "error": unreachable}
    for name, value in (("key_name", "frontage."), ("key_secret", "cmlnaHQ="), ("server", "ns1.custmer.example")):
        await page.locator(f"[name={name}]").fill(value)
    await page.keyboard.press("Enter")
    address = page.locator("[name=server]")
    await expect(address).to_have_attribute("aria-invalid", "true")
    await expect(page.get_by_role("alert").filter(has_text="Nothing answers at this address")).to_be_visible()
    await expect(address).to_be_focused()
    await expect(address).to_have_value("ns1.custmer.example")
    await expect(page.locator("[name=key_name]")).to_have_value("frontage.")
    await expect(page.locator("[name=key_secret]")).not_to_have_attribute("aria-invalid", "true")
    api.on["plan"] = {"state": "planned", "error": None}
    api.on["apply"] = {"state": "propagating", "records": LIVE, "error": None}
    await address.fill("ns1.customer.example")
    await page.locator("[name=key_secret]").fill("cmlnaHQ=")
    await page.keyboard.press("Enter")
    await shows(page, "records")
    servers = [body["credentials"]["server"] for body in api.bodies("/apply")]
    assert servers == ["ns1.custmer.example", "ns1.customer.example"]


ALGORITHM = {"name": "key_algorithm", "label": "Algorithm", "isSecret": False, "isRequired": False}


@pytest.mark.parametrize(
    ("error", "marked", "words"),
    [
        ({"code": "wrong_token"}, ["key_name", "key_secret"], "does not accept this"),
        ({"code": "wrong_token", "fields": ["key_name", "key_algorithm"]}, ["key_name", "key_algorithm"], "not accept"),
        ({"code": "wrong_token", "fields": ["key_secret"]}, ["key_secret"], "does not accept this"),
        (
            {"code": "credentials_missing", "fields": ["key_algorithm"]},
            ["key_algorithm"],
            "“hmac-sha265” is not accepted",
        ),
    ],
)
async def test_the_fields_that_were_refused_are_marked_and_no_other(
    chromium: Browser, error: dict[str, Any], marked: list[str], words: str
) -> None:
    own_server = OWN_SERVER | {"fields": [*OWN_SERVER["fields"], ALGORITHM]}
    page, api = await opened_at(chromium, PLANNED | {"ways": [WAYS[0], own_server, WAYS[-1]]}, "way")
    await page.locator("[data-way=dynamic_update]").click()
    api.on["apply"] = {"state": "halted", "way": "dynamic_update", "error": {"message": "In English.", **error}}
    typed = {"key_name": "frontage.", "key_secret": "cmlnaHQ=", "key_algorithm": "hmac-sha265"}
    for name, value in typed.items():
        await page.locator(f"[name={name}]").fill(value)
    await page.keyboard.press("Enter")
    await expect(page.locator(f"[name={marked[0]}]")).to_be_focused()
    await expect(page.get_by_role("alert").filter(has_text=words)).to_be_visible()
    await expect(page.locator("[aria-invalid=true]")).to_have_count(len(marked))
    for name in marked:
        field = page.locator(f"[name={name}]")
        await expect(field).to_have_attribute("aria-invalid", "true")
        described = await field.get_attribute("aria-describedby")
        assert words in await page.locator(f"#{described}").inner_text()
    await expect(page.locator("[name=key_algorithm]")).to_have_value("hmac-sha265")
    assert await axe(page) == []
    await screenshot(page, f"refused-{'-'.join(marked)}")
    await page.locator(f"[name={marked[-1]}]").fill("x")
    await expect(page.locator("[aria-invalid=true]")).to_have_count(0)
    await expect(page.locator("dialog .problem:visible")).to_have_count(0)


async def test_a_refusal_whose_event_comes_before_its_answer_keeps_what_is_typed(chromium: Browser) -> None:
    page, api = await typed_key(chromium, REFUSED, answers=False)
    secret = page.locator("[name=key_secret]")
    await expect(secret).to_have_attribute("aria-invalid", "true")
    await secret.fill("cmlnaHQ=")
    async with page.expect_response("**/apply"):
        api.may_answer.set()
    await expect(page.get_by_role("button", name="Back")).to_be_enabled()
    await shows(page, "credentials")
    await expect(secret).to_have_value("cmlnaHQ=")
    await expect(secret).to_be_focused()


async def test_a_zone_that_changed_meanwhile_is_shown_before_anything_is_written(chromium: Browser) -> None:
    page, api = await typed_key(chromium, REFUSED)
    await expect(page.locator("[name=key_secret]")).to_have_attribute("aria-invalid", "true")
    api.on["plan"] = {"state": "planned", "error": None, "plan": {**PLANNED["plan"], "digest": "another"}}
    await page.locator("[name=key_secret]").fill("cmlnaHQ=")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert").filter(has_text="have changed meanwhile")).to_be_visible()
    assert len(api.bodies("/apply")) == 1


async def test_a_value_that_the_api_cannot_read_is_marked(chromium: Browser) -> None:
    refusal = {"message": "The server is a host, or host:port.", "code": "credentials_missing"}
    page, _ = await typed_key(chromium, (400, refusal))  # type: ignore[arg-type]
    await expect(page.get_by_role("alert").filter(has_text="has another form")).to_be_visible()
    await expect(page.locator("[name=key_name]")).to_have_value("frontage.")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("provider_unreachable", "antwortet nicht"),
        ("zone_not_found", "hat customer.example nicht"),
        ("not_written", "die Nameserver zeigen sie nicht"),
    ],
)
async def test_failures_are_in_the_modals_language_and_the_servers_words_are_details(
    chromium: Browser, code: str, words: str
) -> None:
    halted = PLANNED | {"state": "halted", "error": {"code": code, "message": "An English sentence."}}
    api = ScriptedApi()
    api.on["create"] = halted
    page = await open_page(await chromium.new_context(), api)
    await connect(page, CONFIG | {"prefilledDomain": "shop.customer.example", "locale": "de"})
    await shows(page, "halted")
    await expect(page.get_by_role("alert")).to_contain_text(words)
    await expect(page.get_by_text("An English sentence.")).not_to_be_visible()
    await page.get_by_text("Einzelheiten").click()
    await expect(page.get_by_text("An English sentence.")).to_be_visible()


async def test_a_page_that_is_loaded_again_goes_on_where_the_person_was(chromium: Browser, api: ScriptedApi) -> None:
    api.on["create"] = PLANNED | MANUAL
    page = await open_page(await chromium.new_context(), api)
    await connect(page, CONFIG)
    await page.keyboard.type("shop.customer.example")
    await page.keyboard.press("Enter")
    await shows(page, "manual")
    await page.get_by_label("I have done this").check()
    await page.reload()
    await connect(page, CONFIG)
    await shows(page, "manual")
    await expect(page.get_by_label("I have done this")).to_be_checked()
    assert len(api.bodies("/connect/flows")) == 1


async def test_a_finished_domain_is_not_opened_again(chromium: Browser, api: ScriptedApi) -> None:
    api.on["create"] = PLANNED | {"state": "finished", "enrolments": []}
    page = await open_page(await chromium.new_context(), api)
    await connect(page, CONFIG)
    await page.keyboard.type("shop.customer.example")
    await page.keyboard.press("Enter")
    await shows(page, "done")
    await page.reload()
    await connect(page, CONFIG)
    await shows(page, "domain")
    await expect(page.get_by_role("textbox", name="Your domain")).to_have_value("")


async def test_escape_closes_the_topmost_layer_alone(chromium: Browser) -> None:
    page, api = await opened_at(chromium, PLANNED, "way")
    api.on["share"] = {"link": "https://api.frontage.example/share/x", "expires_at": "2026-12-24T00:00:00Z"}
    await page.get_by_role("button", name="Send this to a colleague").click()
    await shows(page, "share")
    await page.keyboard.press("Escape")
    await shows(page, "way")
    await page.keyboard.press("Escape")
    await page.wait_for_function("window.outcome")


async def test_a_partner_keeps_the_modal_open_and_learns_of_links_and_guides(
    chromium: Browser, api: ScriptedApi
) -> None:
    api.on["create"] = PLANNED | MANUAL
    api.on["share"] = {"link": "https://api.frontage.example/share/x", "expires_at": "2026-12-24T00:00:00Z"}
    page = await open_page(await chromium.new_context(), api)
    await connect(
        page,
        CONFIG
        | {"prefilledDomain": "shop.customer.example", "manualSetupDocumentation": "https://partner.example/dns"},
        "{onRequestClose: detail => { window.asked = detail; return !!window.mayClose },"
        " onSharedFlowSent: detail => { window.shared = detail },"
        " onManualSetupDocumentationClick: detail => { window.guide = detail }}",
    )
    await shows(page, "manual")
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Close").first.click()
    here = {"step": "manual", "domain": "shop.customer.example", "provider": "Cloudline"}
    assert await page.evaluate("window.asked") == here
    await page.get_by_role("link", name="Guide of").last.click()
    guide = {"domain": here["domain"], "provider": "Cloudline", "url": "https://partner.example/dns"}
    assert await page.evaluate("window.guide") == guide
    await page.get_by_role("button", name="Send this to a colleague").click()
    shared = await (await page.wait_for_function("window.shared")).json_value()
    assert shared == {"domain": here["domain"], "link": "https://api.frontage.example/share/x"}
    await page.keyboard.press("Escape")
    await page.evaluate("window.mayClose = true")
    assert (await closed_with(page))["lastStatus"] == "MANUAL_CONFIGURATION"


async def test_the_providers_window_is_seen_to_close(chromium: Browser) -> None:
    page, api = await opened_at(chromium, PLANNED, "way")
    await page.locator("[data-way=domain_connect]").click()
    api.on["apply"] = {
        "state": "waiting",
        "way": "domain_connect",
        "handover": {"url": "https://cloudline.example/apply", "returned": None},
    }
    async with page.expect_popup() as opening:
        await page.get_by_role("button", name="Go to Cloudline").click()
    popup = await opening.value
    await popup.wait_for_url("https://cloudline.example/apply")  # closed on the way there, it never answers
    await expect(page.get_by_role("status").filter(has_text="Waiting for you to confirm")).to_be_visible()
    await popup.close()
    await expect(page.get_by_role("status").filter(has_text="The window is closed.")).to_be_visible()


async def test_an_undone_set_up_says_so_when_it_is_closed_and_to_screen_readers(chromium: Browser) -> None:
    page, api = await opened_at(
        chromium, PLANNED | {"state": "propagating", "way": "provider_api", "records": LIVE}, "records"
    )
    status = page.locator("dialog > [role=status]")
    await expect(status).to_have_text("1 of 1 records are live")
    api.set(state="undone")
    await shows(page, "undone")
    await expect(status).to_have_text("")
    closed = await closed_with(page)
    assert (closed["lastStatus"], closed["success"]) == ("UNDONE", False)


@pytest.mark.parametrize(
    ("page_language", "browser", "title"),
    [
        ("de-AT", "fr-FR", "Ihre Domain mit Acme verbinden"),
        ("", "fr-CA", "Connectez votre domaine"),
        ("pt-br", "en-GB", "Conecte seu domínio a Acme"),
        ("pt-PT", "en-GB", "Ligue o seu domínio a Acme"),
        ("ko", "sv-SE", "Connect your domain to Acme"),
    ],
)
async def test_the_language_is_the_pages_then_the_browsers(
    chromium: Browser, page_language: str, browser: str, title: str
) -> None:
    page = await open_page(await chromium.new_context(locale=browser), ScriptedApi())
    await page.evaluate("language => { document.documentElement.lang = language }", page_language)
    await connect(page, CONFIG | {"applicationName": "Acme"})
    await shows(page, "domain")
    await expect(page.get_by_role("heading", level=2)).to_contain_text(title)


async def test_arabic_is_written_from_right_to_left(chromium: Browser) -> None:
    kinds: dict[str, dict[str, Any]] = {"desktop": {}, "phone": {"viewport": {"width": 320, "height": 640}}}
    for kind, options in kinds.items():
        api = ScriptedApi()
        api.on["create"] = PLANNED | MANUAL
        page = await open_page(await chromium.new_context(**options), api)
        await connect(page, CONFIG | {"locale": "ar", "prefilledDomain": "shop.customer.example"}, RECORDING)
        await shows(page, "manual")
        assert await page.locator("frontage-connect").get_attribute("dir") == "rtl"
        back = await page.get_by_role("button", name="رجوع").first.bounding_box()
        close = await page.get_by_role("button", name="إغلاق").first.bounding_box()
        assert back is not None
        assert close is not None
        assert back["x"] > close["x"]
        await axe(page)
        await screenshot(page, f"manual-ar-{kind}")


async def test_a_title_does_not_break_inside_a_domain(chromium: Browser) -> None:
    page, _ = await opened_at(chromium, PLANNED | {"state": "propagating", "way": "provider_api"}, "records")
    name = page.locator("h2 .name")
    await expect(name).to_have_text("shop.customer.example")
    lines = await name.evaluate("e => e.getClientRects().length")
    assert lines == 1


RIGHT = PLANNED | {"records": LIVE, "plan": {"digest": "d3", "isEmpty": True, "changes": [ADD | {"action": "keep"}]}}
KINDS: dict[str, dict[str, Any]] = {
    "desktop": {},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 740}},
    "phone-dark": {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"},
}


@pytest.mark.parametrize("kind", KINDS)
async def test_dns_that_is_right_already_goes_on_with_one_click_and_copies_nothing(
    chromium: Browser, kind: str
) -> None:
    page, api = await opened_at(chromium, RIGHT, "way", **KINDS[kind])
    await expect(page.get_by_role("heading", name="All records are in place already")).to_be_visible()
    await expect(page.get_by_text("There is nothing to copy")).to_be_visible()
    await expect(page.get_by_text("Live")).to_be_visible()
    await screenshot(page, f"right-already-{kind}")
    assert await axe(page) == []
    api.on["apply"] = MANUAL
    await page.get_by_role("button", name="Continue").click()
    await shows(page, "records")
    await expect(page.locator("dialog .copy")).to_have_count(0)
    await expect(page.get_by_role("button", name="Choose another way")).to_have_count(0)
    assert await page.evaluate("window.steps") == ["domain", "way", "records"]


async def test_a_record_that_went_meanwhile_is_there_to_copy(chromium: Browser) -> None:
    page, api = await opened_at(chromium, RIGHT, "way")
    api.on["apply"] = MANUAL
    await page.get_by_role("button", name="Continue").click()
    await shows(page, "records")
    api.set(records=PLANNED["records"])
    await shows(page, "manual")
    await expect(page.get_by_role("button", name="Copy: CNAME Target")).to_be_visible()


@pytest.mark.parametrize("kind", KINDS)
async def test_by_hand_an_unknown_provider_is_picked_from_those_that_are_known(chromium: Browser, kind: str) -> None:
    page, _ = await opened_at(chromium, AT_A_SERVER | MANUAL, "manual", **KINDS[kind])
    field = page.get_by_label("Your DNS provider")
    await field.fill("no such provider")
    await expect(page.get_by_text("This provider is not in the list.")).to_be_visible()
    await field.fill("name")
    names = page.locator("dialog .choice")
    await expect(names.first).to_have_text("Name.com")
    await field.scroll_into_view_if_needed()
    await screenshot(page, f"picker-{kind}")
    assert await axe(page) == []
    await field.fill("namecheap")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Add these records at Namecheap")).to_be_visible()
    console = page.get_by_role("link", name="Sign in at Namecheap")
    url = "https://ap.www.namecheap.com/domains/domaincontrolpanel/customer.example/advancedns"
    await expect(console).to_have_attribute("href", url)
    await screenshot(page, f"picked-{kind}")
    assert await axe(page) == []


async def test_a_provider_that_is_another_one_gives_its_own_words_and_survives_a_reload(chromium: Browser) -> None:
    page, _ = await opened_at(chromium, PLANNED | MANUAL, "manual")
    await expect(page.get_by_label("Your DNS provider")).to_be_hidden()
    await page.get_by_text("Is your DNS at another provider?").click()
    await page.get_by_label("Your DNS provider").fill("hostg")
    await page.get_by_role("button", name="HostGator").click()
    record = page.get_by_role("region", name="CNAME shop")
    await expect(record.locator("dt")).to_have_text(["Name", "Record", "TTL"])
    await expect(record.locator("code").first).to_have_text("shop.customer.example")
    await page.reload()
    await connect(page, CONFIG | {"prefilledDomain": "shop.customer.example"})
    await expect(page.get_by_role("heading", name="Add these records at HostGator")).to_be_visible()


async def test_a_known_provider_has_a_link_to_its_console(chromium: Browser) -> None:
    known = {"id": "cloudflare", "name": "Cloudflare", "helpUrl": "https://developers.cloudflare.com/dns/"}
    page, _ = await opened_at(chromium, PLANNED | MANUAL | {"provider": known}, "manual")
    console = page.get_by_role("link", name="Sign in at Cloudflare")
    await expect(console).to_have_attribute("href", "https://dash.cloudflare.com/?to=/:account/:zone/dns/records")
    await expect(page.get_by_role("link", name="Help of Cloudflare")).to_be_visible()


RAW = "RRSet modify failed: 0x2F <zone locked>"
RAW_AT: dict[str, tuple[dict[str, Any], str]] = {
    "halted": (PLANNED | {"state": "halted", "error": {"code": "odd", "message": RAW, "hint": None}}, "halted"),
    "unchecked": (PLANNED | {"state": "unchecked", "error": {"code": "servfail", "message": RAW}}, "unchecked"),
    "handed-over": (
        PLANNED
        | {
            "state": "waiting",
            "way": "domain_connect",
            "handover": {"url": "https://cloudline.example/", "returned": "error", "description": RAW},
        },
        "login",
    ),
    "enrolment": (
        PLANNED
        | {
            "state": "finished",
            "way": "manual",
            "enrolments": [
                {"product": "secure", "name": "shop.customer.example", "status": "failed", "code": "odd", "hint": RAW}
            ],
        },
        "done",
    ),
}


@pytest.mark.parametrize("place", RAW_AT)
async def test_what_a_provider_answers_in_its_own_words_stands_under_details(chromium: Browser, place: str) -> None:
    flow, step = RAW_AT[place]
    page, _ = await opened_at(chromium, flow, step)
    raw = page.get_by_text(RAW)
    await expect(raw).to_have_count(1)
    await expect(raw).to_be_hidden()
    await page.locator("dialog summary").click()
    await expect(raw).to_be_visible()
    await screenshot(page, f"details-{place}")
    assert await axe(page) == []


async def test_a_refusal_of_the_api_stands_under_details(chromium: Browser) -> None:
    page, api = await opened_at(chromium, PLANNED, "way")
    api.on["apply"] = (422, {"message": "Unprocessable", "code": "odd", "hint": RAW})
    await page.locator("[data-way=manual]").click()
    await shows(page, "error")
    await expect(page.get_by_role("alert").filter(has_text="This did not work.")).to_be_visible()
    await expect(page.get_by_text(RAW)).to_be_hidden()
    await page.locator("dialog summary").click()
    await screenshot(page, "details-error")


async def test_a_domain_that_is_refused_says_so_beside_the_field(chromium: Browser, api: ScriptedApi) -> None:
    api.on["create"] = (400, {"message": "Bad Request", "code": "odd", "hint": RAW})
    page = await open_page(await chromium.new_context(), api)
    await connect(page, CONFIG)
    await page.keyboard.type("shop.customer.example")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert").filter(has_text="This domain cannot be connected.")).to_be_visible()
    await expect(page.get_by_text(RAW)).to_be_hidden()
    await page.locator("dialog summary").click()
    await expect(page.get_by_text(RAW)).to_be_visible()
    await screenshot(page, "details-domain")
    assert await axe(page) == []
