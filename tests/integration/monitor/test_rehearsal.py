"""The rehearsal of a renewal: the way of a CA's validation walked, and what is wrong with it said once, in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bench.lab.server import NameServer
from bench.lab.zone import Behaviour, Zone
from common.addresses import tenant_policy
from common.db import delegations, events, order_outcomes, order_queue, orders, own_certificates
from common.db.certificates import Certificate
from common.db.order_queue import Order
from common.db.own_certificates import OwnCertificate
from common.db.pool import Database
from common.db.renewal_risks import Risk, RiskRecord
from common.dns import Resolver
from common.edge_probe import probing_policy
from common.enrolment.delegations import Delegations
from common.probe import CHALLENGE_PROBE_PATH, probe_answer
from common.secrets import Keyring
from common.settings import load
from monitor.certificates.dns_moved_away import Lead
from monitor.certificates.issuance import Issuance
from monitor.certificates.issuer import ChallengeKind
from monitor.certificates.rehearsal import Finding, Rehearsal
from tests.integration.monitor import parts
from tests.integration.monitor.parts import APPLICATION, DOMAIN

CDN = "cdn.elsewhere.example"
CHALLENGE = f"_acme-challenge.{DOMAIN}"
CHALLENGE_ZONE = "acme.frontage.example"


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
    """What stands before a CA. `order` is of the domain, whose challenge is delegated once it has a label."""

    def __init__(self, database: Database, front: Front, zone: Zone, rehearsal: Rehearsal) -> None:
        self.database, self.front, self.zone, self.rehearsal = database, front, zone, rehearsal
        self.order = Order(DOMAIN, APPLICATION, "issued", 1, 1, {}, 0.0, None)

    async def rehearse(self, *ways: ChallengeKind) -> Finding:
        return await self.rehearsal(self.order, ways or ("http-01",))

    async def delegate(self) -> str:
        """Set the delegation's record, and return its value."""
        await parts.add_application(self.database)
        async with self.database.connection() as connection:
            label = await delegations.mint(connection, DOMAIN, APPLICATION)
        self.order = replace(self.order, label=label)
        self.zone.add(CHALLENGE, "CNAME", f"{label}.{CHALLENGE_ZONE}")
        self.zone.add(CHALLENGE_ZONE, "TXT", "the zone answers")
        return f"{label}.{CHALLENGE_ZONE}"


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
                "FRONTAGE_ACME_DNS_ZONE": CHALLENGE_ZONE,
            }
        )
        resolver = Resolver(settings.dns_servers, tenant_policy(settings), authority_port=names.port)
        names.zone.add(DOMAIN, "A", "127.0.0.1")
        policy = probing_policy(settings)
        zone = Delegations(database, CHALLENGE_ZONE)
        rehearsal = Rehearsal(database, settings, resolver, policy, keyring, zone, port=front.port)
        yield Stage(database, front, names.zone, rehearsal)


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


async def test_a_delegated_challenge_is_walked_in_place_of_the_domain(stage: Stage) -> None:
    stage.front.answers = {"127.0.0.1": "another"}  # a CDN, for instance
    await stage.delegate()
    assert await stage.rehearse("dns-01", "http-01") is None
    assert await stage.rehearse("dns-01") is None
    assert stage.front.asked == []
    stage.zone.add(DOMAIN, "CAA", '0 issue "letsencrypt.org; validationmethods=dns-01"')
    assert await stage.rehearse("dns-01") is None
    stage.zone.replace(DOMAIN, "CAA", '0 issue "letsencrypt.org; validationmethods=http-01"')
    found = await stage.rehearse("dns-01", "http-01")
    assert isinstance(found, Risk)
    assert found.code == "challenge_elsewhere", "the way that the records leave is walked"
    found = await stage.rehearse("dns-01")
    assert isinstance(found, Risk)
    assert found.code == "caa_forbids"


@pytest.mark.parametrize("fault", ["missing", "unanswered"])
async def test_a_delegation_that_does_not_work_counts_where_it_is_the_only_way(stage: Stage, fault: str) -> None:
    value = await stage.delegate()
    if fault == "missing":
        stage.zone.remove(CHALLENGE, "CNAME")
    else:
        stage.zone.misbehave(value, Behaviour.SERVFAIL)
    assert await stage.rehearse("dns-01", "http-01") is None, "HTTP does"
    found = await stage.rehearse("dns-01")
    assert isinstance(found, Risk)
    if fault == "missing":
        assert (found.code, found.who) == ("delegation_missing", "domain_owner")
        assert found.record == RiskRecord("CNAME", CHALLENGE, value)
    else:
        assert (found.code, found.who, found.record) == ("delegation_unanswered", "operator", None)
        assert f"Have the name servers of {CHALLENGE_ZONE} answer" in found.action


