"""DNS-01 in a delegated zone: Pebble asks a validating resolver, which asks the customer's zone and then a real edge.

The customer's zone is Knot's, the resolver is unbound. Nothing answers over HTTP, but where it is said.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from ipaddress import ip_network
from pathlib import Path

import dns.asyncquery
import dns.dnssec
import dns.message
import dns.rcode
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from bench.lab.knot import Knot, find_knot
from bench.lab.pebble import Pebble, running_pebble
from bench.lab.ports import free_ports
from bench.lab.unbound import find_unbound, serve_unbound
from common.addresses import AddressPolicy
from common.db import delegations, domains, orders
from common.db.domains import NewDomain
from common.db.order_queue import Order
from common.db.pool import Database
from common.db.renewal_risks import RiskCode
from common.dns import Pass, Resolver
from common.domain_settings import DomainSettings
from common.enrolment.delegations import Delegations
from common.enrolment.eligibility import ServiceTargets
from common.host_ports import HostPort
from common.secrets import Keyring
from common.setting_values import DnsUpdateTarget
from common.settings import load
from monitor.certificates.challenge_zone import ChallengeZone
from monitor.certificates.dns_moved_away import DomainDnsCheck, Lead
from monitor.certificates.issuer import IssuanceFailed
from monitor.certificates.journal import UpdateZone
from monitor.certificates.rehearsal import Rehearsal
from tests.component.edge_process import real_edge
from tests.integration.monitor import parts
from tests.waiting import until, until_equal

from .parts import Answering, opened

pytestmark = pytest.mark.skipif(not (find_knot() and find_unbound()), reason="needs Debian's knot and unbound")

DOMAIN = parts.DOMAIN
ZONE = "acme.frontage.example"
SECRET = "c2VjcmV0IG9mIHRoZSBjaGFsbGVuZ2Ugem9uZQ=="


class World:
    """A customer's zone, the resolver of the CA and of monitors, an edge that serves the operator's zone, a CA."""

    def __init__(self, database: Database, keyring: Keyring, pebble: Pebble, knot: Knot) -> None:
        self.database = database
        self.keyring = keyring
        self.pebble = pebble
        self.knot = knot
        self.lead: Lead = "elsewhere"
        self.update_zone: UpdateZone | None = None

    async def find_lead(self, _domain: str, _application_id: str) -> Lead:
        return self.lead

    def dns_check(self) -> DomainDnsCheck:
        """As the monitor makes it, but for where the domain leads."""
        host, _, port = self.pebble.dns.rpartition(":")
        policy = AddressPolicy((ip_network("127.0.0.0/8"),), ())
        resolver = Resolver([HostPort(host, int(port))], policy)
        targets = ServiceTargets(frozenset(), frozenset())
        return DomainDnsCheck(self.database, resolver, targets, no_probe, Delegations(self.database, ZONE))

    async def delegate(self, application_id: str = parts.APPLICATION) -> None:
        async with self.database.connection() as connection:
            label = await delegations.mint(connection, DOMAIN, application_id)
        await self.knot.add("example", f"_acme-challenge.{DOMAIN}.", "CNAME", f"{label}.{ZONE}.")

    @asynccontextmanager
    async def issuing(self) -> AsyncIterator[None]:
        """A monitor, for the block."""
        async with opened(self.pebble, self.database, self.keyring, Answering()) as issuer:
            runner = parts.make_runner(
                self.database,
                issuer,
                self.keyring,
                find_lead=self.find_lead,
                is_delegated=self.dns_check().is_delegated,
                update_zone=self.update_zone,
            )
            async with parts.running(runner):
                yield


async def no_probe(_questions: Pass, _domain: str) -> bool:
    return False


@pytest.fixture
async def world(
    request: pytest.FixtureRequest, tmp_path: Path, dsn: str, database: Database, keyring: Keyring
) -> AsyncIterator[World]:
    """Edges answer over DNS alone; with the parameter ``http`` over HTTP alone, with ``update`` Knot has the zone.

    With ``signed`` the customer's zone is, and the resolver validates it; with ``forged`` it knows another key.
    """
    await parts.add_application(database)
    nothing, edge_dns = free_ports(2)
    way = getattr(request, "param", "dns")
    named = {"FRONTAGE_EDGE_DNS": f"127.0.0.1:{edge_dns}", "FRONTAGE_ACME_DNS_ZONE": ZONE}
    named = {} if way in ("http", "update") else named
    signed = ["example"] if way in ("signed", "forged") else []
    with real_edge(tmp_path, workers=1, FRONTAGE_DATABASE_URL=dsn, **named) as edge:
        await edge.start()
        async with AsyncExitStack() as stack:
            unsigned = f"{ZONE}. NS ns.{ZONE}.\nns.{ZONE}. A 127.0.0.1\n" if signed else ""
            served = {"example": f"{DOMAIN}. A 127.0.0.1\n{unsigned}", ZONE: ""}
            knot = await stack.enter_async_context(Knot.serve(served, keys={"frontage": SECRET}, signed=signed))
            zones = {"example": knot.address, ZONE: HostPort("127.0.0.1", edge_dns)}
            if way == "update":
                zones[ZONE] = knot.address
            anchors = [await knot.find_trust_anchor(zone) for zone in signed]
            if way == "forged":
                other = dns.dnssec.make_dnskey(ec.generate_private_key(ec.SECP256R1()).public_key(), 13, 257)
                anchors = [f"example. 60 IN DNSKEY {other.to_text()}"]
            resolver = await stack.enter_async_context(serve_unbound(zones, trust_anchors=anchors))
            running = running_pebble(tmp_path, http_port=edge.http if way == "http" else nothing, resolver=resolver)
            pebble = await stack.enter_async_context(running)
            yield World(database, keyring, pebble, knot)


async def enrol(database: Database, *names: str) -> None:
    """As an operator's import does: the monitor looks at the DNS first."""
    async with database.transaction() as connection:
        new = [NewDomain(each, "power", DomainSettings("https://origin.example")) for each in names or (DOMAIN,)]
        await domains.enrol_by_hand(connection, parts.APPLICATION, new)


