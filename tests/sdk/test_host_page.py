"""The modal on pages that do their worst, with other people's tokens, on bad networks."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

from playwright.async_api import Browser, Page, expect

from api.sdk.assets import HERE
from tests.browser import SESSION_LOOP, axe, screenshot
from tests.sdk.scripted_api import API, CHECKING, CONFIG, PLANNED, SCRIPT, ScriptedApi, connect, open_page, shows

pytestmark = SESSION_LOOP

STRICT_CSP = (
    f"default-src 'none'; script-src {API}; connect-src {API}; base-uri 'none'; form-action 'none';"
    " require-trusted-types-for 'script'; trusted-types 'none'"
)
HOSTILE_CSS = """
* { font: 40px fantasy !important; color: red !important; z-index: 2147483647 !important; display: inline !important;
    position: static !important; opacity: .1 !important; letter-spacing: 1em !important; direction: rtl !important }
html { font-size: 3px; filter: blur(9px) } body { display: none !important }
dialog, frontage-connect { display: none !important; visibility: hidden !important }
::backdrop { display: none !important }
"""


def jwt(*, expires_in_seconds: float, name: str) -> str:
    """Unsigned: the browser reads only its time."""
    claims = json.dumps({"exp": time.time() + expires_in_seconds, "name": name}).encode()
    return f"e30.{base64.urlsafe_b64encode(claims).decode().rstrip('=')}.x"


async def test_under_a_strict_policy_nothing_is_refused(chromium: Browser, api: ScriptedApi) -> None:
    page = await open_page(await chromium.new_context(), api, headers={"Content-Security-Policy": STRICT_CSP})
    await page.evaluate(
        "document.addEventListener('securitypolicyviolation', event => { window.violation = event.violatedDirective })"
    )
    await page.evaluate("config => { frontage.connectDomain(config) }", CONFIG)
    await shows(page, "domain")
    await page.keyboard.type("shop.customer.example")
    await page.keyboard.press("Enter")
    await shows(page, "checking")
    api.set(**PLANNED)
    await shows(page, "way")
    assert await page.evaluate("window.violation") is None
    dialog = page.locator("dialog")
    assert await dialog.evaluate("element => getComputedStyle(element).borderRadius") == "14px"


async def test_a_browser_that_needs_a_style_element_gets_one_with_the_pages_nonce(chromium: Browser) -> None:
    policy = f"default-src 'none'; script-src 'nonce-abc'; style-src 'nonce-abc'; connect-src {API}"
    context = await chromium.new_context()
    await context.add_init_script("delete ShadowRoot.prototype.adoptedStyleSheets")
    page = await open_page(
        context,
        ScriptedApi(),
        head=f'<script nonce="abc" src="{SCRIPT}"></script>',
        headers={"Content-Security-Policy": policy},
    )
    await page.evaluate("config => { frontage.connectDomain(config) }", CONFIG)
    await shows(page, "domain")
    dialog = page.locator("dialog")
    assert await dialog.evaluate("e => e.getRootNode().adoptedStyleSheets") is None
    assert await dialog.evaluate("e => getComputedStyle(e).borderRadius") == "14px"


async def test_nothing_moves_for_people_who_asked_for_less_motion(chromium: Browser) -> None:
    page = await open_page(await chromium.new_context(reduced_motion="reduce"), ScriptedApi())
    await connect(page, CONFIG | {"prefilledDomain": "shop.customer.example"})
    await shows(page, "checking")
    assert await page.locator("dialog .spin").first.evaluate("e => getComputedStyle(e).animationName") == "none"
    seconds = await page.locator("dialog").evaluate("e => parseFloat(getComputedStyle(e).animationDuration)")
    assert seconds < 0.001


async def test_hostile_styles_inert_and_direction_do_not_reach_it(chromium: Browser, api: ScriptedApi) -> None:
    page = await open_page(
        await chromium.new_context(),
        api,
        head=f"<style>{HOSTILE_CSS}</style>",
        body="<script>document.documentElement.dir = 'rtl'; document.documentElement.inert = true</script><p>x</p>",
    )
    await connect(page)
    await shows(page, "domain")
    field = page.locator("#domain")
    await expect(field).to_be_focused()
    await page.keyboard.type("shop.customer.example")
    await screenshot(page, "hostile-page")
    style = await field.evaluate(
        "e => { const s = getComputedStyle(e); return [s.color, s.letterSpacing, s.direction, s.opacity, s.position] }"
    )
    assert style == ["rgb(20, 23, 31)", "normal", "ltr", "1", "static"]
    assert await field.evaluate("e => parseFloat(getComputedStyle(e).fontSize)") == 17
    assert await page.locator("dialog").evaluate("e => getComputedStyle(e).direction") == "ltr"
    box = await page.locator("dialog").bounding_box()
    assert box is not None
    assert box["width"] > 500
    await page.keyboard.press("Enter")
    await shows(page, "checking")


async def test_written_from_right_to_left_it_is_mirrored_and_fits(chromium: Browser, api: ScriptedApi) -> None:
    page = await open_page(await chromium.new_context(viewport={"width": 320, "height": 640}), api)
    await connect(page, CONFIG | {"prefilledDomain": "shop.customer.example"})
    await shows(page, "checking")
    await page.locator("frontage-connect").evaluate("e => { e.dir = 'rtl' }")
    api.set(**PLANNED)
    await shows(page, "way")
    await screenshot(page, "way-right-to-left")
    boxes = [await page.get_by_role("button", name=name).first.bounding_box() for name in ("Close", "Back")]
    assert boxes[0] is not None
    assert boxes[1] is not None
    assert boxes[0]["x"] < boxes[1]["x"], "Back stands where lines begin"
    content = "document.querySelector('frontage-connect').shadowRoot.querySelector('.content')"
    assert await page.evaluate(f"{content}.scrollWidth <= {content}.clientWidth")
    assert await axe(page) == []


async def test_by_keyboard_alone(chromium: Browser, api: ScriptedApi) -> None:
    api.on["create"] = PLANNED
    page = await open_page(await chromium.new_context(), api)
    await page.locator("#connect").focus()
    await connect(page)
    await page.keyboard.type("shop.customer.example")
    await page.keyboard.press("Enter")
    await shows(page, "way")
    focused = "document.querySelector('frontage-connect').shadowRoot.activeElement"
    assert await page.evaluate(f"{focused}.id") == "title", "the step's title is read out"
    await page.keyboard.press("Tab")
    assert "Automatically, at Cloudline" in await page.evaluate(f"{focused}.textContent")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await shows(page, "credentials")
    assert await page.evaluate(f"{focused}.name") == "auth_token"
    for _ in range(12):  # round and round, within the dialog
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.localName") in ("frontage-connect", "body", "html")
    await page.keyboard.press("Escape")
    await page.wait_for_function("window.outcome")
    assert await page.evaluate("document.activeElement.id") == "connect"


async def test_the_page_does_not_see_keys_pressed_in_it(page: Page) -> None:
    await page.evaluate("addEventListener('keydown', event => { window.seen = event.key })")
    await connect(page)
    await page.keyboard.type("a")
    assert await page.evaluate("window.seen") is None


async def test_a_lost_connection_is_shown_and_nothing_is_asked_twice(api: ScriptedApi, page: Page) -> None:
    await connect(page, CONFIG | {"prefilledDomain": "shop.customer.example"})
    await shows(page, "checking")
    api.is_reachable = False
    await expect(page.get_by_role("alert").filter(has_text="The connection is lost")).to_be_visible()
    await screenshot(page, "offline")
    api.set(**PLANNED)
    api.is_reachable = True
    await page.evaluate("dispatchEvent(new Event('online'))")
    await shows(page, "way")
    await expect(page.get_by_text("The connection is lost")).to_be_hidden()
    api.is_reachable = False
    await page.get_by_role("button", name="By hand").click()
    await shows(page, "error")
    await screenshot(page, "error")
    api.is_reachable = True
    await page.get_by_role("button", name="Try again").click()
    await shows(page, "way")
    assert len(api.bodies("/connect/flows")) == 1
    assert api.bodies("/apply") == []


async def test_a_token_that_expires_is_replaced_by_get_token(api: ScriptedApi, page: Page) -> None:
    fresh = jwt(expires_in_seconds=3600, name="fresh")
    callbacks = f"{{getToken: async () => {{ window.asked = (window.asked ?? 0) + 1; return '{fresh}' }}}}"
    stale = jwt(expires_in_seconds=20, name="stale")
    config = CONFIG | {"token": stale, "prefilledDomain": "shop.customer.example"}
    await connect(page, config, callbacks)
    await shows(page, "checking")
    assert set(api.tokens()) == {f"Bearer {fresh}"}
    assert await page.evaluate("window.asked") == 1


async def test_get_token_that_fails_or_hangs_is_a_clear_error_and_is_asked_again(api: ScriptedApi, page: Page) -> None:
    await page.clock.install()
    fresh = jwt(expires_in_seconds=3600, name="fresh")
    config = {key: value for key, value in CONFIG.items() if key != "token"}
    for failing, message in (
        ("throw new Error('no network')", "getToken: no network"),
        ("return 7", "getToken: it must return a token, as text"),
        ("return new Promise(() => {})", "getToken: no answer in time"),
    ):
        callbacks = f"{{getToken: async () => {{ if (!window.mended) {{ {failing} }} return '{fresh}' }}}}"
        await connect(page, config | {"prefilledDomain": "shop.customer.example"}, callbacks)
        await page.clock.run_for(31_000)
        await shows(page, "error")
        await expect(page.get_by_role("alert").filter(has_text="Your session has ended")).to_be_visible()
        await page.get_by_role("button", name="Close").first.click()
        closed: Any = await (await page.wait_for_function("window.outcome")).json_value()
        assert closed["error"] == {"code": "get_token_failed", "message": message}
    assert api.requests == []
    await connect(page, config | {"prefilledDomain": "shop.customer.example"}, callbacks)
    await page.clock.run_for(31_000)
    await shows(page, "error")
    await page.evaluate("window.mended = true")
    await page.get_by_role("button", name="Try again").click()
    await shows(page, "checking")
    assert set(api.tokens()) == {f"Bearer {fresh}"}


async def test_a_token_that_cannot_be_renewed_for_a_moment_does_not_end_what_is_followed(
    api: ScriptedApi, page: Page
) -> None:
    """As on a network that is lost while the token expires: the partner's server cannot be reached either."""
    fresh = jwt(expires_in_seconds=3600, name="fresh")
    callbacks = (
        f"{{getToken: async () => {{ window.asked = (window.asked ?? 0) + 1;"
        f" if (window.asked === 2) throw new Error('no network'); return '{fresh}' }}}}"
    )
    config = CONFIG | {"token": jwt(expires_in_seconds=20, name="stale"), "prefilledDomain": "shop.customer.example"}
    api.on["create"] = PLANNED | {"state": "checking"}
    api.on["events"] = (401, {"message": "Unauthorized"})
    await connect(page, config, callbacks)
    await page.wait_for_function("window.asked >= 2")
    await expect(page.get_by_role("alert").filter(has_text="The connection is lost")).to_be_visible()
    del api.on["events"]
    api.set(**PLANNED)
    await shows(page, "way")
    assert await page.evaluate("window.asked") == 3


