"""The dashboard on a real socket, with users, and browsers that keep cookies and send forms as ours do."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from api.bounds import BOUNDS, Bounds
from api.rules.passwords import hash_password
from bench.lab.ports import free_ports
from common.accounts import Role, hash_token, mint_random_token
from common.db import grants, sessions, users
from common.db.applications import update_application
from common.db.session import SessionTimeouts
from common.db.users import Organisation
from tests.integration.api.conftest import Service, open_service
from tests.integration.api.partner import Partner

PASSWORD = "a long and winding road"


@dataclass(frozen=True, slots=True)
class Page:
    status: int
    text: str
    headers: Any = field(repr=False)
    path: str

    @property
    def location(self) -> str:
        location: str = self.headers["Location"]
        return location

    @property
    def csrf(self) -> str:
        found = re.search(r'name="csrf" value="([0-9a-f]{64})"', self.text)
        assert found, self.text[:2000]
        return found[1]

    @property
    def words(self) -> str:
        """Without markup."""
        return " ".join(unescape(re.sub(r"<[^>]+>", " ", self.text)).split())


@dataclass(slots=True)
class Browser:
    """Keeps cookies, follows no redirect, and sends forms from our origin."""

    session: aiohttp.ClientSession
    url: str

    async def get(self, path: str = "/dashboard", **options: Any) -> Page:
        return await self.send("GET", path, **options)

    async def post(self, path: str, /, *, of: str | None = None, csrf: str | None = None, **form: str) -> Page:
        """`of`: the page whose form it is, if it is not at the same path."""
        token = csrf if csrf is not None else (await self.get(of or path)).csrf
        return await self.send("POST", path, data={"csrf": token, **form}, headers={"Origin": self.url})

    async def send(self, method: str, path: str, **options: Any) -> Page:
        async with self.session.request(method, self.url + path, allow_redirects=False, **options) as response:
            return Page(response.status, await response.text(), response.headers, path)

    async def sign_in(self, email: str, password: str = PASSWORD) -> Page:
        return await self.post("/dashboard/sign-in", email=email, password=password, next="")


@dataclass(slots=True)
class Dashboard:
    service: Service
    stack: AsyncExitStack

    async def browser(self) -> Browser:
        jar = aiohttp.CookieJar(unsafe=True)
        session = await self.stack.enter_async_context(aiohttp.ClientSession(cookie_jar=jar))
        return Browser(session, self.service.url)

    async def organisation(self, name: str = "Acme") -> Organisation:
        async with self.service.database.transaction() as connection:
            return await users.create_organisation(connection, name)

    async def user(
        self, email: str, organisation: Organisation | None = None, role: Role = "developer", *, password: bool = False
    ) -> str:
        """The user's id. Without an organisation, an operator."""
        async with self.service.database.transaction() as connection:
            user = await users.create_user(connection, email, is_operator=organisation is None)
            if organisation is not None:
                await grants.give_role(connection, user, organisation.id, role)
            if password:
                await users.set_password_hash(connection, user.id, hash_password(PASSWORD))
        return user.id

    async def join(self, user_id: str, organisation: Organisation, role: Role) -> None:
        """Make the user a member, or change the role, as an operator does."""
        async with self.service.database.transaction() as connection:
            user = await users.get_user(connection, user_id)
            assert user is not None
            await grants.give_role(connection, user, organisation.id, role)

    async def signed_in(
        self, email: str, organisation: Organisation | None = None, role: Role = "developer"
    ) -> Browser:
        """A browser in which a new user is signed in, by a link."""
        return await self.signed_in_again(await self.user(email, organisation, role))

    async def signed_in_again(self, user_id: str) -> Browser:
        """Another browser of the user, by a link."""
        browser, token = await self.browser(), mint_random_token()
        async with self.service.database.transaction() as connection:
            await sessions.create_link(connection, hash_token(token), user_id, sessions.LINK_LIFETIME)
        page = await browser.post(f"/dashboard/link/{token}")
        assert page.status == 303, page
        return browser

    async def partner(self, organisation: Organisation | None = None) -> Partner:
        partner = await self.service.partner()
        if organisation is not None:
            async with self.service.database.transaction() as connection:
                await update_application(connection, partner.id, organisation_id=organisation.id)
        return partner


@pytest.fixture
def bounds() -> Bounds:
    """Tests that come to one of them override this."""
    return BOUNDS


@pytest.fixture
async def dashboard(dsn: str, tmp_path: Path, bounds: Bounds) -> AsyncIterator[Dashboard]:
    async with serving_dashboard(dsn, tmp_path, bounds) as dashboard:
        yield dashboard


@asynccontextmanager
async def serving_dashboard(
    dsn: str, state_dir: Path, bounds: Bounds = BOUNDS, **environ: str
) -> AsyncIterator[Dashboard]:
    """`environ`: further settings, by their names without the prefix."""
    async with AsyncExitStack() as stack:
        port, probe_port = free_ports(2)
        settings: dict[str, Any] = environ | {
            "API_LISTEN": f"127.0.0.1:{port}",
            "PUBLIC_URL": f"http://localhost:{port}",
        }
        service = await stack.enter_async_context(
            open_service(dsn, state_dir, probe_port, SessionTimeouts(), bounds=bounds, **settings)
        )
        yield Dashboard(service, stack)
