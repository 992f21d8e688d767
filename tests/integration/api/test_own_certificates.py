"""A partner's own certificate: what visitors get, from its upload to its last day."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from api.rules import certificate_files
from bench.process_tree import descendants
from common.db import certificates, edge_nodes, events, feed, orders, own_certificates, replacements, roles
from common.db.ca_ledger import Limits
from common.db.own_certificates import OwnCertificate
from common.db.status import read_status
from monitor.own_certificates import OwnCertificateWatch
from tests.certificates import Authority, ec_key, pem, pem_of
from tests.component.edge_process import EdgeProcess, real_edge
from tests.integration.api.conftest import Service
from tests.integration.api.partner import Answer, Partner
from tests.integration.monitor.parts import CountingIssuer, fetch, make_runner, running, until_live
from tests.waiting import until_equal

DOMAIN = "shop.customer.test"
PATH = f"/domains/{DOMAIN}/certificate"
CA = Authority()
KEY = ec_key()


def serial_of(certificate: x509.Certificate) -> str:
    return f"{certificate.serial_number:x}"


class Shop:
    """A domain with a certificate of ours, whose partner brings another one."""

    def __init__(self, service: Service, partner: Partner, state_dir: Path) -> None:
        self.service = service
        self.partner = partner
        self.issuer = CountingIssuer(state_dir)
        self.watch = OwnCertificateWatch(service.database, on_event=lambda: None)

    async def bring(self, leaf: x509.Certificate, key: Any = KEY) -> Answer:
        sent = {"certificate": pem(leaf, CA.intermediate), "privateKey": key and pem_of(key)}
        return await self.partner.call("PUT", PATH, json=sent)

    async def shown(self) -> dict[str, Any]:
        answer = await self.partner.call("GET", PATH)
        assert answer.status == 200
        return dict(answer.body)

    async def issue(self) -> None:
        """Let ours be issued, or renewed."""
        async with running(make_runner(self.service.database, self.issuer, self.service.keyring)):
            await until_live(self.service.database, DOMAIN)

    async def renew(self) -> None:
        async with self.service.database.transaction() as connection:
            assert await orders.request_renewal(connection, DOMAIN, self.partner.id)
        await self.issue()

    async def pass_until(self, days_before_its_end: float) -> None:
        """Have as many days left of the partner's certificate, and look at it."""
        async with self.service.database.transaction() as connection:
            await connection.execute(
                "update own_certificates set due_at = now(), not_after = now() + make_interval(secs => $1)",
                days_before_its_end * 86400 - 60,
            )
        await self.watch.check_once()
        await self.watch.check_once()  # once more changes nothing

    async def warnings(self) -> list[tuple[int, bool]]:
        async with self.service.database.connection() as connection:
            found = await events.list_events(connection, self.partner.id, before=None, limit=100)
        of_kind = [each.fields for each in reversed(found) if each.type == "domain.certificate_expiring"]
        return [(each["days_left"], each["replaced"]) for each in of_kind]


@pytest.fixture
async def shop(service: Service, tmp_path: Path) -> Shop:
    partner = await service.partner()
    service.point(DOMAIN)
    assert (await partner.post(DOMAIN)).status == 200
    return Shop(service, partner, tmp_path)


@pytest.fixture
async def edge(service: Service, dsn: str, tmp_path: Path) -> AsyncIterator[EdgeProcess]:
    with real_edge(tmp_path, workers=1, FRONTAGE_DATABASE_URL=dsn) as process:
        await process.start()
        yield process


async def served_serial(edge: EdgeProcess) -> str:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", edge.https, ssl=context, server_hostname=DOMAIN)
    try:
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return serial_of(x509.load_der_x509_certificate(der))
    finally:
        writer.close()