async def test_without_get_token_a_refused_token_says_so(chromium: Browser, api: ScriptedApi) -> None:
    api.on["create"] = (401, {"message": "Unauthorized", "request_id": "ab12"})
    page = await open_page(await chromium.new_context(), api)
    await connect(page, CONFIG | {"prefilledDomain": "shop.customer.example"})
    await shows(page, "error")
    await expect(page.get_by_text("Your session has ended")).to_be_visible()
    await page.get_by_role("button", name="Close").first.click()
    closed: Any = await (await page.wait_for_function("window.outcome")).json_value()
    assert closed["lastStatus"] == "EXIT_WITH_ERROR"
    assert closed["error"]["code"] == "token_refused"


async def test_two_modals_do_not_hear_each_other(page: Page) -> None:
    for name in ("first", "second"):
        await connect(page, CONFIG, f"{{onFrontageClose: () => {{ (window.heard ??= []).push('{name}') }}}}")
        await page.wait_for_function(
            "count => document.querySelectorAll('frontage-connect').length === count", arg=1 if name == "first" else 2
        )
    await page.evaluate("frontage.close()")
    assert await page.evaluate("window.heard") == ["second"]
    await page.evaluate("frontage.close()")
    assert await page.evaluate("window.heard") == ["second", "first"]