def update_target(world: World) -> DnsUpdateTarget:
    given = {"FRONTAGE_ACME_DNS_ZONE": ZONE, "FRONTAGE_ACME_DNS_UPDATE": f"{world.knot.address}=frontage:{SECRET}"}
    settings = load(given)
    assert settings.acme_dns_update is not None
    assert SECRET not in repr(settings)
    return settings.acme_dns_update


async def last_error(database: Database) -> str:
    [row] = await parts.fetch(database, "select coalesce(last_error, '') as last_error from orders")
    return str(row["last_error"])


@pytest.mark.parametrize("lead", ["here", "elsewhere"])
async def test_domain_whose_challenge_is_delegated_has_its_certificate_wherever_it_leads(
    world: World, lead: Lead
) -> None:
    world.lead = lead
    await world.delegate()
    await enrol(world.database)
    async with world.issuing():
        await parts.until_live(world.database, DOMAIN)
    [domain] = await parts.fetch(world.database, "select departed_at is null as leads_here from domains")
    assert domain["leads_here"] is (lead == "here")
    [row] = await parts.fetch(world.database, "select challenge_values from acme_delegations")
    assert row["challenge_values"] == [], "the values are answered while the order runs"


@pytest.mark.parametrize(("world", "is_updated"), [("dns", False), ("update", True)], indirect=["world"])
async def test_wildcard_and_the_name_it_is_of_have_their_certificates_by_one_record(
    world: World, *, is_updated: bool
) -> None:
    """Both orders run at once, and the CA asks for both values at one name."""
    if is_updated:
        world.update_zone = ChallengeZone(ZONE, update_target(world)).write
    wildcard = f"*.{DOMAIN}"
    await world.delegate()
    await enrol(world.database, DOMAIN, wildcard)
    async with world.issuing():
        for name in (DOMAIN, wildcard):
            await parts.until_live(world.database, name)
    rows = await parts.fetch(world.database, "select domain, chain from certificates order by domain")
    leaves = {row["domain"]: x509.load_pem_x509_certificate(row["chain"].encode()) for row in rows}
    names = {
        domain: leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName) for domain, leaf in leaves.items()
    }
    assert {domain: found.value.get_values_for_type(x509.DNSName) for domain, found in names.items()} == {
        DOMAIN: [DOMAIN],
        wildcard: [wildcard],
    }
    [row] = await parts.fetch(world.database, "select challenge_values, wildcard_values from acme_delegations")
    assert (row["challenge_values"], row["wildcard_values"]) == ([], [])


