"""What a user made before a gain of rights opens nothing afterwards, and nothing outlasts the API key that made it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from common.accounts import Permission, hash_token, mint_key, mint_random_token
from common.db import grants, sessions, user_keys, users
from common.db.users import Organisation
from tests.integration.api.people import Person
from tests.integration.dashboard.authenticator import Authenticator
from tests.integration.dashboard.conftest import PASSWORD, Browser, Dashboard

EVE, BOB = "eve@ours.example", "bob@ours.example"


async def key_of(dashboard: Dashboard, user_id: str) -> Person:
    token = mint_key()
    async with dashboard.service.database.transaction() as connection:
        user = await users.get_user(connection, user_id)
        assert user is not None
        made = await user_keys.add(connection, user, hash_token(token), "A key", Permission.OWN, 365)
    assert made is not None
    return Person(dashboard.service, user, token, made.id)


async def link_of(dashboard: Dashboard, user_id: str) -> str:
    token = mint_random_token()
    async with dashboard.service.database.transaction() as connection:
        await sessions.create_link(connection, hash_token(token), user_id, sessions.LINK_LIFETIME)
    return f"/dashboard/link/{token}"


async def opened(browser: Browser, link: str) -> bool:
    return (await browser.get(link)).status == 200 and (await browser.post(link)).status == 303


async def add_passkey(browser: Browser) -> Authenticator:
    authenticator = Authenticator(browser.url.replace("127.0.0.1", "localhost"))
    options = await browser.get("/dashboard/account/passkeys")
    account = "/dashboard/account"
    answer = authenticator.create(options.text)
    page = await browser.post(f"{account}/passkeys", of=account, credential=answer, name="Laptop")
    assert page.status == 303
    return authenticator


async def by_passkey(dashboard: Dashboard, authenticator: Authenticator) -> bool:
    browser = await dashboard.browser()
    csrf = (await browser.get("/dashboard/sign-in")).csrf
    options = await browser.get("/dashboard/sign-in/passkey")
    answer = authenticator.get(options.text)
    page = await browser.post("/dashboard/sign-in/passkey", csrf=csrf, credential=answer, next="")
    return page.status == 303


class Held:
    """All that signs a user in, as one that controls the user's account before the gain makes it."""

    def __init__(self, dashboard: Dashboard, user_id: str) -> None:
        self.dashboard, self.user_id = dashboard, user_id

    async def make(self) -> Held:
        self.session = await self.dashboard.signed_in_again(self.user_id)
        self.passkey = await add_passkey(self.session)
        new = {"password": PASSWORD, "again": PASSWORD}
        assert (await self.session.post("/dashboard/account/password", of="/dashboard/account", **new)).status == 303
        self.key = await key_of(self.dashboard, self.user_id)
        self.link = await link_of(self.dashboard, self.user_id)
        return self

    async def that_open(self, email: str) -> list[str]:
        browser = await self.dashboard.browser()
        works = {
            "session": (await self.session.get()).status == 200,
            "key": (await self.key.call("GET", "/account")).status == 200,
            "passkey": await by_passkey(self.dashboard, self.passkey),
            "password": (await browser.sign_in(email)).status == 303,
            "link": await opened(await self.dashboard.browser(), self.link),
        }
        return [name for name, is_open in works.items() if is_open]


def told(shown: Any) -> Iterator[str]:
    yield from (value for value in shown.values() if isinstance(value, str) and "/dashboard/link/" in value)


async def gain(dashboard: Dashboard, way: str, user_id: str, theirs: Organisation) -> str:
    """Give the user more rights. Returns the path of the new link."""
    if way == "dashboard":
        operator = await dashboard.signed_in("ops@x.test")
        page = await operator.post(
            f"/dashboard/organisations/{theirs.id}/members",
            of=f"/dashboard/organisations/{theirs.id}",
            email=BOB,
            role="owner",
        )
        assert page.status == 200, page
        return "/dashboard/link/" + page.text.split("/dashboard/link/")[1].split("<")[0].split('"')[0]
    ops = await key_of(dashboard, await dashboard.user("ops@x.test"))
    body = {"email": BOB, "role": "owner"}
    answer = await ops.call("PUT", f"/organisations/{theirs.id}/members", json=body)
    assert answer.status == 200, answer
    return "/dashboard/link/" + next(told(answer.body)).split("/dashboard/link/")[1]