async def test_a_partners_colours_logo_and_words(page: Page) -> None:
    logo = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' width='90' height='28'/%3E"
    await connect(
        page,
        CONFIG
        | {
            "whiteLabel": {
                "logo": logo,
                "theme": {"accent": "#ffd400", "colorScheme": "dark"},
                "copy": {"continue": "Weiter geht's", "domain_title_for": "Bring your name to {application}"},
            }
        },
    )
    go = page.get_by_role("button", name="Weiter geht's")
    assert await go.evaluate("e => [getComputedStyle(e).backgroundColor, getComputedStyle(e).color]") == [
        "rgb(255, 212, 0)",
        "rgb(0, 0, 0)",
    ]
    await expect(page.get_by_role("heading", name="Bring your name to Acme Shops")).to_be_visible()
    await expect(page.get_by_role("img", name="Acme Shops")).to_have_attribute("src", logo)
    assert await page.locator("dialog").evaluate("e => getComputedStyle(e).backgroundColor") == "rgb(23, 25, 30)"
    await screenshot(page, "white-label")


async def test_every_language_is_complete_and_fits_a_phone(chromium: Browser, api: ScriptedApi) -> None:
    page = await open_page(await chromium.new_context(viewport={"width": 320, "height": 640}), api)
    english: dict[str, str] = await page.evaluate(f"import('{API}/source/words.js').then(m => m.ENGLISH)")
    locales: list[str] = await page.evaluate(f"import('{API}/source/configuration.js').then(m => m.LOCALES)")
    files = {path.stem: json.loads(path.read_text("utf-8")) for path in (HERE / "words").glob("*.json")}
    assert sorted(locales) == sorted([*files, "en"])
    for locale, words in files.items():
        assert list(words) == list(english), locale
        assert all(_values(words[key]) == _values(text) for key, text in english.items()), locale
        assert [key for key, text in words.items() if text == english[key] and " " in text] == []
        await connect(page, CONFIG | {"locale": locale})
        await shows(page, "domain")
        await expect(page.locator("frontage-connect")).to_have_attribute("lang", locale)
        await expect(page.get_by_role("button", name=words["continue"])).to_be_visible()
        await page.evaluate("frontage.close()")


