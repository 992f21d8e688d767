"""Signing in by an OpenID Connect provider: who is let in, with which rights, and what a hostile answer gets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from common.db import oidc_subjects, users
from common.db.users import User
from tests.captured_logs import capture_logs
from tests.integration.dashboard.conftest import PASSWORD, Browser, Dashboard, Page, serving_dashboard
from tests.integration.dashboard.oidc_issuer import CLIENT, SECRET, OidcIssuer, make_key, serving_issuer

EMAIL = "ada@acme.example"
ROLES = "ops=operator,acme-dev=Acme/developer,acme-owners=Acme/owner"


@dataclass(frozen=True, slots=True)
class World:
    dashboard: Dashboard
    issuer: OidcIssuer

    async def arrive(self, browser: Browser, **claims: Any) -> Page:
        """Sign in by the provider's account with these claims."""
        there = await browser.get("/dashboard/sign-in/oidc?next=/dashboard/applications")
        assert there.status == 303, there.words
        values = {"sub": "ada-1", "email": EMAIL, "email_verified": True} | claims
        return await browser.get(self.issuer.authorize(there.location, values))

    async def user(self, email: str = EMAIL) -> User | None:
        async with self.dashboard.service.database.connection() as connection:
            return await users.find_user(connection, email)

    async def roles(self, email: str = EMAIL) -> dict[str, str]:
        async with self.dashboard.service.database.connection() as connection:
            user = await users.find_user(connection, email)
            assert user is not None
            return {each.organisation.name: each.role for each in await users.list_memberships(connection, user.id)}

    async def audit(self) -> list[tuple[str, str]]:
        async with self.dashboard.service.database.connection() as connection:
            rows = await connection.fetch("select action, subject from audit order by at, id")
            return [(row["action"], row["subject"]) for row in rows]


@pytest.fixture
async def world(dsn: str, tmp_path: Path) -> AsyncIterator[World]:
    secret = tmp_path / "client-secret"
    secret.write_text(f"{SECRET}\n")
    async with serving_issuer() as issuer:
        settings: dict[str, Any] = {
            "OIDC_ISSUER": issuer.url,
            "OIDC_CLIENT_ID": CLIENT,
            "OIDC_CLIENT_SECRET_FILE": str(secret),
            "OIDC_ROLES": ROLES,
        }
        async with serving_dashboard(dsn, tmp_path, **settings) as dashboard:
            yield World(dashboard, issuer)


async def test_a_new_user_gets_the_roles_of_its_groups_and_arrives_where_it_wanted(world: World) -> None:
    browser = await world.dashboard.browser()
    assert "Single sign-on" in (await browser.get("/dashboard/sign-in")).words

    page = await world.arrive(browser, groups=["acme-dev", "acme-owners", "canteen"])

    assert (page.status, page.location) == (303, "/dashboard/applications")
    assert EMAIL in (await browser.get("/dashboard/applications")).words
    assert await world.roles() == {"Acme": "owner"}
    entries = await world.audit()
    assert {("user.create", EMAIL), ("user.bind", EMAIL), ("user.sign_in", EMAIL)} <= set(entries)


async def test_a_user_of_before_is_bound_by_a_verified_address_and_known_by_the_subject_from_then_on(
    world: World,
) -> None:
    await world.dashboard.user(EMAIL, await world.dashboard.organisation("Other"), "viewer")
    assert (await world.arrive(await world.dashboard.browser())).status == 303
    renamed = await world.arrive(await world.dashboard.browser(), email="lovelace@acme.example")
    assert renamed.status == 303
    assert await world.user("lovelace@acme.example") is None
    assert await world.roles() == {"Other": "viewer"}, "organisations that no role names stay"

    other = await world.arrive(await world.dashboard.browser(), sub="mallory")
    assert other.status == 403
    assert "another account" in other.words


@pytest.mark.parametrize("verified", [False, None, "true", 1])
async def test_an_address_that_is_not_verified_binds_nobody(world: World, verified: object) -> None:
    await world.dashboard.user(EMAIL)
    page = await world.arrive(await world.dashboard.browser(), email_verified=verified)
    assert page.status == 403
    assert "has not verified" in page.words
    async with world.dashboard.service.database.connection() as connection:
        assert await oidc_subjects.find_user(connection, world.issuer.url, "ada-1") is None


async def test_who_is_given_nothing_gets_no_account(world: World) -> None:
    page = await world.arrive(await world.dashboard.browser(), groups=["canteen"])
    assert page.status == 403
    assert "no account for ada@acme.example" in page.words
    assert await world.user() is None


async def test_each_sign_in_sets_the_rights_anew(world: World) -> None:
    browser = await world.dashboard.browser()
    await world.arrive(browser, groups=["ops", "acme-dev"])
    before = await world.user()
    assert before is not None
    assert before.is_operator
    await world.dashboard.user("grace@acme.example", await find_organisation(world, "Acme"), "owner")

    assert (await world.arrive(await world.dashboard.browser(), groups=[])).status == 303

    after = await world.user()
    assert after is not None
    assert not after.is_operator
    assert await world.roles() == {}
    assert (await browser.get("/dashboard/operations")).status == 404, "the session of before lost them too"


async def test_an_organisation_keeps_its_only_owner(world: World) -> None:
    await world.arrive(await world.dashboard.browser(), groups=["acme-owners"])
    with capture_logs() as entries:
        assert (await world.arrive(await world.dashboard.browser(), groups=[])).status == 303
    assert await world.roles() == {"Acme": "owner"}
    assert any("only owner" in str(entry.get("reason")) for entry in entries)


