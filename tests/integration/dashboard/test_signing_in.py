"""Signing in and out, sessions, CSRF protection, and throttling."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from yarl import URL

from api.rules.passwords import verify_password
from common.accounts import hash_token, mint_random_token
from common.db import sessions
from common.db.session import SessionTimeouts
from tests.captured_logs import capture_logs
from tests.integration.api.conftest import open_service, probe_port  # noqa: F401 - a fixture
from tests.integration.dashboard.conftest import PASSWORD, Dashboard

EMAIL = "ada@acme.example"


async def test_password_signs_in_and_sign_out_ends_the_session(dashboard: Dashboard) -> None:
    await dashboard.user(EMAIL, await dashboard.organisation(), "owner", password=True)
    browser = await dashboard.browser()
    refused = await browser.get("/dashboard/applications")
    assert (refused.status, refused.location) == (303, "/dashboard/sign-in?next=/dashboard/applications")

    page = await browser.sign_in(EMAIL.upper())

    assert (page.status, page.location) == (303, "/dashboard")
    cookie = next(value for value in page.headers.getall("Set-Cookie") if "frontage-session" in value)
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    home = await browser.get()
    assert home.status == 200
    assert EMAIL in home.words
    stolen = {each.key: each.value for each in browser.session.cookie_jar}["frontage-session"]
    assert (await browser.post("/dashboard/sign-out", of="/dashboard")).status == 303
    assert (await browser.get()).status == 303
    browser.session.cookie_jar.update_cookies({"frontage-session": stolen})
    assert (await browser.get()).status == 303  # not only forgotten by the browser


async def test_wrong_password_and_unknown_address_answer_alike(dashboard: Dashboard) -> None:
    await dashboard.user(EMAIL, await dashboard.organisation(), password=True)
    browser = await dashboard.browser()
    wrong = await browser.sign_in(EMAIL, "something else entirely")
    unknown = await browser.sign_in("nobody@acme.example")
    assert wrong.status == unknown.status == 422
    assert "do not belong together" in wrong.words
    assert wrong.words.replace(EMAIL, "") == unknown.words.replace("nobody@acme.example", "")


async def test_guessing_is_slowed_for_strangers_and_not_for_the_owner(dashboard: Dashboard) -> None:
    await dashboard.user(EMAIL, await dashboard.organisation(), password=True)
    owner, stranger = await dashboard.browser(), await dashboard.browser()
    assert (await owner.sign_in(EMAIL)).status == 303
    csrf = (await stranger.get("/dashboard/sign-in")).csrf
    statuses = []
    for _ in range(11):
        page = await stranger.post("/dashboard/sign-in", csrf=csrf, email=EMAIL, password="wrong wrong wrong", next="")
        statuses.append(page.status)
    assert statuses[0] == 422
    assert statuses[-1] == 429
    confirmed = await owner.post("/dashboard/account/confirm", current=PASSWORD)
    assert confirmed.location == "/dashboard/account"
    await owner.post("/dashboard/sign-out", of="/dashboard")
    assert (await owner.sign_in(EMAIL)).status == 303  # the browser is known


async def test_guesses_at_accounts_that_do_not_exist_keep_no_known_browser_waiting(
    dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each guess is verified until the end of the test: the strangers' lane is full."""
    await dashboard.user(EMAIL, await dashboard.organisation(), password=True)
    owner, guesser = await dashboard.browser(), await dashboard.browser()
    assert (await owner.sign_in(EMAIL)).status == 303
    await owner.post("/dashboard/sign-out", of="/dashboard")
    stuck = threading.Event()

    def verify(password: str, stored: str | None) -> bool:
        return verify_password(password, stored) if stored is not None else stuck.wait(60) and False

    monkeypatch.setattr("api.dashboard.password_checks.verify_password", verify)
    csrf = (await guesser.get("/dashboard/sign-in")).csrf
    form = {"csrf": csrf, "password": "wrong wrong wrong", "next": ""}
    guesses = [
        asyncio.create_task(guesser.post("/dashboard/sign-in", email=f"no-{number}@x.test", **form))
        for number in range(8)
    ]
    try:
        done, waiting = await asyncio.wait(guesses, return_when=asyncio.FIRST_COMPLETED)
        assert len(waiting) >= 2
        for refused in done:  # more than may wait for one address
            assert (refused.result().status, "Retry-After" in refused.result().headers) == (429, True)
        assert (await owner.sign_in(EMAIL)).status == 303
    finally:
        stuck.set()
        await asyncio.gather(*guesses)


