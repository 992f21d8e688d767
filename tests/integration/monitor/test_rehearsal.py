"""The rehearsal of a renewal: the way of a CA's validation walked, and what is wrong with it said once, in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bench.lab.server import NameServer
from bench.lab.zone import Zone
from common.addresses import tenant_policy
from common.db import certificates, events, order_outcomes, order_queue, orders
from common.db.certificates import Certificate
from common.db.pool import Database
from common.db.renewal_risks import Risk, RiskRecord
from common.dns import Resolver
from common.edge_probe import probing_policy
from common.probe import CHALLENGE_PROBE_PATH, probe_answer
from common.secrets import Keyring
from common.settings import load
from monitor.certificates.rehearsal import Finding, Rehearsal
from tests.integration.monitor import parts
from tests.integration.monitor.parts import APPLICATION, DOMAIN

CDN = "cdn.elsewhere.example"


class Front:
    """What stands at port 80 of each address of the domain: `answers` by address, "us" by default."""

    def __init__(self, keyring: Keyring) -> None:
        self.keyring = keyring
        self.answers: dict[str, str] = {}
        self.asked: list[str] = []
        self.port = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        path, host = head.split()[1], head.lower().split("host: ")[1].split()[0].split(":")[0]
        how = self.answers.get(writer.get_extra_info("sockname")[0], "us")
        self.asked.append(host)
        nonce = path.removeprefix(CHALLENGE_PROBE_PATH)
        body = (probe_answer(self.keyring, DOMAIN, nonce) or b"") if how == "us" else b"Welcome to our shop"
        status, location = "200 OK", ""
        if how.startswith("http") and host == DOMAIN:
            status, location, body = "301 Moved", f"Location: {how}{path}\r\n", b""
        elif how.startswith("http"):
            body = probe_answer(self.keyring, DOMAIN, nonce) or b""
        fields = f"{location}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(f"HTTP/1.1 {status}\r\n{fields}".encode() + body)
        await writer.drain()
        writer.close()


class Stage:
    def __init__(self, front: Front, zone: Zone, rehearsal: Rehearsal) -> None:
        self.front, self.zone, self.rehearsal = front, zone, rehearsal

    async def rehearse(self) -> Finding:
        return await self.rehearsal(DOMAIN)


@pytest.fixture
async def stage(database: Database, tmp_path: Path) -> AsyncIterator[Stage]:
    keyring = parts.keyring(tmp_path)
    front = Front(keyring)
    server = await asyncio.start_server(front.answer, "127.0.0.1", 0)
    front.port = server.sockets[0].getsockname()[1]
    second = await asyncio.start_server(front.answer, "127.0.0.2", front.port)
    async with NameServer.serve(Zone()) as names, server, second:
        settings = load(
            {
                "FRONTAGE_DNS_SERVERS": names.address,
                "FRONTAGE_ALLOW_PRIVATE_ADDRESSES": "127.0.0.0/8,::1/128",
                "FRONTAGE_ACME_DIRECTORY": "https://ca.example/directory",
                "FRONTAGE_ACME_CAA_IDENTITIES": "letsencrypt.org",
                "FRONTAGE_SERVICE_SERVERS": "127.0.0.1",
            }
        )
        resolver = Resolver(settings.dns_servers, tenant_policy(settings), authority_port=names.port)
        names.zone.add(DOMAIN, "A", "127.0.0.1")
        policy = probing_policy(settings)
        yield Stage(front, names.zone, Rehearsal(database, settings, resolver, policy, keyring, port=front.port))


async def test_a_way_that_leads_here_is_no_risk_along_redirects_too(stage: Stage) -> None:
    assert await stage.rehearse() is None
    stage.zone.add(CDN, "A", "127.0.0.2")
    stage.front.answers = dict.fromkeys(("127.0.0.1", "127.0.0.2"), f"http://{CDN}:{stage.front.port}")
    assert await stage.rehearse() is None
    assert stage.front.asked == [DOMAIN, DOMAIN, CDN]


@pytest.mark.parametrize(
    "location", ["http://127.0.0.1", "ftp://cdn.elsewhere.example", f"http://{DOMAIN}", "http://["]
)
async def test_a_redirect_that_leads_nowhere_good_is_another_server(stage: Stage, location: str) -> None:
    stage.front.answers = {"127.0.0.1": location if DOMAIN not in location else f"{location}:{stage.front.port}"}
    found = await stage.rehearse()
    assert isinstance(found, Risk)
    assert found.code == "challenge_elsewhere"


async def test_each_fault_names_who_must_do_what(stage: Stage) -> None:
    stage.front.answers = {"127.0.0.1": "another"}
    found = await stage.rehearse()
    assert isinstance(found, Risk)
    assert (found.code, found.who, found.record) == ("challenge_elsewhere", "domain_owner", None)
    assert f"http://{DOMAIN}/.well-known/acme-challenge/ reach us unchanged" in found.action

    stage.zone.replace(DOMAIN, "A", "127.0.0.3")  # where no server is
    found = await stage.rehearse()
    assert isinstance(found, Risk)
    assert (found.code, found.who) == ("challenge_unreachable", "domain_owner")

    stage.zone.add(DOMAIN, "CAA", '0 issue "other-ca.example"')
    found = await stage.rehearse()
    assert isinstance(found, Risk)
    assert (found.code, found.record) == ("caa_forbids", RiskRecord("CAA", DOMAIN, '0 issue "letsencrypt.org"'))
    assert "let other-ca.example issue certificates, and not our authority" in found.action


async def test_an_address_over_ipv6_that_leads_elsewhere_is_named(stage: Stage) -> None:
    try:
        server = await asyncio.start_server(stage.front.answer, "::1", stage.front.port)
    except OSError:
        pytest.skip("without IPv6")
    async with server:
        stage.zone.add(DOMAIN, "AAAA", "::1")
        stage.front.answers = {"::1": "another"}
        found = await stage.rehearse()
    assert isinstance(found, Risk)
    assert (found.code, found.record) == ("aaaa_elsewhere", RiskRecord("AAAA", DOMAIN, "::1"))
    assert await stage.rehearse() is None, "no server there: CAs go on over IPv4"


async def test_an_event_is_recorded_once_after_two_looks_and_again_when_it_is_back(
    database: Database, tmp_path: Path
) -> None:
    found: Finding = Risk("challenge_elsewhere", "Let requests reach us.", "domain_owner")

    async def rehearse(domain: str) -> Finding:
        assert domain == DOMAIN
        return found

    await parts.add_application(database)
    await parts.power(database)
    issuer, keys = parts.CountingIssuer(tmp_path), parts.keyring(tmp_path)
    issuance = parts.make_issuance(database, issuer, keys, rehearse=rehearse, random=Random(1))
    now = datetime.now(UTC)
    async with database.transaction() as connection:
        [order] = await order_queue.claim(connection, most=1, lease_seconds=60)
        certificate = Certificate("internal", "chain", b"key", now, now + timedelta(days=90))
        await order_outcomes.record_issued(connection, order, certificate, {})
        await order_outcomes.record_live(connection, order, now + timedelta(days=60), {})

    async def look() -> tuple[int, float]:
        """How many events there are then, and in how many hours the next look is due."""
        async with database.transaction() as connection:
            await connection.execute("update orders set due_at = now()")
            [order] = await order_queue.claim(connection, most=1, lease_seconds=60)
        await issuance.perform(order)
        async with database.connection() as connection:
            listed = await events.list_events(connection, APPLICATION, before=None, limit=100)
            state = await orders.describe(connection, DOMAIN)
        assert state is not None
        assert state.due_at is not None
        of_kind = [each for each in listed if each.type == "domain.renewal_at_risk"]
        return len(of_kind), (state.due_at - datetime.now(UTC)) / timedelta(hours=1)

    count, hours = await look()
    assert (count, hours <= 1) == (0, True), "confirmed soon"
    count, hours = await look()
    assert (count, hours > 12) == (1, True)
    found = "unknown"
    assert (await look())[0] == 1
    found = Risk("challenge_elsewhere", "Let requests reach us.", "domain_owner")
    assert (await look())[0] == 1
    found = None
    assert (await look())[0] == 1
    found = Risk("caa_forbids", "Add a record.", "domain_owner", RiskRecord("CAA", DOMAIN, '0 issue "ours"'))
    assert [(await look())[0] for _ in range(3)] == [1, 2, 2]
    async with database.connection() as connection:
        [latest, _] = await _risk_events(connection)
        assert await certificates.describe(connection, DOMAIN) is not None
    assert latest["record"] == {"type": "CAA", "host": DOMAIN, "value": '0 issue "ours"'}
    assert (latest["code"], latest["who"], latest["days_left"]) == ("caa_forbids", "domain_owner", 89)


async def _risk_events(connection: Any) -> list[dict[str, Any]]:
    listed = await events.list_events(connection, APPLICATION, before=None, limit=100)
    return [dict(each.fields) for each in listed if each.type == "domain.renewal_at_risk"]