async def test_edges_serve_it_through_renewals_of_ours_until_it_is_removed(shop: Shop, edge: EdgeProcess) -> None:
    await shop.issue()
    ours = await shop.shown()
    assert (ours["source"], ours["is_live"], ours["names"]) == ("ours", True, [DOMAIN])
    await until_equal(lambda: served_serial(edge), ours["serial"])

    leaf = CA.leaf(KEY, DOMAIN)
    assert (await shop.bring(leaf)).body["message"] == "Certificate successfully stored."
    await until_equal(lambda: served_serial(edge), serial_of(leaf))
    await shop.renew()
    assert len(shop.issuer.issued) == 2
    assert await served_serial(edge) == serial_of(leaf)
    shown = await shop.shown()
    assert (shown["source"], shown["serial"], shown["issuer"]) == ("own", serial_of(leaf), "Inter")
    assert shown["stands_by"] is True
    assert "PRIVATE" not in str(shown)
    diagnosis = await shop.partner.diagnose(DOMAIN)
    assert (diagnosis["certificate"]["own"], diagnosis["certificate"]["issuer"]) == (True, "Inter")

    assert (await shop.partner.call("DELETE", PATH)).status == 200
    renewed = await shop.shown()
    assert (renewed["source"], renewed["serial"] != ours["serial"]) == ("ours", True)
    await until_equal(lambda: served_serial(edge), renewed["serial"])
    assert (await shop.partner.call("DELETE", PATH)).body["code"] == "no_own_certificate"


async def test_it_serves_where_ours_cannot_be_issued_and_the_domain_is_active(shop: Shop, edge: EdgeProcess) -> None:
    leaf = CA.leaf(KEY, DOMAIN)
    await shop.bring(leaf)
    await until_equal(lambda: served_serial(edge), serial_of(leaf))
    [row] = await fetch(shop.service.database, "select active_until > now() + interval '80 days' as soon from domains")
    assert row["soon"]
    assert not (await shop.shown())["stands_by"]


async def test_a_request_keeps_its_key_here_and_is_answered_by_the_certificate_alone(
    shop: Shop, edge: EdgeProcess
) -> None:
    assert (await shop.bring(CA.leaf(KEY, DOMAIN), None)).body["code"] == "key_needed"
    made = (await shop.partner.call("POST", f"{PATH}/request")).body
    assert (await shop.partner.call("POST", f"{PATH}/request")).body == made, "its key may be on its way to the CA"
    assert (await shop.bring(CA.leaf(KEY, DOMAIN), None)).body["code"] == "certificate_key_mismatch"
    leaf = CA.leaf(x509.load_pem_x509_csr(made["request"].encode()), DOMAIN)
    assert (await shop.bring(leaf, None)).status == 200
    await until_equal(lambda: served_serial(edge), serial_of(leaf))
    assert (await shop.shown())["request"] is None


async def test_what_is_refused_changes_nothing(shop: Shop) -> None:
    await shop.bring(first := CA.leaf(KEY, DOMAIN))
    answer = await shop.bring(CA.leaf(KEY, "other.example"))
    assert (answer.status, answer.body["code"]) == (400, "certificate_name_mismatch")
    assert answer.message == "The certificate cannot be served"
    assert "request one that has it as a DNS name" in answer.body["hint"]
    assert (await shop.shown())["serial"] == serial_of(first)
    for body in ({"certificate": 1}, {"privateKey": pem_of(KEY)}, {"certificate": "x", "privateKey": ["x"]}):
        assert (await shop.partner.call("PUT", PATH, json=body)).status == 400
    other = await shop.service.partner()
    for method, path in (("GET", PATH), ("DELETE", PATH), ("POST", f"{PATH}/request")):
        assert (await other.call(method, path)).status == 404


async def test_it_leaves_with_its_domain(shop: Shop) -> None:
    await shop.bring(CA.leaf(KEY, DOMAIN))
    await shop.partner.call("POST", f"{PATH}/request")
    assert (await shop.partner.delete(DOMAIN)).status == 200
    for table in ("own_certificates", "certificate_requests"):
        assert await fetch(shop.service.database, f"select from {table}") == []
    await shop.partner.post(DOMAIN)
    assert (await shop.shown())["source"] is None


async def test_its_end_is_announced_and_ours_takes_over_on_the_last_day(shop: Shop) -> None:
    await shop.issue()
    await shop.bring(CA.leaf(KEY, DOMAIN))
    await shop.watch.check_once()
    assert await shop.warnings() == []
    for days in (30, 14, 7):
        await shop.pass_until(days)
    assert await shop.warnings() == [(30, False), (14, False), (7, False)]
    assert (await shop.shown())["source"] == "own"
    await shop.pass_until(1)
    assert (await shop.warnings())[3:] == [(1, True)]
    assert (await shop.shown())["source"] == "ours"