async def test_a_link_is_opened_in_a_browser_where_another_user_is_signed_in(dashboard: Dashboard) -> None:
    browser = await dashboard.signed_in("first@acme.example", await dashboard.organisation())
    token, second = mint_random_token(), await dashboard.user("second@acme.example", await dashboard.organisation("B"))
    async with dashboard.service.database.transaction() as connection:
        await sessions.create_link(connection, hash_token(token), second, sessions.LINK_LIFETIME)
    assert (await browser.get("/dashboard/link/nothing")).status == 410
    page = await browser.get(f"/dashboard/link/{token}")
    assert (page.status, "second@acme.example" in page.words) == (200, True)
    assert (await browser.post(f"/dashboard/link/{token}")).status == 303
    assert "second@acme.example" in (await browser.get("/dashboard/account")).words


async def test_link_signs_in_once_and_looking_at_it_does_not_use_it(dashboard: Dashboard) -> None:
    user_id, token = await dashboard.user(EMAIL, await dashboard.organisation()), mint_random_token()
    async with dashboard.service.database.transaction() as connection:
        await sessions.create_link(connection, hash_token(token), user_id, sessions.LINK_LIFETIME)
    preview, browser, late = await dashboard.browser(), await dashboard.browser(), await dashboard.browser()
    path = f"/dashboard/link/{token}"
    assert (await preview.get(path)).status == 200
    waiting = (await late.get(path)).csrf
    assert (await browser.post(path)).status == 303
    assert (await browser.get()).status == 200
    assert (await late.post(path, csrf=waiting)).status == 410
    assert (await late.get(path)).status == 410


async def test_a_session_of_the_attackers_choice_is_not_taken_over(dashboard: Dashboard) -> None:
    await dashboard.user(EMAIL, await dashboard.organisation(), password=True)
    browser = await dashboard.browser()
    browser.session.cookie_jar.update_cookies({"frontage-session": "planted"})
    await browser.sign_in(EMAIL)
    values = {each.key: each.value for each in browser.session.cookie_jar}
    assert values["frontage-session"] != "planted"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
async def test_a_form_from_elsewhere_is_refused_even_with_the_token(
    dashboard: Dashboard, headers: dict[str, str]
) -> None:
    browser = await dashboard.signed_in(EMAIL, await dashboard.organisation())
    csrf = (await browser.get()).csrf
    page = await browser.send("POST", "/dashboard/sign-out", data={"csrf": csrf}, headers=headers)
    assert page.status == 403
    assert (await browser.get()).status == 200


async def test_a_form_without_the_sessions_own_token_is_refused(dashboard: Dashboard) -> None:
    organisation = await dashboard.organisation()
    browser, other = (
        await dashboard.signed_in(EMAIL, organisation),
        await dashboard.signed_in("bob@x.test", organisation),
    )
    for token in ("", "0" * 64, (await other.get()).csrf):
        refused = await browser.post("/dashboard/sign-out", csrf=token)
        assert refused.status == 403
        assert "This form is out of date" in refused.words
    assert (await browser.get()).status == 200


@pytest.mark.parametrize(
    "wanted",
    [
        "https://evil.example",
        "//evil.example",
        "/\\evil.example",
        "/dashboard/../token",
        "/dashboard//evil.example",
        "/x",
    ],
)
async def test_signing_in_leads_nowhere_else(dashboard: Dashboard, wanted: str) -> None:
    await dashboard.user(EMAIL, await dashboard.organisation(), password=True)
    browser = await dashboard.browser()
    page = await browser.post("/dashboard/sign-in", email=EMAIL, password=PASSWORD, next=wanted)
    assert page.location == "/dashboard"


async def test_signing_in_leads_to_the_page_that_was_wanted(dashboard: Dashboard) -> None:
    await dashboard.user(EMAIL, await dashboard.organisation(), password=True)
    browser = await dashboard.browser()
    wanted = "/dashboard/domains?text=shop&product=power"
    page = await browser.post("/dashboard/sign-in", email=EMAIL, password=PASSWORD, next=wanted)
    assert page.location == wanted


async def test_every_answer_has_the_headers_that_keep_it_in_place(dashboard: Dashboard) -> None:
    browser = await dashboard.signed_in(EMAIL, await dashboard.organisation())
    for path in ("/dashboard", "/dashboard/sign-in", "/dashboard/nothing", "/dashboard/account"):
        page = await browser.get(path)
        policy = page.headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert page.headers["X-Frame-Options"] == "DENY"
        assert page.headers["Cache-Control"] == "no-store"
        assert " style=" not in page.text