def _values(text: str) -> set[str]:
    return {part.partition("}")[0] for part in text.split("{")[1:]}


async def test_a_shared_link_opens_with_its_configuration_and_a_token_of_its_own(
    chromium: Browser, api: ScriptedApi
) -> None:
    share = {
        "id": "abcdefghijklmnopqrstuvwx",
        "applicationId": "app_2",
        "domain": "customer.example",
        "subdomain": "shop",
        "dnsRecords": [],
        "config": {"dnsRecords": CONFIG["dnsRecords"], "applicationName": "Acme Shops"},
        "token": "scoped-token",
    }
    page = await open_page(await chromium.new_context(), api)
    await page.route(
        f"{API}/share/*", lambda route: route.fulfill(json=share, headers={"Access-Control-Allow-Origin": "*"})
    )
    await page.evaluate("url => { frontage.loadSharedFlow(url) }", f"{API}/share/{share['id']}?from=mail")
    await shows(page, "checking")
    assert api.tokens()[0] == "Bearer scoped-token"
    assert api.bodies("/connect/flows")[0]["share"] == share["id"]
    assert api.bodies("/connect/flows")[0]["domain"] == "shop.customer.example"


async def test_a_link_that_has_expired_is_a_documented_error(page: Page) -> None:
    await page.route(
        f"{API}/share/*",
        lambda route: route.fulfill(
            status=404,
            json={"message": "Not Found", "code": "link_not_found"},
            headers={"Access-Control-Allow-Origin": "*"},
        ),
    )
    load = "url => frontage.loadSharedFlow(url).catch(error => error.code)"
    assert await page.evaluate(load, f"{API}/share/abcdefghijklmnopqrstuvwx") == "link_not_found"
    assert await page.evaluate(load, f"{API}/somewhere") == "invalid_link"


async def test_a_link_is_to_be_opened_later_where_the_api_asks_to_wait(page: Page) -> None:
    cors = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "Retry-After"}
    answer: dict[str, Any] = {
        "status": 429,
        "json": {"message": "Too Many Requests"},
        "headers": cors | {"Retry-After": "7"},
    }
    await page.route(f"{API}/share/*", lambda route: route.fulfill(**answer))
    load = "url => frontage.loadSharedFlow(url).catch(error => [error.code, error.retryAfterSeconds])"
    assert await page.evaluate(load, f"{API}/share/abcdefghijklmnopqrstuvwx") == ["too_many_requests", 7]
    answer |= {"status": 200, "json": None, "body": "a proxy's page"}
    assert (await page.evaluate(load, f"{API}/share/abcdefghijklmnopqrstuvwx"))[0] == "unreachable"


async def test_the_script_is_found_beside_other_scripts(chromium: Browser, api: ScriptedApi) -> None:
    """The API's address comes from the script's own, wherever the page is."""
    api.on["checkdomain"] = {**CHECKING}
    page = await open_page(await chromium.new_context(), api, head="<script>window.before = 1</script>")
    assert await page.evaluate("document.querySelector('script[src]').src") == SCRIPT
    await page.evaluate("config => frontage.checkDomain('customer.example', config)", CONFIG)
    registered = {key: value for key, value in CONFIG.items() if key != "dnsRecords"} | {"configurationId": "cfg_1"}
    await page.evaluate("config => frontage.checkRecords('customer.example', config)", registered)
    assert [path for _, path, _, _ in api.requests] == ["/checkdomain", "/checkrecords"]
    assert api.requests[0][3]["domain"] == "customer.example"
    assert api.requests[1][3] | {"domain": "customer.example", "configurationId": "cfg_1"} == api.requests[1][3]