async def test_gained_rights_end_what_signed_in_before(world: World) -> None:
    await world.dashboard.user(EMAIL, await world.dashboard.organisation("Other"), "viewer", password=True)
    old = await world.dashboard.browser()
    assert (await old.sign_in(EMAIL)).status == 303
    assert (await world.arrive(await world.dashboard.browser(), groups=["ops"])).status == 303
    assert (await old.get()).status == 303
    assert (await (await world.dashboard.browser()).sign_in(EMAIL, PASSWORD)).status == 422


async def test_claims_that_the_token_lacks_come_from_userinfo(world: World) -> None:
    world.issuer.userinfo = {"email": EMAIL, "email_verified": True, "groups": "acme-dev", "sub": "ada-1"}
    browser = await world.dashboard.browser()
    there = await browser.get("/dashboard/sign-in/oidc")
    assert (await browser.get(world.issuer.authorize(there.location, {"sub": "ada-1"}))).status == 303
    assert await world.roles() == {"Acme": "developer"}
    world.issuer.userinfo["sub"] = "somebody else"
    there = await browser.get("/dashboard/sign-in/oidc")
    assert (await browser.get(world.issuer.authorize(there.location, {"sub": "ada-1"}))).status == 502


async def test_a_strange_key_is_not_asked_for_at_each_sign_in(world: World) -> None:
    await world.arrive(await world.dashboard.browser(), groups=["acme-dev"])
    assert world.issuer.key_reads == 1
    world.issuer.key, world.issuer.key_id = make_key(), "second"
    for _ in range(3):
        assert (await world.arrive(await world.dashboard.browser())).status == 502
    assert world.issuer.key_reads == 1, "they were read less than a minute before"


async def test_a_provider_with_one_key_need_not_name_it(world: World) -> None:
    world.issuer.key_id = None
    assert (await world.arrive(await world.dashboard.browser(), groups=["acme-dev"])).status == 303


def _other_key(issuer: OidcIssuer) -> None:
    issuer.signs_with = make_key(), "RS256"


def _unsigned(issuer: OidcIssuer) -> None:
    issuer.signs_with = "", "none"


def _symmetric(issuer: OidcIssuer) -> None:
    issuer.signs_with = SECRET.encode() * 2, "HS256"


def _other_answer(name: str, value: str) -> Callable[[OidcIssuer], None]:
    return lambda issuer: issuer.returns.update({name: value})


@pytest.mark.parametrize(
    ("bend", "claims", "status"),
    [
        (_other_key, {}, 502),
        (_unsigned, {}, 502),
        (_symmetric, {}, 502),
        (None, {"aud": "another client"}, 502),
        (None, {"aud": [CLIENT, "another client"], "azp": "another client"}, 502),
        (None, {"iss": "https://evil.example"}, 502),
        (None, {"nonce": "0" * 64}, 502),
        (None, {"exp": int(time.time()) - 600}, 502),
        (None, {"sub": ""}, 502),
        (_other_answer("state", "0" * 64), {}, 502),
        (_other_answer("iss", "https://evil.example"), {}, 502),
        (_other_answer("code", "another"), {}, 502),
        (_other_answer("code", ""), {}, 502),
        (_other_answer("error", "access_denied"), {}, 422),
    ],
)
async def test_a_hostile_answer_signs_nobody_in(
    world: World, bend: Callable[[OidcIssuer], None] | None, claims: dict[str, Any], status: int
) -> None:
    await world.dashboard.user(EMAIL)
    if bend is not None:
        bend(world.issuer)
    browser = await world.dashboard.browser()
    page = await world.arrive(browser, **claims)
    assert page.status == status, page.words
    assert (await browser.get()).status == 303
    assert SECRET not in page.text


async def test_an_answer_works_once_and_in_its_own_browser_only(world: World) -> None:
    await world.dashboard.user(EMAIL)
    browser, other = await world.dashboard.browser(), await world.dashboard.browser()
    there = await browser.get("/dashboard/sign-in/oidc")
    claims = {"sub": "ada-1", "email": EMAIL, "email_verified": True}
    back = world.issuer.authorize(there.location, claims)
    assert (await other.get(back)).status == 422
    await other.get("/dashboard/sign-in/oidc")
    assert (await other.get(back)).status == 502, "an attempt of its own does not fit"
    assert (await browser.get(back)).status == 303
    assert (await browser.get(back)).status == 422


@pytest.mark.parametrize(
    "document",
    [
        {"issuer": "https://evil.example"},
        {"token_endpoint": None},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"jwks_uri": "http://127.0.0.1:9/keys"},
    ],
)
async def test_a_broken_provider_is_said_in_a_sentence(world: World, document: dict[str, Any]) -> None:
    world.issuer.document = document
    page = await (await world.dashboard.browser()).get("/dashboard/sign-in/oidc")
    assert page.status == 502
    assert "could not be asked who you are" in page.words


async def test_a_provider_that_fails_is_asked_once_in_a_while(world: World) -> None:
    world.issuer.document = {"issuer": "https://evil.example"}
    browsers = [await world.dashboard.browser() for _ in range(5)]
    pages = await asyncio.gather(*(browser.get("/dashboard/sign-in/oidc") for browser in browsers))
    assert [page.status for page in pages] == [502] * 5
    assert world.issuer.document_reads == 1


async def test_without_a_provider_there_is_no_such_page(dashboard: Dashboard) -> None:
    browser = await dashboard.browser()
    assert "Single sign-on" not in (await browser.get("/dashboard/sign-in")).words
    for path in ("/dashboard/sign-in/oidc", "/dashboard/sign-in/oidc/return?code=1&state=2"):
        assert (await browser.get(path)).status == 404


async def find_organisation(world: World, name: str) -> users.Organisation:
    async with world.dashboard.service.database.connection() as connection:
        found = await users.find_organisation(connection, name)
    assert found is not None
    return found
