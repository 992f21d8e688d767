"""Passkeys: registering, signing in, what proves nothing, and removing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from common.db import audit, users
from common.db.audit import AuditEntry
from tests.integration.dashboard.authenticator import USER_PRESENT, Authenticator
from tests.integration.dashboard.conftest import PASSWORD, Browser, Dashboard, Page

EMAIL = "ada@acme.example"
ACCOUNT, SIGN_IN = "/dashboard/account", "/dashboard/sign-in"


def authenticator_of(dashboard: Dashboard) -> Authenticator:
    return Authenticator(dashboard.service.settings.base_url)


async def register(browser: Browser, authenticator: Authenticator, name: str = "Work laptop") -> Page:
    options = (await browser.get(f"{ACCOUNT}/passkeys")).text
    return await browser.post(f"{ACCOUNT}/passkeys", of=ACCOUNT, name=name, credential=authenticator.create(options))


async def asked(browser: Browser) -> str:
    await browser.get(SIGN_IN)  # sets the cookie that the challenge belongs to
    return (await browser.get(f"{SIGN_IN}/passkey")).text


async def answer(browser: Browser, credential: str) -> Page:
    return await browser.post(f"{SIGN_IN}/passkey", of=SIGN_IN, credential=credential, next="/dashboard/domains")


async def owner_of_passkey(dashboard: Dashboard) -> tuple[Browser, Authenticator]:
    browser = await dashboard.signed_in(EMAIL, await dashboard.organisation(), "owner")
    authenticator = authenticator_of(dashboard)
    assert (await register(browser, authenticator)).status == 303
    return browser, authenticator


async def recorded(dashboard: Dashboard) -> list[AuditEntry]:
    async with dashboard.service.database.connection() as connection:
        return await audit.list_entries(connection, before=None, limit=20, subject=EMAIL)


async def let_confirmation_lapse(dashboard: Dashboard) -> None:
    async with dashboard.service.database.transaction() as connection:
        await connection.execute(
            "update sessions set created_at = created_at - interval '11 minutes', confirmed_at = null"
        )


async def test_a_passkey_signs_in_without_an_address_and_is_recorded(dashboard: Dashboard) -> None:
    _, authenticator = await owner_of_passkey(dashboard)
    browser = await dashboard.browser()

    page = await answer(browser, authenticator.get(await asked(browser)))

    assert (page.status, page.location) == (303, "/dashboard/domains")
    account = await browser.get(ACCOUNT)
    assert "Work laptop" in account.words
    assert EMAIL in account.words
    signed_in, added = (await recorded(dashboard))[:2]
    assert (signed_in.action, signed_in.after) == ("user.sign_in", {"by": "passkey", "passkey": "Work laptop"})
    assert (added.action, added.way, added.actor) == ("passkey.add", "dashboard", EMAIL)


async def test_a_challenge_is_answered_once_in_its_own_browser_and_for_its_own_purpose(dashboard: Dashboard) -> None:
    owner, authenticator = await owner_of_passkey(dashboard)
    browser, other = await dashboard.browser(), await dashboard.browser()
    options = await asked(browser)
    await asked(other)
    first, second = authenticator.get(options), authenticator.get(options)

    assert (await answer(other, first)).status == 422  # another browser's challenge
    confirming = (await owner.get(f"{ACCOUNT}/confirm/passkey")).text
    assert (await answer(browser, authenticator.get(confirming))).status == 422  # another purpose
    authenticator.sign_count += 10
    page = await browser.post(f"{SIGN_IN}/passkey", of=SIGN_IN, credential=second, next="")
    assert page.status == 303
    cookies = {each.key: each.value for each in browser.session.cookie_jar}
    again = await dashboard.browser()
    again.session.cookie_jar.update_cookies({"frontage-guest": cookies.get("frontage-guest", "")})
    assert (await answer(again, authenticator.get(options))).status == 422


async def test_two_answers_to_one_challenge_sign_in_once(dashboard: Dashboard) -> None:
    _, authenticator = await owner_of_passkey(dashboard)
    browser = await dashboard.browser()
    csrf, options = (await browser.get(SIGN_IN)).csrf, await asked(browser)
    guest = {each.key: each.value for each in browser.session.cookie_jar}["frontage-guest"]
    statuses = []
    for _ in range(2):
        again = await dashboard.browser()
        again.session.cookie_jar.update_cookies({"frontage-guest": guest})
        credential = authenticator.get(options)
        statuses.append((await again.post(f"{SIGN_IN}/passkey", csrf=csrf, credential=credential, next="")).status)
    assert statuses == [303, 422]


WRONG: dict[str, Callable[[Authenticator], object]] = {
    "another origin": lambda it: setattr(it, "origin", "https://evil.example"),
    "another RP ID": lambda it: setattr(it, "rp_id", "evil.example"),
    "no user verification": lambda it: setattr(it, "flags", USER_PRESENT),
    "another key": lambda it: setattr(it, "key", Authenticator("").key),
    "another user": lambda it: setattr(it, "user_handle", "dXNyXzA"),
    "no user": lambda it: setattr(it, "user_handle", None),
    "an unknown credential": lambda it: setattr(it, "credential_id", b"unknown"),
}


SHAPES = (
    "",
    "[]",
    "{",
    "null",
    "[" * 5000,
    '{"id": 1}',
    '{"response": {"clientDataJSON": "bnVsbA"}}',
    "\0",
    "9" * 20_000,
)


async def test_what_proves_nothing_signs_in_nobody(dashboard: Dashboard) -> None:
    owner, authenticator = await owner_of_passkey(dashboard)
    browser = await dashboard.browser()
    statuses = {}
    for name, spoil in WRONG.items():
        wrong = replace(authenticator)
        spoil(wrong)
        statuses[name] = (await answer(browser, wrong.get(await asked(browser)))).status
    for shape in SHAPES:
        statuses[shape[:50]] = (await answer(browser, shape)).status
        refused = await owner.post(f"{ACCOUNT}/passkeys", of=ACCOUNT, name="x", credential=shape)
        assert refused.status == 422
    assert set(statuses.values()) == {422}, statuses
    assert (await browser.get()).status == 303


async def test_a_copied_passkey_is_refused_and_one_that_counts_nothing_signs_in(dashboard: Dashboard) -> None:
    owner, authenticator = await owner_of_passkey(dashboard)
    browser, copy = await dashboard.browser(), await dashboard.browser()
    authenticator.sign_count = 5
    assert (await answer(browser, authenticator.get(await asked(browser)))).status == 303
    authenticator.sign_count = 2
    assert (await answer(copy, authenticator.get(await asked(copy)))).status == 422
    assert (await recorded(dashboard))[0].action == "passkey.refused"
    without_count = authenticator_of(dashboard)
    await register(owner, without_count, "Counts nothing")
    for _ in range(2):
        browser = await dashboard.browser()
        without_count.sign_count = -1  # `get` counts to 0
        assert (await answer(browser, without_count.get(await asked(browser)))).status == 303


async def test_attempts_are_slowed_by_address(dashboard: Dashboard) -> None:
    browser = await dashboard.browser()
    csrf = (await browser.get(SIGN_IN)).csrf
    statuses = [
        (await browser.post(f"{SIGN_IN}/passkey", csrf=csrf, credential="{}", next="")).status for _ in range(21)
    ]
    assert (statuses[0], statuses[-1]) == (422, 429)


async def test_adding_and_removing_need_a_confirmed_session(dashboard: Dashboard) -> None:
    browser, authenticator = await owner_of_passkey(dashboard)
    elsewhere = await dashboard.browser()
    assert (await answer(elsewhere, authenticator.get(await asked(elsewhere)))).status == 303
    await let_confirmation_lapse(dashboard)
    passkey = {"passkey": authenticator.credential_id.hex()}
    remove = f"{ACCOUNT}/passkeys/remove"

    assert (await browser.get(f"{ACCOUNT}/passkeys")).status == 403
    assert (await browser.post(remove, of=ACCOUNT, **passkey)).location == f"{ACCOUNT}/confirm"
    assert "Remove" not in (await browser.get(ACCOUNT)).words
    confirming = (await browser.get(f"{ACCOUNT}/confirm/passkey")).text
    confirmed = await browser.post(
        f"{ACCOUNT}/confirm/passkey", of=ACCOUNT, credential=authenticator.get(confirming), next=ACCOUNT
    )
    assert (confirmed.status, confirmed.location) == (303, ACCOUNT)
    assert (await browser.post(remove, of=ACCOUNT, **passkey)).location == ACCOUNT

    assert "Work laptop" not in (await browser.get(ACCOUNT)).words.partition("signs in no more")[2]
    assert (await elsewhere.get()).status == 303  # the removed passkey's session has ended
    late = await dashboard.browser()
    assert (await answer(late, authenticator.get(await asked(late)))).status == 422
    assert (await recorded(dashboard))[0].action == "passkey.remove"


async def test_the_password_confirms_and_another_users_passkey_does_not(dashboard: Dashboard) -> None:
    organisation = await dashboard.organisation()
    await dashboard.user(EMAIL, organisation, password=True)
    browser = await dashboard.browser()
    await browser.sign_in(EMAIL)
    other = await dashboard.signed_in("bob@acme.example", organisation)
    theirs = authenticator_of(dashboard)
    await register(other, theirs)
    await let_confirmation_lapse(dashboard)
    confirm = f"{ACCOUNT}/confirm"

    asked_of_us = (await browser.get(f"{confirm}/passkey")).text
    refused = await browser.post(f"{confirm}/passkey", of=ACCOUNT, credential=theirs.get(asked_of_us), next="")
    wrong = await browser.post(confirm, current="something else", next="")
    assert (refused.status, wrong.status) == (422, 422)
    assert (await browser.get(f"{ACCOUNT}/passkeys")).status == 403
    assert (await browser.post(confirm, current=PASSWORD, next="")).status == 303
    assert (await browser.get(f"{ACCOUNT}/passkeys")).status == 200


async def test_a_stolen_session_without_password_cannot_set_one_beside_a_passkey(dashboard: Dashboard) -> None:
    browser, _ = await owner_of_passkey(dashboard)
    await let_confirmation_lapse(dashboard)
    new = {"password": "quite another sentence", "again": "quite another sentence"}
    page = await browser.post(f"{ACCOUNT}/password", of=ACCOUNT, **new)
    assert page.location == f"{ACCOUNT}/confirm"


async def test_a_user_has_twenty_passkeys_each_registered_once_and_they_go_with_it(dashboard: Dashboard) -> None:
    browser, first = await owner_of_passkey(dashboard)
    assert "registered already" in (await register(browser, first)).words
    for number in range(2, 21):
        assert (await register(browser, authenticator_of(dashboard), f"Key {number}")).status == 303
    assert "most" in (await register(browser, authenticator_of(dashboard))).words

    async with dashboard.service.database.transaction() as connection:
        user = await users.find_user(connection, EMAIL)
        assert user is not None
        await connection.execute("delete from users where id = $1", user.id)
        assert await connection.fetchval("select count(*) from passkeys") == 0