async def test_of_an_unknown_delegation_nothing_is_said(stage: Stage) -> None:
    await stage.delegate()
    stage.front.answers = {"127.0.0.1": "another"}
    stage.zone.misbehave(CHALLENGE, Behaviour.SERVFAIL)
    assert await stage.rehearse("dns-01") == "unknown"
    assert await stage.rehearse("dns-01", "http-01") == "unknown"


class Rehearsed:
    """A domain's certificate that is looked after, and what its rehearsals find."""

    issuance: Issuance

    def __init__(self, database: Database) -> None:
        self.database = database
        self.found: Finding = Risk("challenge_elsewhere", "Let requests reach us.", "domain_owner")
        self.lead: Lead = "here"
        self.ways: list[Sequence[ChallengeKind]] = []

    async def rehearse(self, order: Order, ways: Sequence[ChallengeKind]) -> Finding:
        assert order.domain == DOMAIN
        self.ways.append(ways)
        return self.found

    async def find_lead(self, _domain: str, _application_id: str) -> Lead:
        return self.lead

    async def look(self) -> tuple[int, float]:
        """How many events there are then, and in how many hours the next look is due."""
        async with self.database.transaction() as connection:
            await connection.execute("update orders set due_at = now()")
            [order] = await order_queue.claim(connection, most=1, lease_seconds=60)
        await self.issuance.perform(order)
        async with self.database.connection() as connection:
            state = await orders.describe(connection, DOMAIN)
        assert state is not None
        assert state.due_at is not None
        return len(await self.events()), (state.due_at - datetime.now(UTC)) / timedelta(hours=1)

    async def events(self) -> list[dict[str, Any]]:
        """The events so far, newest first."""
        async with self.database.connection() as connection:
            listed = await events.list_events(connection, APPLICATION, before=None, limit=100)
        return [dict(each.fields) for each in listed if each.type == "domain.renewal_at_risk"]


@pytest.fixture
async def rehearsed(database: Database, tmp_path: Path) -> Rehearsed:
    """A domain with a certificate of 90 days."""
    await parts.add_application(database)
    await parts.power(database)
    of = Rehearsed(database)
    of.issuance = parts.make_issuance(
        database,
        parts.CountingIssuer(tmp_path),
        parts.keyring(tmp_path),
        rehearse=of.rehearse,
        find_lead=of.find_lead,
        random=Random(1),
    )
    now = datetime.now(UTC)
    async with database.transaction() as connection:
        [order] = await order_queue.claim(connection, most=1, lease_seconds=60)
        certificate = Certificate("internal", "chain", b"key", now, now + timedelta(days=90))
        await order_outcomes.record_issued(connection, order, certificate, {})
        await order_outcomes.record_live(connection, order, now + timedelta(days=60), {})
    return of


async def test_an_event_is_recorded_once_after_two_looks_and_again_when_it_is_back(rehearsed: Rehearsed) -> None:
    count, hours = await rehearsed.look()
    assert (count, hours <= 1) == (0, True), "confirmed soon"
    count, hours = await rehearsed.look()
    assert (count, hours > 12) == (1, True)
    for found in ("unknown", rehearsed.found, None):
        rehearsed.found = found
        assert (await rehearsed.look())[0] == 1
    rehearsed.found = Risk("caa_forbids", "Add a record.", "domain_owner", RiskRecord("CAA", DOMAIN, '0 issue "ours"'))
    assert [(await rehearsed.look())[0] for _ in range(3)] == [1, 2, 2]
    latest, _ = await rehearsed.events()
    assert latest["record"] == {"type": "CAA", "host": DOMAIN, "value": '0 issue "ours"'}
    assert (latest["code"], latest["who"], latest["days_left"]) == ("caa_forbids", "domain_owner", 89)
    assert set(rehearsed.ways) == {("http-01",)}


@pytest.mark.parametrize(("days", "expected"), [(60, []), (20, [89])])
async def test_while_a_partners_certificate_serves_for_long_ours_is_not_missed(
    rehearsed: Rehearsed, days: int, expected: list[int]
) -> None:
    now = datetime.now(UTC)
    own = OwnCertificate(DOMAIN, APPLICATION, "CA", "4f", (DOMAIN,), now, now + timedelta(days=days), now)
    async with rehearsed.database.transaction() as connection:
        await own_certificates.store(connection, own, chain="chain", private_key=b"key")
    await rehearsed.look()
    await rehearsed.look()
    assert [each["days_left"] for each in await rehearsed.events()] == expected


async def test_of_a_prepared_domain_the_delegation_alone_is_rehearsed(rehearsed: Rehearsed) -> None:
    async with rehearsed.database.transaction() as connection:
        await connection.execute(
            "insert into preparations (application_id, domain, product, state, expires_at)"
            " values ($1, $2, 'power', 'prepared', now() + interval '30 days')",
            APPLICATION,
            DOMAIN,
        )
    rehearsed.lead = "elsewhere"
    await rehearsed.look()
    await rehearsed.look()
    assert set(rehearsed.ways) == {("dns-01",)}
    assert len(await rehearsed.events()) == 1