@pytest.mark.parametrize("way", ["dashboard", "api"])
async def test_what_was_made_before_a_gain_opens_nothing_after_it(dashboard: Dashboard, way: str) -> None:
    ours, theirs = await dashboard.organisation("Ours"), await dashboard.organisation("Theirs")
    user_id = await dashboard.user(BOB, ours)
    held = await Held(dashboard, user_id).make()
    link = await gain(dashboard, way, user_id, theirs)
    told = await held.session.get()
    assert (told.status, told.location) == (303, "/dashboard/sign-in")
    assert "You were given more rights" in (await held.session.get("/dashboard/sign-in")).words
    assert await held.that_open(BOB) == []
    browser = await dashboard.browser()
    assert await opened(browser, link)
    assert (await browser.get(f"/dashboard/organisations/{theirs.id}")).status == 200


@pytest.mark.parametrize("right", ["operator", "a higher role"])
async def test_a_gain_ends_the_same_whatever_the_right(dashboard: Dashboard, right: str) -> None:
    ours, theirs = await dashboard.organisation("Ours"), await dashboard.organisation("Theirs")
    user_id = await dashboard.user(BOB, ours)
    if right == "a higher role":
        await dashboard.join(user_id, theirs, "viewer")
    held = await Held(dashboard, user_id).make()
    if right == "a higher role":
        await dashboard.join(user_id, theirs, "owner")
    else:
        async with dashboard.service.database.transaction() as connection:
            user = await users.get_user(connection, user_id)
            assert user is not None
            assert await grants.set_operator(connection, user, is_operator=True) is not None
    assert await held.that_open(BOB) == []


async def test_a_higher_role_in_the_only_organisation_and_a_lower_one_end_nothing(dashboard: Dashboard) -> None:
    ours, theirs = await dashboard.organisation("Ours"), await dashboard.organisation("Theirs")
    user_id = await dashboard.user(BOB, ours, "viewer")
    held = await Held(dashboard, user_id).make()
    await dashboard.join(user_id, ours, "owner")
    assert len(await held.that_open(BOB)) == 5
    await dashboard.join(user_id, theirs, "owner")
    held = await Held(dashboard, user_id).make()
    await dashboard.join(user_id, theirs, "viewer")
    assert len(await held.that_open(BOB)) == 5


async def test_an_owner_gives_no_higher_role_to_a_user_of_others(dashboard: Dashboard) -> None:
    """Else the new link would open the others' applications to that owner."""
    ours, theirs = await dashboard.organisation("Ours"), await dashboard.organisation("Theirs")
    user_id = await dashboard.user(BOB, ours, "viewer")
    await dashboard.join(user_id, theirs, "owner")
    owner = await key_of(dashboard, await dashboard.user(EVE, ours, "owner"))
    session = await dashboard.signed_in_again(user_id)
    members = f"/organisations/{ours.id}/members"
    refused = await owner.call("PUT", members, json={"email": BOB, "role": "owner"})
    assert (refused.status, refused.body["code"]) == (409, "account_shared")
    assert (await session.get()).status == 200
    assert (await owner.call("PUT", members, json={"email": BOB, "role": "viewer"})).status == 200


async def test_what_proves_the_user_while_rights_are_given_signs_in_nobody(dashboard: Dashboard) -> None:
    """The grant and the sign-in, the making of a key and the setting of a password run at the same time."""
    database = dashboard.service.database
    user_id = await dashboard.user(BOB, await dashboard.organisation("Ours"))
    theirs = await dashboard.organisation("Theirs")
    session = mint_random_token()
    async with database.transaction() as connection:
        user = await users.get_user(connection, user_id)
        assert user is not None
        assert await sessions.start(connection, hash_token(session), user, "", "")

    async def sign_in() -> bool:
        async with database.transaction() as connection:
            return await sessions.start(connection, b"new", user, "", "")

    async def confirm() -> bool:
        async with database.transaction() as connection:
            return await sessions.hold_confirmed(connection, hash_token(session))

    async with database.transaction() as connection:
        await grants.give_role(connection, user, theirs.id, "owner")
        waiting = asyncio.gather(sign_in(), confirm())
        done, _ = await asyncio.wait([waiting], timeout=0.05)
        assert not done  # they wait for the grant
    assert list(await waiting) == [False, False]


