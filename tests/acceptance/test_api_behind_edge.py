"""The management API and the dashboard under a domain of the operator's own, served by the installation's own edge:
every process real, every connection TLS with a verified certificate."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from api.cli.database import prepare
from bench.demo.stage import CUSTOMER, Stage, set_up
from bench.demo.walk_clients import OneAddressResolver
from bench.private_stage import private_environment
from common.db import certificates, domains
from common.db.pool import Database
from common.domain_settings import DomainSettings
from common.settings import load
from tests.integration.cli import frontage
from tests.waiting import until

DOMAIN = f"api.{CUSTOMER}"
TENANT = f"shop.{CUSTOMER}"
A_FEW = 30  # ten wrong secrets are answered at once, then one in six seconds
SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Installation:
    stage: Stage
    environ: dict[str, str]
    url: str

    @asynccontextmanager
    async def client(self, address: str = "127.0.0.1") -> AsyncIterator[aiohttp.ClientSession]:
        """A browser at that address, to which every name leads to the edge."""
        connector = aiohttp.TCPConnector(
            local_addr=(address, 0),
            resolver=OneAddressResolver(self.stage.edge_https_host),
            ssl=ssl.create_default_context(cafile=str(self.stage.ca_file)),
        )
        async with aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=SECONDS),
            cookie_jar=aiohttp.CookieJar(unsafe=False),
        ) as session:
            yield session


@pytest.fixture
async def installation(dsn: str, tmp_path: Path) -> AsyncIterator[Installation]:
    environ = private_environment(tmp_path, DATABASE_URL=dsn, API_TRUSTED_PROXIES="127.0.0.1/32")
    port = environ["FRONTAGE_EDGE_HTTPS"].rpartition(":")[2]
    environ["FRONTAGE_PUBLIC_URL"] = url = f"https://{DOMAIN}:{port}"
    await prepare(load({name: value for name, value in environ.items() if name.startswith("FRONTAGE_")}))
    async with set_up(environ, tmp_path) as stage:
        yield Installation(stage, environ, url)


async def published(installation: Installation) -> None:
    done = await asyncio.to_thread(
        frontage.run, "domain", "publish-api", installation.stage.application_id, "--json", env=installation.environ
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["domain"] == DOMAIN

    async def answers() -> bool:
        try:
            async with installation.client() as client, client.get(f"{installation.url}/healthz") as response:
                return response.status == 200
        except aiohttp.ClientError:
            return False

    await until(answers, seconds=SECONDS)


async def test_api_and_dashboard_are_served_by_our_own_edge(installation: Installation, database: Database) -> None:
    await published(installation)
    await _diagnoses_itself(installation)
    await _throttles_by_the_clients_address(installation)
    await _keeps_a_session_and_streams(installation)
    await _opens_it_to_no_tenant(installation, database)


async def _diagnoses_itself(installation: Installation) -> None:
    stage = installation.stage
    async with installation.client() as client:
        body = {"applicationId": stage.application_id, "secret": stage.client_secret}
        async with client.post(f"{installation.url}/token", json=body) as response:
            token = (await response.json())["auth_token"]
        headers = {"applicationId": stage.application_id, "Authorization": f"Bearer {token}"}

        async def is_well() -> bool:
            async with client.get(f"{installation.url}/domains/{DOMAIN}/diagnosis", headers=headers) as response:
                found = await response.json()
                return bool(found["status"] == "ok" and found["origin"]["status"] == "ok")

        await until(is_well, "the diagnosis of the API's own domain is ok", seconds=SECONDS)


async def _throttles_by_the_clients_address(installation: Installation) -> None:
    """Wrong secrets from one address are slowed down; an address that the client claims to have changes nothing."""

    async def guess(client: aiohttp.ClientSession, forged: str) -> int:
        body = {"applicationId": installation.stage.application_id, "secret": "wrong"}
        fields = {"X-Forwarded-For": forged}
        async with client.post(f"{installation.url}/token", json=body, headers=fields) as response:
            return response.status

    async with installation.client("127.0.0.2") as greedy:
        statuses = [await guess(greedy, f"203.0.113.{number}") for number in range(A_FEW)]
        assert set(statuses) == {401, 429}
        assert statuses[0] == 401
    async with installation.client("127.0.0.3") as other:
        assert await guess(other, "127.0.0.2") == 401


async def _keeps_a_session_and_streams(installation: Installation) -> None:
    async with installation.client("127.0.0.4") as client:
        link = installation.stage.sign_in_link
        assert link.startswith(installation.url)
        async with client.get(link) as response:
            csrf = re.findall(r'name="csrf" value="(\w+)"', await response.text())[0]
        foreign = {"Origin": "https://elsewhere.example", "Sec-Fetch-Site": "cross-site"}
        async with client.post(link, data={"csrf": csrf}, headers=foreign) as response:
            assert response.status == 403
        own = {"Origin": installation.url, "Sec-Fetch-Site": "same-origin"}
        async with client.post(link, data={"csrf": csrf}, headers=own, allow_redirects=False) as response:
            assert response.status == 303
            cookies = response.headers.getall("Set-Cookie")
        session = next(each for each in cookies if each.startswith("__Host-frontage-session="))
        assert "; Secure" in session
        assert "; HttpOnly" in session
        async with client.get(f"{installation.url}/dashboard/operations") as response:
            assert response.status == 200
            assert "max-age" in response.headers["Strict-Transport-Security"]
            assert "plain text" not in await response.text()
        async with client.get(f"{installation.url}/dashboard/operations/live") as response:
            assert response.content_type == "text/event-stream"
            assert await response.content.readline() == b"event: content\n"  # and the stream goes on


async def _opens_it_to_no_tenant(installation: Installation, database: Database) -> None:
    """Not even a row that no request could have written leads another domain to the API."""
    stage = installation.stage
    async with database.transaction() as connection:
        await certificates.lock_domain(connection, TENANT)
        await domains.secure(
            connection, TENANT, stage.application_id, DomainSettings(f"http://{stage.settings.api_listen}")
        )
    address = f"https://{TENANT}:{stage.settings.edge_https.port}/healthz"

    async def is_refused() -> bool:
        try:
            async with installation.client("127.0.0.5") as client, client.get(address) as response:
                return response.status == 502
        except aiohttp.ClientError:  # it has no certificate yet
            return False

    await until(is_refused, seconds=SECONDS)
