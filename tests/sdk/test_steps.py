"""The modal's way from a domain to HTTPS, step by step; each step's picture goes to ``tests/output/``."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser import SESSION_LOOP, axe, screenshot
from tests.sdk.scripted_api import (
    ADD,
    CHECKING,
    CHOSEN,
    CONFIG,
    CONFLICTED,
    PLANNED,
    RECORD,
    WAYS,
    WRITTEN,
    ScriptedApi,
    connect,
    open_page,
    shows,
)

pytestmark = SESSION_LOOP

MANUAL = {"state": "waiting", "way": "manual", "setup_type": "manual"}
AUTOMATIC = {"way": "provider_api", "setup_type": "automatic", "written": WRITTEN}
LIVE = [RECORD | {"status": "propagated"}]
PENDING = [{"product": "secure", "name": "shop.customer.example", "status": "pending"}]
ISSUING = [{"product": "secure", "name": "shop.customer.example", "status": "success", "certificate": "ordering"}]
READY = [ISSUING[0] | {"certificate": "live"}]
TAKEN_BACK = [{**entry, "status": "taken_back"} for entry in WRITTEN]
RECORDING = (
    "{onFrontageClose: detail => { window.onClose = detail },"
    " onSuccess: detail => { window.onDone = detail },"
    " onFrontageStepChange: detail => { (window.steps ??= []).push(detail.step) }}"
)


async def opened_at(chromium: Browser, flow: dict[str, Any], step: str, **options: Any) -> tuple[Page, ScriptedApi]:
    """A modal whose flow is in this state already."""
    api = ScriptedApi()
    api.on["create"] = flow
    page = await open_page(await chromium.new_context(**options), api)
    await connect(page, CONFIG | {"prefilledDomain": "shop.customer.example"}, RECORDING)
    await shows(page, step)
    return page, api


async def closed_with(page: Page) -> Any:
    await page.get_by_role("button", name="Close").first.click()
    return await (await page.wait_for_function("window.outcome")).json_value()


async def test_by_hand_from_the_domain_to_https(chromium: Browser, api: ScriptedApi) -> None:
    page = await open_page(await chromium.new_context(permissions=["clipboard-read", "clipboard-write"]), api)
    await connect(page, CONFIG, RECORDING)
    await screenshot(page, "domain")
    await page.keyboard.type("https://shop.customer.example/")
    await page.keyboard.press("Enter")
    await shows(page, "checking")
    await screenshot(page, "checking")
    api.set(**PLANNED)
    await shows(page, "way")
    await screenshot(page, "way")
    api.on["apply"] = MANUAL | {"propagation": {"status": "pending", "next_look_at": None}}
    await page.get_by_role("button", name="By hand").click()
    await shows(page, "manual")
    await screenshot(page, "manual")
    assert api.bodies("/apply") == [{"way": "manual", "digest": "d1"}]
    record = page.get_by_role("region", name="CNAME shop")
    await expect(record).to_contain_text("Target")  # the provider's word for the value
    await record.get_by_role("button", name="Copy: CNAME Target").click()
    assert await page.evaluate("navigator.clipboard.readText()") == "apps.partner.example."
    await expect(record.get_by_text("Copied")).to_be_visible()
    await expect(record.get_by_text("Not seen yet")).to_be_visible()
    api.set(records=LIVE)
    await expect(record.get_by_text("Live")).to_be_visible()
    api.set(state="enrolling", enrolments=PENDING)
    await shows(page, "records")
    await screenshot(page, "records")
    api.set(state="finished", enrolments=ISSUING)
    await shows(page, "done")
    link = page.get_by_role("link", name="Open shop.customer.example")
    await expect(page.get_by_text("Being issued")).to_be_visible()
    await expect(link).to_have_count(0)
    await screenshot(page, "done-certificate")
    api.set(enrolments=READY)
    await expect(link).to_be_visible()
    await screenshot(page, "done")
    await expect(link).to_have_attribute("href", "https://shop.customer.example/")
    success = {"domain": "shop.customer.example", "setupType": "manual", "provider": "Cloudline", "jobId": "job_1"}
    assert await page.evaluate("window.onDone") == success
    closed = {
        "domain": "shop.customer.example",
        "success": True,
        "setupType": "manual",
        "provider": "Cloudline",
        "lastStatus": "FINISHED_SUCCESSFULLY",
    }
    assert await closed_with(page) == closed
    assert await page.evaluate("window.onClose") == closed
    assert await page.evaluate("window.steps") == ["domain", "checking", "way", "manual", "records", "done"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
async def test_a_site_that_is_up_is_prepared_before_its_records_change(
    chromium: Browser, scheme: Literal["light", "dark"], width: int
) -> None:
    value = f"{'k' * 32}.acme.frontage.example"
    record = {"type": "CNAME", "host": "_acme-challenge.shop.customer.example", "value": value, "state": "missing"}
    domain = {"domain": "shop.customer.example", "state": "waiting", "reason": None, "record": record}
    api = ScriptedApi()
    api.on |= {"create": CONFLICTED, "prepare": {"domains": [domain]}}
    api.preparation["isOffered"] = True
    context = await chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = await open_page(context, api)
    await connect(page, CONFIG | {"prefilledDomain": "shop.customer.example"}, RECORDING)
    await shows(page, "conflicts")
    start = page.get_by_role("button", name="Prepare it first")
    await expect(start).to_be_visible()
    await screenshot(page, f"prepare-offer-{scheme}-{width}")
    await start.click()
    await shows(page, "prepare")
    card = page.get_by_role("region", name="CNAME _acme-challenge.shop")
    await expect(card).to_contain_text(value)
    await expect(card.get_by_text("Not seen yet")).to_be_visible()
    go_on = page.get_by_role("button", name="Continue")
    await expect(go_on).to_be_disabled()
    await screenshot(page, f"prepare-{scheme}-{width}")
    assert await axe(page) == []
    ready = {"state": "prepared", "record": record | {"state": "found"}}
    api.preparation["domains"] = [domain | ready]
    await expect(card.get_by_text("Live")).to_be_visible()
    await expect(page.get_by_text("no visitor is interrupted")).to_be_visible()
    await screenshot(page, f"prepare-ready-{scheme}-{width}")
    await go_on.click()
    await shows(page, "conflicts")
    await expect(page.get_by_text("shop.customer.example is prepared")).to_be_visible()
    assert len(api.bodies("/prepare")) == 1
    await page.get_by_role("button", name="Agree to these changes").click()
    await shows(page, "way")


async def test_a_wildcards_record_is_asked_for_before_the_ways(chromium: Browser, api: ScriptedApi) -> None:
    api.on |= {"create": PLANNED}
    api.preparation |= {"isOffered": True, "isNeeded": True}
    page = await open_page(await chromium.new_context(), api)
    await connect(page, CONFIG | {"prefilledDomain": "customer.example"}, RECORDING)
    await shows(page, "way")
    await expect(page.get_by_text("A wildcard needs one record first")).to_be_visible()
    await screenshot(page, "prepare-wildcard")
    await page.get_by_role("button", name="Prepare it first").click()
    await shows(page, "prepare")


async def test_a_name_that_cannot_be_prepared_is_said_to_be_and_the_plan_goes_on(
    chromium: Browser, api: ScriptedApi
) -> None:
    api.on |= {"create": CONFLICTED}
    api.preparation["isOffered"] = True
    page = await open_page(await chromium.new_context(), api)
    await connect(page, CONFIG | {"prefilledDomain": "shop.customer.example"}, RECORDING)
    await shows(page, "conflicts")
    start = page.get_by_role("button", name="Prepare it first")
    await expect(start).to_be_visible()
    api.on["prepare"] = (409, {"message": "Flow is not in a state for this", "code": "not_preparable"})
    await start.click()
    await expect(page.get_by_text("cannot be prepared at the moment")).to_be_visible()
    await page.get_by_role("button", name="Not now").click()
    await shows(page, "conflicts")


async def test_conflicts_are_shown_before_and_after_and_undone(chromium: Browser) -> None:
    page, api = await opened_at(chromium, CONFLICTED, "conflicts")
    await screenshot(page, "conflicts")
    await expect(page.locator("del").filter(has_text="192.0.2.10")).to_be_visible()
    await expect(page.get_by_text("include:_spf.mail.example include:_spf.partner.example")).to_be_visible()
    await page.get_by_role("button", name="Agree to these changes").click()
    await page.get_by_role("button", name="with an API token").click()
    await shows(page, "credentials")
    await screenshot(page, "credentials")
    await page.get_by_role("button", name="Set up now").click()
    await expect(page.get_by_text("This field is needed.")).to_be_visible()
    assert api.bodies("/apply") == []
    api.on["apply"] = AUTOMATIC | {"state": "propagating", "records": LIVE}
    await page.get_by_label("API token").fill("secret-token")
    await page.keyboard.press("Enter")
    await shows(page, "records")
    assert api.bodies("/apply") == [
        {"way": "provider_api", "digest": "d2", "credentials": {"auth_token": "secret-token"}}
    ]
    api.set(state="finished", enrolments=READY)
    await shows(page, "done")
    await page.get_by_role("button", name="Undo the changes").click()
    await shows(page, "undo")
    await screenshot(page, "undo")
    assert "secret-token" not in await page.content()
    await page.get_by_label("API token").fill("secret-token")
    api.on["undo"] = {"state": "undone", "written": TAKEN_BACK}
    await page.keyboard.press("Enter")
    await shows(page, "undone")
    await screenshot(page, "undone")
    assert api.bodies("/undo") == [{"credentials": {"auth_token": "secret-token"}}]


async def test_a_zone_that_changed_meanwhile_gives_the_new_plan(chromium: Browser) -> None:
    page, api = await opened_at(chromium, PLANNED, "way")
    api.on["apply"] = (409, {"message": "The plan has changed", "code": "zone_changed"})
    await page.locator("[data-way=dynamic_update]").click()
    api.set(**CONFLICTED)
    await page.get_by_role("button", name="Set up now").click()
    await shows(page, "conflicts")
    await expect(page.get_by_role("alert").filter(has_text="have changed meanwhile")).to_be_visible()


async def test_half_written_says_what_and_tries_again_or_undoes(chromium: Browser) -> None:
    half = [WRITTEN[0], {**WRITTEN[1], "status": "not_written"}]
    error = {"code": "rate_limited", "message": "Cloudline asks to wait."}
    page, api = await opened_at(
        chromium, CONFLICTED | AUTOMATIC | {"state": "halted", "written": half, "error": error}, "halted"
    )
    await screenshot(page, "halted")
    await expect(page.get_by_role("heading", name="Not everything could be written")).to_be_visible()
    await expect(page.get_by_role("alert")).to_contain_text("Try again in a minute.")
    await expect(page.get_by_role("button", name="Undo the changes")).to_be_visible()
    api.on["plan"] = {"state": "checking"}
    await page.get_by_role("button", name="Try again").click()
    await shows(page, "checking")
    assert (await closed_with(page))["lastStatus"] == "IN_PROGRESS"


async def test_nothing_written_says_so_in_the_title_too(chromium: Browser) -> None:
    none = [{**each, "status": "not_written"} for each in WRITTEN]
    error = {"code": "provider_refused", "message": "Cloudline refuses the zone."}
    page, _ = await opened_at(chromium, PLANNED | {"state": "halted", "written": none, "error": error}, "halted")
    await screenshot(page, "halted-nothing")
    await expect(page.get_by_role("heading", name="Nothing could be written")).to_be_visible()
    await expect(page.get_by_text("Nothing was written.")).to_be_visible()
    await expect(page.get_by_role("button", name="Undo the changes")).to_have_count(0)


UNKNOWN_PROVIDER = {"id": "", "name": "Unknown", "helpUrl": None}
SERVER_WAYS = [
    {
        "way": "dynamic_update",
        "fields": [{"name": "key_name", "label": "Name of the TSIG key", "isSecret": False, "isRequired": True}],
    },
    {"way": "manual", "fieldNames": {"host": "Host", "value": "Value"}, "hostStyle": "relative"},
]
AT_A_SERVER = PLANNED | {"provider": UNKNOWN_PROVIDER, "ways": SERVER_WAYS}


async def test_a_refusal_of_an_unknown_provider_has_a_subject(chromium: Browser) -> None:
    none = [{**each, "status": "not_written"} for each in WRITTEN]
    flow = {"state": "halted", "way": "dynamic_update", "written": none, "error": {"code": "wrong_token"}}
    page, _ = await opened_at(chromium, AT_A_SERVER | flow, "credentials")
    await expect(page.get_by_text("Your DNS server does not accept this.")).to_be_visible()


async def test_fields_have_names_in_the_language_of_the_modal(chromium: Browser, api: ScriptedApi) -> None:
    api.on["create"] = AT_A_SERVER
    page = await open_page(await chromium.new_context(), api)
    await connect(page, CONFIG | {"prefilledDomain": "shop.customer.example", "locale": "de"})
    await shows(page, "way")
    await page.locator("[data-way=dynamic_update]").click()
    await expect(page.get_by_label("Name des TSIG-Schlüssels")).to_be_visible()
    await page.get_by_role("button", name="Zurück").click()
    api.on["apply"] = {"state": "waiting", "way": "manual"}
    await page.locator("[data-way=manual]").click()
    await shows(page, "manual")
    await expect(page.locator("dt").filter(has_text="Wert")).to_be_visible()


async def test_after_the_last_look_nothing_turns_and_what_is_missing_is_marked(chromium: Browser) -> None:
    records: list[dict[str, Any]] = CONFLICTED["records"]
    live, unknown = records
    records = [live | {"status": "propagated"}, unknown | {"status": "unknown"}]
    page, _ = await opened_at(chromium, CONFLICTED | AUTOMATIC | {"state": "timed_out", "records": records}, "timeout")
    await screenshot(page, "timeout")
    await expect(page.locator("dialog .looked svg.good")).to_have_count(1)
    await expect(page.locator("dialog .looked svg.warn")).to_have_count(1)
    await expect(page.get_by_text("Not seen yet")).to_be_visible()
    await expect(page.locator("dialog .spin")).to_have_count(0)


async def test_a_domain_connect_provider_opens_in_a_window_and_the_dns_decides(chromium: Browser) -> None:
    page, api = await opened_at(chromium, PLANNED, "way")
    await page.get_by_role("button", name="Automatically, at Cloudline").click()
    url = "https://cloudline.example/consent"
    api.on["apply"] = {
        "state": "waiting",
        "way": "domain_connect",
        "setup_type": "automatic",
        "handover": {"url": url, "returned": None},
    }
    async with page.context.expect_page() as opening:
        await page.get_by_role("button", name="Go to Cloudline").click()
    window = await opening.value
    await window.wait_for_url(url)
    assert await window.evaluate("window.opener") is None
    await shows(page, "login")
    await screenshot(page, "login")
    api.set(state="propagating", records=LIVE)
    await shows(page, "records")


async def test_a_blocked_window_leaves_a_link(chromium: Browser) -> None:
    page, api = await opened_at(
        chromium, PLANNED | {"ways": [{**WAYS[0], "width": 620, "height": 700}, WAYS[-1]]}, "way"
    )
    await page.evaluate("window.open = (...given) => { window.opening = given; return null }")
    await page.get_by_role("button", name="Automatically, at Cloudline").click()
    url = "https://cloudline.example/consent"
    handover = {"url": url, "returned": None, "error": None, "description": None}
    api.on["apply"] = {"state": "waiting", "way": "domain_connect", "setup_type": "automatic", "handover": handover}
    await page.get_by_role("button", name="Go to Cloudline").click()
    await shows(page, "login")
    await screenshot(page, "login-blocked")
    assert "popup,width=620,height=700," in (await page.evaluate("window.opening"))[2]
    await expect(page.get_by_text("The window was blocked.")).to_be_visible()
    link = page.get_by_role("link", name="Open Cloudline again")
    await expect(link).to_have_attribute("href", url)
    await expect(link).to_have_attribute("rel", "noopener noreferrer")
    api.set(handover=handover | {"returned": "error", "error": "server_error", "description": "<i>locked</i>"})
    await page.locator("dialog summary").click()
    await expect(page.get_by_text("<i>locked</i>")).to_be_visible()
    api.on["plan"] = CHECKING
    await page.get_by_role("button", name="Choose another way").click()
    await shows(page, "checking")


async def test_closing_at_a_step_reports_that_step(chromium: Browser) -> None:
    for flow, step, status in (
        (CHECKING, "checking", "IN_PROGRESS"),
        (CONFLICTED, "conflicts", "EXISTING_RECORDS"),
        (PLANNED | MANUAL, "manual", "MANUAL_CONFIGURATION"),
        (PLANNED | {"state": "waiting", "way": "domain_connect"}, "login", "LOGIN"),
        (
            CHOSEN | {"state": "unchecked", "error": {"code": "servfail", "message": "…"}},
            "unchecked",
            "EXIT_WITH_ERROR",
        ),
    ):
        page, _ = await opened_at(chromium, flow, step)
        await screenshot(page, step)
        closed = await closed_with(page)
        assert (closed["lastStatus"], closed["success"]) == (status, False)
        assert ("error" in closed) is (status == "EXIT_WITH_ERROR")
        await page.context.close()


async def test_back_leads_to_the_step_before_and_nothing_is_lost(chromium: Browser) -> None:
    page, api = await opened_at(chromium, CONFLICTED, "conflicts")
    await page.get_by_role("button", name="Agree to these changes").click()
    await page.get_by_role("button", name="with an API token").click()
    back = page.get_by_role("button", name="Back")
    for step in ("way", "conflicts", "domain"):
        await back.click()
        await shows(page, step)
    await expect(page.locator("#domain")).to_have_value("shop.customer.example")
    await expect(back).to_be_hidden()
    api.on["domain"] = PLANNED
    await page.keyboard.press("Enter")
    await shows(page, "way")
    assert api.bodies("/domain") == [{"domain": "shop.customer.example"}]


async def test_reopened_with_the_same_domain_it_goes_on_where_it_was(chromium: Browser) -> None:
    page, api = await opened_at(chromium, PLANNED | MANUAL, "manual")
    await closed_with(page)
    await page.reload()
    await connect(page, CONFIG)
    await page.keyboard.type("shop.customer.example")
    await page.keyboard.press("Enter")
    await shows(page, "manual")
    assert len(api.bodies("/connect/flows")) == 1
    await page.get_by_role("button", name="Close").first.click()
    await connect(page, CONFIG | {"monitor": True, "prefilledDomain": "shop.customer.example"})
    await shows(page, "manual")
    assert len(api.bodies("/connect/flows")) == 2, "another configuration is another flow"


async def test_a_link_for_a_colleague(chromium: Browser) -> None:
    page, api = await opened_at(chromium, PLANNED, "way")
    link = "https://api.frontage.example/share/abcdefghijklmnopqrstuvwx"
    api.on["share"] = {"link": link, "expires_at": "2036-01-02T00:00:00Z"}
    await page.get_by_role("button", name="colleague").click()
    await expect(page.get_by_role("textbox", name="Link")).to_have_value(link)
    await screenshot(page, "share")
    await page.get_by_role("button", name="Back").first.click()
    await shows(page, "way")


async def test_every_step_is_accessible_in_light_dark_and_on_a_phone(chromium: Browser) -> None:
    steps: dict[str, dict[str, Any]] = {
        "checking": CHECKING,
        "unchecked": CHOSEN | {"state": "unchecked", "error": {"code": "servfail", "message": "…"}},
        "conflicts": CONFLICTED,
        "way": PLANNED,
        "manual": CONFLICTED | MANUAL,
        "login": PLANNED | {"state": "waiting", "way": "domain_connect"},
        "applying": PLANNED | {"state": "applying", "written": [{**ADD, "status": "writing"}]},
        "halted": PLANNED | {"state": "halted", "error": {"code": "provider_refused", "message": "…"}},
        "records": PLANNED | AUTOMATIC | {"state": "enrolling", "enrolments": PENDING},
        "timeout": PLANNED | AUTOMATIC | {"state": "timed_out"},
        "done": PLANNED | AUTOMATIC | {"state": "finished", "enrolments": READY},
        "undone": PLANNED | {"state": "undone", "written": TAKEN_BACK},
    }
    kinds: dict[str, dict[str, Any]] = {
        "dark": {"color_scheme": "dark"},
        "light": {},
        "phone": {"viewport": {"width": 320, "height": 640}, "reduced_motion": "reduce"},
    }
    for kind, options in kinds.items():
        page, api = await opened_at(chromium, CHECKING, "checking", **options)
        shade = await page.locator("dialog").evaluate("e => getComputedStyle(e).backgroundColor")
        assert shade == ("rgb(23, 25, 30)" if kind == "dark" else "rgb(255, 255, 255)")
        for step, flow in steps.items():
            if api.flow["state"] in ("timed_out", "finished"):  # it is followed no longer
                await page.context.close()
                page, api = await opened_at(chromium, flow, step, **options)
            api.set(**flow)
            await shows(page, step)
            await screenshot(page, f"{step}-{kind}")
            assert (step, kind, await axe(page)) == (step, kind, [])
            wide = "document.querySelector('frontage-connect').shadowRoot.querySelector('.content')"
            assert await page.evaluate(f"{wide}.scrollWidth <= {wide}.clientWidth"), (step, kind)
        await page.context.close()