async def test_it_stays_until_there_is_one_of_ours_which_each_warning_asks_for(shop: Shop) -> None:
    await shop.bring(CA.leaf(KEY, DOMAIN))
    async with shop.service.database.transaction() as connection:
        await connection.execute("update orders set state = 'failed', due_at = now() + interval '1 day'")
    await shop.pass_until(14)
    [order] = await fetch(shop.service.database, "select state, due_at <= now() as is_due from orders")
    assert order == {"state": "running", "is_due": True}
    await shop.pass_until(0.5)
    assert await shop.warnings() == [(14, False), (1, False)]
    assert (await shop.shown())["source"] == "own"
    await shop.issue()
    await shop.pass_until(0.4)
    assert await shop.warnings() == [(14, False), (1, False), (1, True)]
    assert (await shop.shown())["source"] == "ours"


async def test_keys_are_stored_sealed(shop: Shop) -> None:
    await shop.bring(CA.leaf(KEY, DOMAIN))
    [row] = await fetch(shop.service.database, "select private_key from own_certificates")
    opened = shop.service.keyring.open(row["private_key"], certificates.key_identity(DOMAIN))
    assert opened == certificate_files.key_pem(KEY)
    async with shop.service.database.connection() as connection:
        assert await own_certificates.find(connection, "elsewhere.test") is None


async def test_an_edge_that_serves_the_certificate_of_before_is_named(shop: Shop, edge: EdgeProcess) -> None:
    async def reach() -> list[tuple[bool, str | None]]:
        found = (await shop.partner.diagnose(DOMAIN))["edges"]["certificates"]
        return [(each["is_current"], each["serial"]) for each in found]

    first, second = CA.leaf(KEY, DOMAIN), CA.leaf(KEY, DOMAIN)
    current: list[tuple[bool, str | None]] = [(True, serial_of(first))]
    old_one: list[tuple[bool, str | None]] = [(False, None)]
    await shop.bring(first)
    await until_equal(reach, current)
    for pid in reversed(list(descendants(edge.process.pid))):  # what outlives its supervisor ends the lease
        os.kill(pid, signal.SIGKILL)
    await edge.ended()
    await shop.bring(second)
    await until_equal(reach, old_one)

    async def old() -> list[tuple[int, str]]:
        async with shop.service.database.connection() as connection:
            status = await read_status(connection, Limits())
        return [(each.count, each.example) for each in status.old_certificates]

    async def move_change(to: str) -> None:
        async with shop.service.database.transaction() as connection:
            await connection.execute(f"update changes set changed_at = clock_timestamp() {to} interval '2 minutes'")

    await move_change("+")
    assert await old() == [], "it may apply the change any moment"
    await move_change("-")
    assert await old() == [(1, DOMAIN)]


@pytest.mark.parametrize("role", ["api", "monitor"])
async def test_the_rights_of_each_role_are_enough(shop: Shop, role: str) -> None:
    now = datetime.now(UTC)
    brought = OwnCertificate(DOMAIN, shop.partner.id, "CA", "4f", (DOMAIN,), now, now + timedelta(days=60), now)
    async with shop.service.database.transaction() as connection:
        await roles.apply(connection, create=True)
        await connection.execute(f"set local role frontage_{role}")
        await own_certificates.add_request(connection, DOMAIN, shop.partner.id, request="x", private_key=b"key")
        for key in (b"key", None, b"key"):
            await own_certificates.store(connection, brought, chain="chain", private_key=key)
        assert await own_certificates.find(connection, DOMAIN) is not None
        selection = replacements.Selection(before=now)
        assert await replacements.request(connection, selection, most=5) == 0
        identity, _ = await feed.read_version(connection)
        assert await edge_nodes.find_certificate_reach(connection, DOMAIN, identity) == []
        assert await edge_nodes.list_old_certificates(connection, identity) == []
        assert await own_certificates.remove(connection, DOMAIN)
