"""Every process under a login of its own, with no rights but its group's, and what a stolen edge gives away.

The edge has a database login that is in `frontage_edge` only, and a key file that was exported for it.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit, urlunsplit

import aiohttp
import asyncpg
import pytest

from api.cli.database import prepare
from bench.demo.stage import CUSTOMER, LOG_NAME, Stage, set_up
from bench.demo.walk_clients import PartnerClient, VisitorClient
from bench.private_stage import private_environment
from common import processes
from common.db import application_secrets, certificates, envelopes, roles
from common.db.session import Connection, open_session
from common.errors import SecretUnreadable
from common.secrets import Keyring, load_keyring, read_key_file
from common.settings import load
from tests.integration.cli import frontage
from tests.waiting import until

DOMAIN = f"shop.{CUSTOMER}"
SECONDS = 30.0


def login(dsn: str, name: str, password: str) -> str:
    """The same database as another user."""
    parts = urlsplit(dsn)
    address = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{name}:{password}@{address}"))


@dataclass(frozen=True, slots=True)
class Installation:
    """A stage whose roles have logins of their own; `edge_dsn` and `edge_key_file` are all that the edge has."""

    stage: Stage
    dsn: str
    edge_dsn: str
    edge_key_file: Path

    async def owner(self) -> Connection:
        return await open_session(self.dsn, "frontage tests")


@pytest.fixture
async def installation(dsn: str, tmp_path: Path) -> AsyncIterator[Installation]:
    suffix, password = secrets.token_hex(4), secrets.token_hex(16)
    environ = private_environment(tmp_path, DATABASE_URL=dsn)
    settings = load({name: value for name, value in environ.items() if name.startswith("FRONTAGE_")})
    owner = await open_session(dsn, "frontage tests")
    await owner.execute("grant create on schema public to public")  # as in a database made by Postgres 14
    await prepare(settings, create_roles=True)
    logins = {role: f"{role}_{suffix}" for role in roles.ROLES}
    edge_key_file = tmp_path / "edge.key"
    exported = frontage.run("master-key", "export", "--role", "edge", str(edge_key_file), env=environ)
    assert exported.returncode == 0, exported.stderr
    variables: dict[str, dict[str, str]] = {}
    variables |= {role: {"FRONTAGE_DATABASE_URL": login(dsn, name, password)} for role, name in logins.items()}
    variables["edge"]["FRONTAGE_MASTER_KEY_FILE"] = str(edge_key_file)

    class OwnLogins(processes.Group):
        """Starts each role with the variables that are its own."""

        async def start(self, name: str, argv: Sequence[str], environ: Mapping[str, str]) -> Any:
            return await super().start(name, argv, {**environ, **variables[name]})

    async with AsyncExitStack() as stack:
        for role, name in logins.items():
            await owner.execute(f"create role {name} login password '{password}' in role {roles.group(role)}")
            stack.push_async_callback(owner.execute, f"drop role {name}")
        try:
            with patch.object(processes, "Group", OwnLogins):
                async with set_up(environ, tmp_path) as stage:
                    yield Installation(stage, dsn, variables["edge"]["FRONTAGE_DATABASE_URL"], edge_key_file)
        finally:
            await owner.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where usename = any($1)", list(logins.values())
            )
    owner.terminate()


async def test_each_process_works_under_its_own_login(installation: Installation) -> None:
    """Power, HTTPS, monitoring, webhooks and the end of it all."""
    stage = installation.stage
    visitor = VisitorClient(stage.edge_https_host, stage.settings.edge_https.port, stage.ca_file)
    async with PartnerClient.at(stage.settings.base_url, stage.application_id) as partner:
        await partner.sign_in(stage.client_secret)
        assert (await partner.eligibility(DOMAIN))["eligible"] is True
        await partner.power(DOMAIN, f"{stage.lab.origin}/a")
        await visitor.get_when(DOMAIN, "Version A")
        await partner.move(DOMAIN, f"{stage.lab.origin}/b")
        await visitor.get_when(DOMAIN, "Version B")
        await monitored(installation)
        await partner.unpower(DOMAIN)
    await revoked(installation)
    assert "permission denied" not in (stage.settings.state_dir / LOG_NAME).read_text("utf-8")
    owner = await installation.owner()
    try:
        rows = await owner.fetch("select usename, count(*) from pg_stat_activity where usename like '%\\_%' group by 1")
        names = {row["usename"].rpartition("_")[0] for row in rows}
        assert names >= {"edge", "api", "monitor"}
        await until(lambda: owner.fetchval("select count(*) >= 2 from deliveries where status = 'delivered'"))
    finally:
        owner.terminate()


@asynccontextmanager
async def partner_session(installation: Installation) -> AsyncIterator[aiohttp.ClientSession]:
    """A client whose requests carry the partner's token."""
    stage = installation.stage
    async with aiohttp.ClientSession(stage.settings.base_url) as session:
        body = {"applicationId": stage.application_id, "secret": stage.client_secret}
        async with session.post("/token", json=body) as response:
            token = (await response.json())["auth_token"]
        session.headers.update({"Authorization": f"Bearer {token}", "applicationId": stage.application_id})
        yield session


async def revoked(installation: Installation) -> None:
    """A domain of Secure is deleted, and its certificate revoked for the reason given."""
    async with partner_session(installation) as session:
        enrolled = {"domain": DOMAIN, "applicationUrl": installation.stage.lab.origin}
        async with session.post("/ssl", json=enrolled) as response:
            assert response.status == 200, await response.text()
        deleted = {"domain": DOMAIN, "reason": "keyCompromise"}
        async with session.delete("/ssl", json=deleted) as response:
            assert response.status == 200, await response.text()