async def test_delegation_to_another_applications_label_orders_nothing(world: World) -> None:
    await parts.add_application(world.database, parts.OTHER_APPLICATION)
    async with world.database.connection() as connection:
        await delegations.mint(connection, DOMAIN, parts.APPLICATION)
    await world.delegate(parts.OTHER_APPLICATION)
    await enrol(world.database)
    async with world.issuing():
        await until_equal(lambda: last_error(world.database), orders.DNS_MOVED_AWAY)
    assert await parts.fetch(world.database, "select from certificates") == []


@pytest.mark.parametrize("world", ["signed"], indirect=True)
async def test_delegation_in_a_signed_zone_is_validated(world: World) -> None:
    await world.delegate()
    await enrol(world.database)
    async with world.issuing():
        await parts.until_live(world.database, DOMAIN)


@pytest.mark.parametrize("world", ["forged"], indirect=True)
async def test_delegation_whose_signature_is_another_keys_orders_nothing(world: World) -> None:
    await world.delegate()
    await enrol(world.database)
    async with world.issuing():
        await until(lambda: last_error(world.database))
    assert await parts.fetch(world.database, "select from certificates") == []


@pytest.mark.parametrize("world", ["http"], indirect=True)
async def test_way_that_failed_is_followed_by_the_other(world: World) -> None:
    """The delegation is seen, and no edge answers the operator's zone."""
    world.lead = "here"
    await world.delegate()
    await enrol(world.database)
    async with world.issuing():
        await parts.until_live(world.database, DOMAIN)
    failed = await parts.fetch(world.database, "select from ca_ledger where kind = 'failed_validation'")
    assert len(failed) == 1, "the CA was asked to validate over DNS first"


@pytest.mark.parametrize(("world", "expected"), [("dns", None), ("http", "delegation_unanswered")], indirect=["world"])
async def test_rehearsal_asks_the_zone_as_a_ca_would(world: World, expected: RiskCode | None) -> None:
    await world.delegate()
    [row] = await parts.fetch(world.database, "select label from acme_delegations")
    order = Order(DOMAIN, parts.APPLICATION, "issued", 1, 1, {}, 0.0, None, label=row["label"])
    settings = load({"FRONTAGE_ACME_DNS_ZONE": ZONE, "FRONTAGE_ACME_DIRECTORY": "https://ca.example/directory"})
    check, policy = world.dns_check(), AddressPolicy((), ())
    rehearsal = Rehearsal(world.database, settings, check.resolver, policy, world.keyring, check.delegations)
    found = await rehearsal(order, ["dns-01"])
    assert found != "unknown"
    assert (found and found.code) == expected


@pytest.mark.parametrize("world", ["update"], indirect=True)
async def test_name_server_of_the_operators_gets_the_records_by_signed_updates(world: World) -> None:
    await world.delegate()
    await enrol(world.database)
    target = update_target(world)
    wrong = target._replace(secret="d3Jvbmcgc2VjcmV0IG9mIHRoZSB6b25l")
    with pytest.raises(IssuanceFailed, match="FRONTAGE_ACME_DNS_UPDATE"):
        await ChallengeZone(ZONE, wrong).write("a" * 32, ["value"])

    world.update_zone = ChallengeZone(ZONE, target).write
    async with world.issuing():
        await parts.until_live(world.database, DOMAIN)
    [row] = await parts.fetch(world.database, "select label from acme_delegations")
    query = dns.message.make_query(f"{row['label']}.{ZONE}", "TXT")
    reply = await dns.asyncquery.tcp(query, world.knot.address.host, port=world.knot.address.port)
    assert reply.rcode() == dns.rcode.NXDOMAIN, "the record is removed once the order has ended"
