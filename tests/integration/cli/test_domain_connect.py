"""`frontage domain-connect …`: the key's records, its rotation, and the templates."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bench.lab.server import NameServer
from bench.lab.zone import Zone
from common.db import domain_connect_keys
from common.db.pool import Database
from common.secrets import load_keyring
from tests.integration.cli import frontage

OUR_ID = "partner.example"


@pytest.fixture
async def server() -> AsyncIterator[NameServer]:
    """Resolver and the zone's own server in one."""
    async with NameServer.serve(Zone()) as server:
        server.zone.add(OUR_ID, "TXT", '"ours"')
        yield server


@pytest.fixture
def env(dsn: str, tmp_path: Path) -> dict[str, str]:
    load_keyring(tmp_path / "master.key", create=True)
    return frontage.environment(
        tmp_path, DATABASE_URL=dsn, DOMAIN_CONNECT_PROVIDER_ID=OUR_ID, PUBLIC_URL="https://api.partner.example"
    )


def output(env: dict[str, str], *arguments: str) -> str:
    done = frontage.run("domain-connect", *arguments, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def refusal(env: dict[str, str], *arguments: str) -> str:
    done = await asyncio.to_thread(frontage.run, "domain-connect", *arguments, env=env)
    assert done.returncode == 1, done.stdout
    return done.stderr


async def test_the_key_is_made_once_and_replaced_when_the_next_one_is_published(
    env: dict[str, str], database: Database
) -> None:
    first = output(env, "key")
    assert first == output(env, "key")
    assert f'_dck1.{OUR_ID}. 3600 IN TXT "p=1,a=RS256,d=' in first
    assert "there is no next key" in await refusal(env, "rotate", "--finish")
    both = output(env, "rotate")
    assert both == output(env, "rotate")
    assert both.startswith(first)
    assert f"_dck2.{OUR_ID}." in both
    async with database.connection() as connection:
        assert [(each.label, each.signs) for each in await domain_connect_keys.list_keys(connection)] == [
            ("_dck1", True),
            ("_dck2", False),
        ]
    after = output(env, "rotate", "--finish", "--force")
    assert "_dck1" not in after
    assert "; _dck2 signs" in after
    assert "_dck3" in output(env, "rotate")


async def test_a_key_signs_only_once_the_zones_own_servers_have_its_records(
    env: dict[str, str], server: NameServer
) -> None:
    asked = {"FRONTAGE_DNS_SERVERS": server.address, "FRONTAGE_ALLOW_PRIVATE_ADDRESSES": "127.0.0.0/8"}
    env, name = env | asked, f"_dck2.{OUR_ID}"
    output(env, "key")
    texts = [line.split('"')[1] for line in output(env, "rotate").splitlines() if line.startswith(f"{name}.")]
    assert len(texts) == 2

    assert f"{name}: 2 of its 2 TXT records are not published" in await refusal(env, "rotate", "--finish")
    for text in texts:
        server.zone.add(name, "TXT", f'"{text}"')
    done = await asyncio.to_thread(output, env, "rotate", "--finish")
    assert "_dck1" not in done


def test_the_templates_have_the_installations_ids(env: dict[str, str], tmp_path: Path) -> None:
    output(env, "templates", str(tmp_path / "handed over"), "--name", "Acme")
    names = [f"{OUR_ID}.{service}.json" for service in ("records", "root", "subdomain")]
    assert sorted(path.name for path in (tmp_path / "handed over").iterdir()) == names
    template = json.loads((tmp_path / "handed over" / names[2]).read_text())
    ids = {name: template[name] for name in ("providerId", "providerName", "syncPubKeyDomain", "syncRedirectDomain")}
    assert ids == {
        "providerId": OUR_ID,
        "providerName": "Acme",
        "syncPubKeyDomain": OUR_ID,
        "syncRedirectDomain": "api.partner.example",
    }


def test_without_an_id_the_command_says_what_to_set(env: dict[str, str]) -> None:
    without = {name: value for name, value in env.items() if not name.endswith("PROVIDER_ID")}
    done = frontage.run("domain-connect", "key", env=without)
    assert (done.returncode, "FRONTAGE_DOMAIN_CONNECT_PROVIDER_ID is not set" in done.stderr) == (1, True)