async def monitored(installation: Installation) -> None:
    """A domain is monitored, found wanting and let go of."""
    async with partner_session(installation) as session:
        records = [{"type": "TXT", "host": "@", "value": "expected", "ttl": 300}]
        monitored = {"domain": CUSTOMER, "dnsRecords": records}
        async with session.post("/monitor/domains", json=monitored) as response:
            assert response.status == 201, await response.text()

        async def is_reported() -> bool:
            async with session.get("/webhooks/events") as response:
                return "domain.record_missing" in str(await response.json())

        await until(is_reported)
        async with session.post("/webhooks/test") as response:
            assert response.status < 300, await response.text()
        batch = {"domains": [{"domain": f"a.{CUSTOMER}", "dnsRecords": records}]}
        async with session.post("/monitor/domains/batch", json=batch) as response:
            assert response.status < 300, await response.text()
        async with session.delete("/monitor/domains", json={"domain": CUSTOMER}) as response:
            assert response.status < 300, await response.text()


async def test_a_stolen_edge_gives_away_no_secret_of_others(installation: Installation) -> None:
    """The thief has the edge's login and key file."""
    await fill(installation)
    edge = await open_session(installation.edge_dsn, "thief")
    try:
        await expect_tables_closed(edge, await tables(installation))
        await expect_feed_closed(edge, installation)
        seen = "".join(row[0] for row in await edge.fetch("select content::text from feed_entries"))
    finally:
        edge.terminate()
    await assert_only_edge_secrets_open(installation, load_keyring(installation.edge_key_file))
    assert all(key.room == "edge" for key in read_key_file(installation.edge_key_file))
    owner = await installation.owner()
    try:
        application = await owner.fetchrow(
            "select * from applications where id = $1", installation.stage.application_id
        )
        assert application is not None
        for column in ("client_secret", "webhook_secret"):
            assert application[column].hex() not in seen
    finally:
        owner.terminate()


async def expect_tables_closed(edge: Connection, names: Iterable[str]) -> None:
    readable = set(roles.GRANTS["edge"])
    for table in names:
        if table not in readable:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await edge.execute(f"select 1 from {table}")
        for statement in (f"delete from {table}", f"insert into {table} default values"):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await edge.execute(statement)


async def expect_feed_closed(edge: Connection, installation: Installation) -> None:
    """Also where the database lets everyone make temporary tables, which may have triggers."""
    owner = await installation.owner()
    try:
        await owner.execute(
            f"grant temporary on database {await owner.fetchval('select current_database()')} to public"
        )
    finally:
        owner.terminate()
    await edge.execute("create temp table bait (n int)")
    for statement in (
        "create trigger evil after delete on bait for each row execute function follow_change('route')",
        "select record_change('route', 'power/evil.example')",
        "update feed_shards set version = version + 1",
        "create table evil (n int)",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await edge.execute(statement)
    owners_rights = "select proname from pg_proc where prosecdef and has_function_privilege(oid, 'execute')"
    assert {row["proname"] for row in await edge.fetch(owners_rights)} == {
        "describe_edge",
        "end_edge_lease",
        "end_lease",
        "feed_content",
        "hold_edge_lease",
        "renew_edge_lease",
        "report_edge_certificates",
        "report_edge_traffic",
        "report_lease",
        "report_traffic",
    }


async def assert_only_edge_secrets_open(installation: Installation, keys: Keyring) -> None:
    """Every envelope of the database is tried."""
    opened, refused = set(), set()
    owner = await installation.owner()
    try:
        for place in envelopes.SEALED_COLUMNS:
            rows = await owner.fetch(
                f"select {place.key[0]} as key, {place.column} as envelope from {place.table}"
                f" where {place.column} is not null"
            )
            for row in rows:
                try:
                    keys.open(row["envelope"], place.identity(row["key"]))
                    opened.add(str(place))
                except SecretUnreadable:
                    refused.add(str(place))
    finally:
        owner.terminate()
    assert opened == {"applications.service_auth", "certificates.private_key"}
    assert refused == {
        "applications.client_secret",
        "applications.webhook_secret",
        "acme_key.private_key",
        "internal_root.private_key",
        "domain_connect_keys.private_key",  # the stage signs for a provider of its zone
    }


async def fill(installation: Installation) -> None:
    """Something sealed in every room."""
    keyring = load_keyring(installation.stage.settings.key_file)
    application_id = installation.stage.application_id
    identity = certificates.key_identity("a.example")
    owner = await installation.owner()
    try:
        await owner.execute(
            "insert into certificates"
            " (domain, application_id, issuer, chain, private_key, not_before, not_after)"
            " values ('a.example', $1, 'internal', '', $2, now(), now())",
            application_id,
            keyring.seal(b"key", identity),
        )
        await owner.execute(
            "insert into acme_key (private_key, thumbprint) values ($1, 't')",
            keyring.seal(b"key", "acme/account-key"),
        )
        await owner.execute(
            "update applications set service_auth = $2 where id = $1",
            application_id,
            keyring.seal(b"token", application_secrets.service_auth_identity(application_id)),
        )
    finally:
        owner.terminate()


async def tables(installation: Installation) -> list[str]:
    owner = await installation.owner()
    try:
        rows = await owner.fetch("select tablename from pg_tables where schemaname = 'public'")
        return [row["tablename"] for row in rows]
    finally:
        owner.terminate()