async def test_a_key_makes_no_link_for_its_own_user(dashboard: Dashboard) -> None:
    ours = await dashboard.organisation("Ours")
    eve = await key_of(dashboard, await dashboard.user(EVE, ours, "owner"))
    refused = await eve.call("PUT", f"/organisations/{ours.id}/members/{eve.user.id}/link")
    assert (refused.status, refused.body["code"]) == (403, "own_link")
    assert "dashboard" in refused.body["hint"]


async def test_nothing_that_a_leaked_key_makes_outlasts_it(dashboard: Dashboard) -> None:
    ours = await dashboard.organisation("Ours")
    eve = await key_of(dashboard, await dashboard.user(EVE, ours, "owner"))
    members = f"/organisations/{ours.id}/members"
    made = await eve.call("PUT", members, json={"email": "sock@x.test", "role": "owner"})
    sock = await dashboard.browser()
    assert await opened(sock, "/dashboard/link/" + made.body["signInOnce"].split("/link/")[1])

    account, page = "/dashboard/account", f"/dashboard{members.removesuffix('/members')}"
    new = {"password": PASSWORD, "again": PASSWORD}
    key = {"name": "For a year", "permission": "own", "days": "365"}
    assert (await sock.post(f"{account}/password", of=account, **new)).status == 403
    refused = await sock.post(f"{account}/keys", of=account, **key)
    assert refused.status == 403
    assert "made with an API key" in refused.words
    assert (await sock.get(f"{account}/passkeys")).status == 403
    passkey = {"credential": "{}", "name": "Laptop"}
    assert (await sock.post(f"{account}/passkeys", of=account, **passkey)).status == 403
    own = await sock.post(f"{page}/members/link", of=page, user=eve.user.id)
    assert own.status == 403

    third = await sock.post(f"{page}/members", of=page, email="third@x.test", role="owner")
    link = "/dashboard/link/" + third.text.split("/dashboard/link/")[1].split('"')[0].split("<")[0]
    unused = await sock.post(f"{page}/members", of=page, email="fourth@x.test", role="owner")
    left = "/dashboard/link/" + unused.text.split("/dashboard/link/")[1].split('"')[0].split("<")[0]
    last = await dashboard.browser()
    assert await opened(last, link)
    assert (await last.post(f"{account}/keys", of=account, **key)).status == 403

    assert (await eve.call("DELETE", f"/account/keys/{eve.key_id}")).status == 200
    assert [(await each.get()).status for each in (sock, last)] == [303, 303]
    assert (await (await dashboard.browser()).get(left)).status == 410


async def test_a_link_whose_key_ends_while_it_is_used_signs_in_nobody(dashboard: Dashboard) -> None:
    user_id = await dashboard.user(EVE, await dashboard.organisation("Ours"), "owner")
    async with dashboard.service.database.transaction() as connection:
        user = await users.get_user(connection, user_id)
        assert user is not None
        assert not await sessions.start(connection, b"new", user, "", "", by_key="key_that_is_gone")


async def test_what_a_key_made_lasts_no_longer_than_the_key(dashboard: Dashboard) -> None:
    ours = await dashboard.organisation("Ours")
    eve = await key_of(dashboard, await dashboard.user(EVE, ours, "owner"))
    async with dashboard.service.database.transaction() as connection:
        await connection.execute("update user_keys set expires_at = now() + interval '1 minute'")
    body = {"email": "sock@x.test", "role": "owner"}
    made = await eve.call("PUT", f"/organisations/{ours.id}/members", json=body)
    sock = await dashboard.browser()
    assert await opened(sock, "/dashboard/link/" + made.body["signInOnce"].split("/link/")[1])
    async with dashboard.service.database.connection() as connection:
        assert await connection.fetchval(
            "select bool_and(sessions.expires_at = user_keys.expires_at) from sessions join user_keys on id = by_key"
        )