async def test_the_management_api_does_not_know_the_cookie(dashboard: Dashboard) -> None:
    organisation = await dashboard.organisation()
    partner, browser = await dashboard.partner(organisation), await dashboard.signed_in(EMAIL, organisation)
    page = await browser.get("/power", headers={"applicationId": partner.id})
    assert page.status == 401


async def test_a_new_password_ends_other_sessions(dashboard: Dashboard) -> None:
    await dashboard.user(EMAIL, await dashboard.organisation(), password=True)
    browser, elsewhere = await dashboard.browser(), await dashboard.browser()
    await browser.sign_in(EMAIL)
    await elsewhere.sign_in(EMAIL)
    new = {"password": "quite another sentence", "again": "quite another sentence"}
    path = "/dashboard/account/password"
    assert (await browser.post(path, of="/dashboard/account", current="wrong wrong", **new)).status == 422
    assert (await elsewhere.get()).status == 200
    assert (await browser.post(path, of="/dashboard/account", current=PASSWORD, **new)).status == 303
    assert (await elsewhere.get()).status == 303
    assert (await browser.get()).status == 200
    assert (await elsewhere.sign_in(EMAIL, new["password"])).status == 303


async def test_cookies_over_https_cannot_be_set_by_siblings(dashboard: Dashboard) -> None:
    from aiohttp import web

    from api.dashboard.browser import Cookies

    response = web.Response()
    Cookies(is_secure=True).write_session(response, "token", 60)
    cookie = response.cookies["__Host-frontage-session"].OutputString()
    assert "Secure" in cookie
    assert "Path=/" in cookie
    assert "Domain" not in cookie


async def test_a_body_of_another_kind_is_refused(dashboard: Dashboard) -> None:
    browser = await dashboard.signed_in(EMAIL, await dashboard.organisation())
    page = await browser.send("POST", "/dashboard/sign-out", json={}, headers={"Origin": browser.url})
    assert page.status == 400


async def test_an_ended_session_is_sent_to_sign_in(dashboard: Dashboard) -> None:
    browser = await dashboard.signed_in(EMAIL, await dashboard.organisation())
    async with dashboard.service.database.transaction() as connection:
        await connection.execute("update sessions set seen_at = now() - interval '13 hours'")
    assert (await browser.get("/dashboard/account")).status == 303
    assert "Your session has ended." in (await browser.get("/dashboard/sign-in")).words


async def test_no_session_is_stored_readably(dashboard: Dashboard) -> None:
    browser = await dashboard.signed_in(EMAIL, await dashboard.organisation())
    token = {each.key: each.value for each in browser.session.cookie_jar}["frontage-session"]
    async with dashboard.service.database.connection() as connection:
        stored = await connection.fetchval("select token_hash from sessions")
    assert token.encode() not in stored


async def test_pages_that_are_not_sent_over_tls_warn_of_it(dsn: str, tmp_path: Path, probe_port: int) -> None:  # noqa: F811
    async with AsyncExitStack() as stack:
        opened = open_service(dsn, tmp_path, probe_port, SessionTimeouts(), PUBLIC_URL="http://api.acme.example")
        dashboard = Dashboard(await stack.enter_async_context(opened), stack)
        assert "in plain text" in (await (await dashboard.browser()).get("/dashboard/sign-in")).words
        operator = await dashboard.signed_in("ops@acme.example")
        assert "FRONTAGE_PUBLIC_URL is http://api.acme.example" in (await operator.get("/dashboard/account")).words


def part(*fields: str, content: str = "x") -> str:
    """The body of a form in parts, with these fields in its first part."""
    return "\r\n".join(("--b", *fields, "", content, "--b--", ""))


