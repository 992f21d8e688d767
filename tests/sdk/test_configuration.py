"""What the SDK makes of a configuration: unknown keys warn, wrong ones say what was expected."""

from __future__ import annotations

from typing import Any

from playwright.async_api import ConsoleMessage, Page

from tests.browser import SESSION_LOOP
from tests.sdk.scripted_api import CONFIG, ScriptedApi, connect, shows

pytestmark = SESSION_LOOP

RECORD = {"type": "CNAME", "host": "www", "value": "{CNAME_TARGET}", "ttl": 300}


async def test_the_script_is_small_and_makes_a_global(page: Page) -> None:
    names = await page.evaluate("Object.keys(frontage)")
    functions = ["connectDomain", "showFrontage", "checkDomain", "checkRecords", "close", "load", "loadSharedFlow"]
    assert names == [*functions, "version"]
    assert await page.evaluate("Object.keys(window).filter(name => /frontage|modal/i.test(name))") == ["frontage"]


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"applicationId": None}, "applicationId", "the identifier of your application"),
    ({"token": None}, "token", "a JWT, or a function getToken that returns one"),
    ({"power": "yes"}, "power", "true or false"),
    ({"dnsRecords": []}, "dnsRecords", "an array of records, or an object with the arrays domain and subDomain"),
    ({"dnsRecords": None}, "dnsRecords", "the records to set"),
    ({"dnsRecords": {"root": [RECORD]}}, "dnsRecords", "an array of records"),
    ({"dnsRecords": [RECORD | {"ttl": 0}]}, "dnsRecords[0].ttl", "a number of seconds above 0"),
    ({"dnsRecords": {"subDomain": [RECORD | {"type": "ALIAS"}]}}, "dnsRecords.subDomain[0].type", "one of A, AAAA"),
    ({"dnsRecords": [{"type": "A", "host": "@", "ttl": 60}]}, "dnsRecords[0].value", "a text"),
    ({"locale": "tlh"}, "locale", "one of en, es"),
    ({"prefilledDomain": []}, "prefilledDomain", "a domain, or an array of domains"),
    ({"manualSetupDocumentation": "javascript:alert(1)"}, "manualSetupDocumentation", "an http or https URL"),
    ({"whiteLabel": {"theme": {"accent": "red"}}}, "whiteLabel.theme.accent", "a colour as #rrggbb"),
    ({"whiteLabel": {"logo": "javascript:alert(1)"}}, "whiteLabel.logo", "the URL of an image"),
    ({"onSuccess": "done"}, "onSuccess", "a function"),
]


async def test_a_wrong_key_is_named_with_what_was_expected(page: Page) -> None:
    for changes, key, expected in WRONG:
        await page.evaluate("window.failed = null")
        await connect(page, CONFIG | changes)
        failed = await (await page.wait_for_function("window.failed")).json_value()
        assert (failed["code"], failed["key"]) == ("invalid_configuration", key)
        assert failed["message"].startswith(f"{key}: expected {expected}")
    assert await page.locator("frontage-connect").count() == 0


async def test_unknown_keys_warn_and_are_ignored(page: Page) -> None:
    said: list[ConsoleMessage] = []
    page.on("console", lambda message: said.append(message))  # noqa: PLW0108 - Playwright marks its listeners
    await connect(page, CONFIG | {"prefilled_domain": "a.example", "whiteLabel": {"color": 1}, "monitor": None})
    await shows(page, "domain")
    assert [message.text for message in said if message.type == "warning"] == [
        "Frontage: prefilled_domain is not a key of the configuration: it is ignored; did you mean prefilledDomain?",
        "Frontage: whiteLabel.color is not a key of the configuration: it is ignored",
    ]


async def test_the_old_name_opens_the_modal_and_says_so_once(page: Page) -> None:
    said: list[ConsoleMessage] = []
    page.on("console", lambda message: said.append(message))  # noqa: PLW0108 - Playwright marks its listeners
    for _ in range(2):
        await page.evaluate("config => { frontage.showFrontage(config) }", CONFIG)
        await shows(page, "domain")
        await page.evaluate("frontage.close()")
        await page.wait_for_selector("frontage-connect", state="detached")
    assert [message.text for message in said] == [
        "Frontage: showFrontage() is deprecated; connectDomain() is the same."
    ]


async def test_the_api_gets_the_configuration_without_what_is_the_browsers(api: ScriptedApi, page: Page) -> None:
    await connect(page, CONFIG | {"power": False, "userId": "user-7"}, "{onSuccess: () => {}}")
    await page.locator("#domain").fill("shop.customer.example")
    await page.keyboard.press("Enter")
    await shows(page, "checking")
    assert api.bodies("/connect/flows") == [
        {
            "applicationName": "Acme Shops",
            "dnsRecords": CONFIG["dnsRecords"],
            "power": False,
            "userId": "user-7",
            "domain": "shop.customer.example",
        }
    ]
    headers = api.requests[0][2]
    assert (headers["applicationid"], headers["authorization"]) == ("app_1", "Bearer token-1")
    assert "cookie" not in headers