URL_ENCODED, IN_PARTS = "application/x-www-form-urlencoded", "multipart/form-data"
NAMED = 'Content-Disposition: form-data; name="email"'


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (f"{URL_ENCODED}; charset=evil", "email=a"),
        (f"{URL_ENCODED}; charset=base64", "email=a"),
        (f"{URL_ENCODED}; charset=undefined", "email=a"),
        (f"{URL_ENCODED}; charset=", "email=a"),
        (f"{URL_ENCODED}; charset=utf-16", "email=%ff%fe"),
        (f"{URL_ENCODED}; charset=utf-8", "email=%ff"),
        (IN_PARTS, part(NAMED)),
        (f"{IN_PARTS}; boundary=", part(NAMED)),
        (f"{IN_PARTS}; boundary=b", "no part"),
        (f"{IN_PARTS}; boundary=b", part(NAMED, "Content-Type: text/plain; charset=evil")),
        (f"{IN_PARTS}; boundary=b", part(NAMED, "Content-Type: text/plain; charset=hex")),
        (f"{IN_PARTS}; boundary=b", part(NAMED, "Content-Type: multipart/mixed; boundary=c")),
        (f"{IN_PARTS}; boundary=b", part(NAMED, "Content-Transfer-Encoding: evil")),
        (f"{IN_PARTS}; boundary=b", part(NAMED, "Content-Transfer-Encoding: base64", content="!")),
        (f"{IN_PARTS}; boundary=b", part(NAMED, "Content-Encoding: evil")),
        (f"{IN_PARTS}; boundary=b", part(NAMED, "Content-Encoding: gzip", content="no gzip")),
        (f"{IN_PARTS}; boundary=b", part('Content-Disposition: form-data; name="_charset_"', content="e" * 40)),
        (f"{IN_PARTS}; boundary=b", part('Content-Disposition: form-data; name="_charset_"', content="evil")),
        (f"{IN_PARTS}; boundary=b", part("Content-Disposition: form-data; name*=evil''a")),
        (f"{IN_PARTS}; boundary=b", part("a field without a colon")),
        (f"{IN_PARTS}; boundary=b", part("x: " + "y" * 20_000)),
        (f"{IN_PARTS}; boundary=b", part(NAMED).removesuffix("--b--\r\n")),
    ],
)
async def test_a_form_that_cannot_be_read_is_the_clients_fault(dashboard: Dashboard, kind: str, body: str) -> None:
    browser = await dashboard.browser()
    headers = {"Content-Type": kind, "Origin": browser.url}
    with capture_logs() as entries:
        for path in ("/dashboard/sign-in", "/dashboard/link/x", "/dashboard/sign-in/passkey"):
            page = await browser.send("POST", path, data=body.encode(), headers=headers)
            assert page.status in (400, 403), page  # 403: read, and without the token of the form
    assert not [each for each in entries if each["level"] == "error"]


@pytest.mark.parametrize(
    "kind",
    [f"{URL_ENCODED}; charset={each}" for each in ("punycode", "unicode_escape", "utf-7", "idna", "utf-16", "latin-1")]
    + [f"{IN_PARTS}; boundary=b"],
)
async def test_a_form_is_read_in_the_one_way_that_browsers_send_it(dashboard: Dashboard, kind: str) -> None:
    """A quarter of a megabyte of punycode stopped the API for three seconds; escapes made text that none can write."""
    browser = await dashboard.browser()
    csrf = (await browser.get("/dashboard/sign-in")).csrf
    body = part(NAMED) if IN_PARTS in kind else f"csrf={csrf}&email=a"
    headers = {"Content-Type": kind, "Origin": browser.url}
    assert (await browser.send("POST", "/dashboard/sign-in", data=body.encode(), headers=headers)).status == 400


async def test_no_field_that_a_program_forges_makes_a_page_fail(dashboard: Dashboard) -> None:
    url = URL((await dashboard.browser()).url)
    origin = f"Origin: {url}".encode()
    with capture_logs() as entries:
        for field in (
            b"Origin: http://[",
            origin + b"\r\nCookie: frontage-guest=\xff",
            origin + b"\r\nCookie: frontage-session=\xff",
            origin + b"\r\nCookie: frontage-guest=x; frontage-device=\xff",
            origin + b"\r\nContent-Encoding: gzip",
        ):
            reader, writer = await asyncio.open_connection(url.host, url.port)
            head = b"POST /dashboard/sign-in HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n" % url.authority.encode()
            writer.write(head + field + b"\r\nContent-Type: %b\r\n" % URL_ENCODED.encode())
            writer.write(b"Content-Length: 14\r\n\r\ncsrf=%ED%A0%80")
            assert (await reader.readline())[9:12] in (b"400", b"403"), field
            writer.close()
    assert not [each for each in entries if each["level"] == "error"]


@pytest.mark.parametrize("path", ["/token", "/power", "/nothing"])
@pytest.mark.parametrize("kind", ["application/json; charset=evil", f"{URL_ENCODED}; charset=evil"])
async def test_no_charset_makes_the_api_fail(dashboard: Dashboard, path: str, kind: str) -> None:
    browser = await dashboard.browser()
    with capture_logs() as entries:
        page = await browser.send("POST", path, data=b'{"a": 1}', headers={"Content-Type": kind})
    assert 400 <= page.status < 500
    assert not [each for each in entries if each["level"] == "error"]
