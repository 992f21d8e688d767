"""`frontage certificate …`: what operators see of orders and limits, and what they ask for."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from bench.peers.certificates import make_certificate
from common.db import ca_ledger, certificates, order_outcomes, order_queue
from common.db.certificates import Certificate
from common.db.pool import Database
from common.errors import FenceLost
from common.secrets import load_keyring
from monitor.certificates.renewal import urgency
from tests.certificates import Authority, pem
from tests.integration.api.installation import FollowingEdge
from tests.integration.cli import frontage
from tests.integration.monitor import parts
from tests.integration.monitor.parts import APPLICATION, DOMAIN
from tests.waiting import until

CA = "https://ca.example/directory"


@pytest.fixture
async def env(database: Database, dsn: str, tmp_path: Path) -> dict[str, str]:
    load_keyring(tmp_path / "master.key", create=True)
    await parts.add_application(database)
    return frontage.environment(tmp_path, DATABASE_URL=dsn, ACME_ORDERS_PER_ACCOUNT="2")


async def go_live(database: Database) -> None:
    await parts.power(database)
    await issue(database)


async def issue(database: Database) -> None:
    now = datetime.now(UTC)
    async with database.transaction() as connection:
        [order] = await order_queue.claim(connection, most=1, lease_seconds=60)
        certificate = Certificate(CA, "chain", b"key", now, now + timedelta(days=90))
        await order_outcomes.record_issued(connection, order, certificate, {"order": 0.1})
        await order_outcomes.record_live(connection, order, now + timedelta(days=60), {"order": 0.1, "live": 0.01})


def output(env: dict[str, str], *arguments: str) -> str:
    done = frontage.run("certificate", *arguments, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def refused(env: dict[str, str], *arguments: str) -> str:
    done = frontage.run("certificate", *arguments, env=env)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    return done.stderr


async def test_renewal_and_revocation_are_written_down_for_a_monitor(database: Database, env: dict[str, str]) -> None:
    await go_live(database)
    shown = json.loads(output(env, "show", DOMAIN.upper()))
    assert (shown["state"], shown["kind"], shown["seconds"]) == ("issued", "new", {"order": 0.1, "live": 0.01})
    assert "no monitor runs" in frontage.run("certificate", "renew", DOMAIN, env=env).stderr
    shown = json.loads(output(env, "show", DOMAIN))
    assert (shown["state"], shown["kind"]) == ("running", "manual")
    await issue(database)
    shown = json.loads(output(env, "show", DOMAIN))
    assert (shown["state"], shown["kind"]) == ("issued", "manual")
    output(env, "revoke", DOMAIN, "--reason", "keyCompromise")
    [revocation] = await parts.fetch(database, "select domain, chain, issuer, reason from revocations")
    assert revocation == {"domain": DOMAIN, "chain": "chain", "issuer": CA, "reason": 1}
    order = await parts.order_of(database)
    assert order is not None
    assert (order["state"], order["kind"]) == ("running", "replacement")
    assert "not being revoked already" in refused(env, "revoke", DOMAIN)
    [shown_revocation] = json.loads(output(env, "show", DOMAIN))["revocations"]
    assert (shown_revocation["reason"], shown_revocation["revokedAt"]) == ("keyCompromise", None)


async def test_revocation_need_not_wait_for_a_replacement(database: Database, env: dict[str, str]) -> None:
    await go_live(database)
    due = "select due_at <= now() as due from revocations"
    output(env, "revoke", DOMAIN, "--reason", "keyCompromise")
    assert await parts.fetch(database, due) == [{"due": False}]
    assert "now" in output(env, "revoke", DOMAIN, "--reason", "keyCompromise", "--at-once")
    assert await parts.fetch(database, due) == [{"due": True}]
    assert "not being revoked already" in refused(env, "revoke", DOMAIN, "--at-once")


async def test_a_certificate_is_shown_with_its_serial_number_and_its_end(
    database: Database, env: dict[str, str]
) -> None:
    await go_live(database)
    _, chain = make_certificate(DOMAIN)
    leaf = x509.load_pem_x509_certificate(chain.encode())
    async with database.transaction() as connection:
        await connection.execute("update certificates set chain = $1", chain)
    shown = json.loads(output(env, "show", DOMAIN))["certificate"]
    assert shown["serial"] == f"{leaf.serial_number:x}"
    assert (shown["issuer"], shown["source"]) == (leaf.issuer.rfc4514_string(), CA)
    left = datetime.fromisoformat(shown["notAfter"]) - datetime.now(UTC)
    assert timedelta(days=89) < left <= timedelta(days=90)


async def test_who_renews_by_hand_sees_how_long_the_limits_delay_it(database: Database, env: dict[str, str]) -> None:
    await go_live(database)
    assert "none waits for a limit" in output(env, "progress", "--follow")
    for name in ("a", "b", "c"):
        await parts.power(database, f"{name}.customer.example")
    async with database.transaction() as connection:
        first, *others = await order_queue.claim(connection, most=3, lease_seconds=60)
        await ca_ledger.reserve(connection, first, CA, ca_ledger.Limits(), "new", is_exempt=False)
        for order in others:
            words = f"{ca_ledger.WAITS_FOR_LIMIT}1 of 1 orders are used"
            await order_outcomes.defer(connection, order, delay_seconds=3600, words=words)
    found = json.loads(output(env, "progress", "--json"))
    assert (found["waiting"], found["orderedLastHour"]) == (2, 1)
    wait = datetime.fromisoformat(found["endsAt"]) - datetime.now(UTC)
    assert timedelta(hours=5, minutes=58) < wait <= timedelta(hours=6)  # one routine order in three hours
    words = frontage.run("certificate", "renew", DOMAIN, env=env).stdout
    assert "2 certificate orders wait for limits of the CA" in words
    assert json.loads(frontage.run("certificate", "renew", DOMAIN, "--json", env=env).stdout)["waiting"] == 2
    assert "2 certificate orders wait" in json.loads(frontage.run("status", "--json", env=env).stdout)["notices"][0]


async def test_kept_certificate_of_a_deleted_domain_can_be_revoked(database: Database, env: dict[str, str]) -> None:
    await go_live(database)
    await parts.remove(database)
    output(env, "revoke", DOMAIN)
    async with database.transaction() as connection:
        assert not await certificates.adopt(connection, DOMAIN, APPLICATION)


async def test_unknown_names_are_one_line(env: dict[str, str]) -> None:
    for command in ("show", "renew", "revoke"):
        assert "nobody.example is not enrolled here" in refused(env, command, "nobody.example")
        assert "no domain name" in refused(env, command, "127.0.0.1")


async def test_limits_say_what_is_used_and_when_there_is_room(database: Database, env: dict[str, str]) -> None:
    assert "nothing counts now" in output(env, "limits")
    for name in ("a", "b"):
        await parts.power(database, f"{name}.customer.example")
    async with database.transaction() as connection:
        for order in await order_queue.claim(connection, most=2, lease_seconds=60):
            await ca_ledger.reserve(connection, order, CA, ca_ledger.Limits(), "new", is_exempt=False)
    limits = {each["limit"]: each for each in json.loads(output(env, "limits", "--json"))}
    account, registered = limits["orders_per_account"], limits["certificates_per_registered_domain"]
    assert (account["used"], account["most"], account["subject"]) == (2, 2, "")
    slot = datetime.fromisoformat(account["nextSlotAt"]) - datetime.now(UTC)
    assert timedelta(hours=2, minutes=58) < slot <= timedelta(hours=3)
    assert (registered["used"], registered["subject"], registered["nextSlotAt"]) == (2, "customer.example", None)
    table = output(env, "limits")
    assert CA in table.splitlines()
    assert "2 / 2" in table
    assert "customer.example" in table


async def test_a_partners_own_certificate_is_brought_requested_and_ended(
    database: Database, env: dict[str, str], tmp_path: Path
) -> None:
    await go_live(database)
    authority = Authority()
    request = x509.load_pem_x509_csr(output(env, "request", DOMAIN).encode())
    leaf = authority.leaf(request, DOMAIN)
    chain = tmp_path / "chain.pem"
    chain.write_text(pem(authority.intermediate, leaf))
    assert "is served with this certificate" in output(env, "bring", DOMAIN, "--certificate", str(chain))
    assert json.loads(output(env, "show", DOMAIN))["own"]["serial"] == f"{leaf.serial_number:x}"
    assert "send the private key too" in refused(env, "bring", DOMAIN, "--certificate", str(chain))
    chain.write_bytes(b"\xff")
    assert "it is no text" in refused(env, "bring", DOMAIN, "--certificate", str(chain))
    assert "is served with our certificate" in output(env, "use-ours", DOMAIN)
    assert json.loads(output(env, "show", DOMAIN))["own"] is None
    actions = [
        row["action"] for row in await parts.fetch(database, "select action from audit order by id desc limit 2")
    ]
    assert actions == ["certificate.end_own", "certificate.bring"]


async def test_certificates_are_listed_and_replaced_by_authority_serial_and_date(
    database: Database, dsn: str, env: dict[str, str], tmp_path: Path
) -> None:
    issuer = parts.CountingIssuer(tmp_path)
    names = [f"shop-{number}.customer.example" for number in range(3)]

    async def issue_all(count: int) -> None:
        runner = parts.make_runner(database, issuer, parts.keyring(tmp_path))
        async with FollowingEdge.running(dsn, database), parts.running(runner):
            await until(lambda: len(issuer.issued) == count)
            for name in names:
                await parts.until_live(database, name)

    for name in names:
        await parts.power(database, name)
    await issue_all(3)
    listed = json.loads(output(env, "list", "--json"))["certificates"]
    assert sorted(each["domain"] for each in listed) == names
    assert {each["source"] for each in listed} == {"internal"}
    first, second, third = (each["serial"] for each in listed)
    assert "would be replaced" in output(env, "replace", "--serials", str(Path("/dev/null")), "--dry-run")
    [page] = json.loads(output(env, "list", "--issuer", listed[0]["issuer"], "--limit", "1", "--json"))["certificates"]
    assert page == listed[0]
    following = frontage.run("certificate", "list", "--limit", "1", env=env).stderr.split()[-1]
    assert third in output(env, "list", "--after", following)
    assert first not in output(env, "list", "--after", following)

    file = tmp_path / "serials"
    file.write_text(f"# of the CA\n{first.upper()}\n0x00{second}, revoked\n\nffff\n")
    asked = json.loads(output(env, "replace", "--serials", str(file), "--json"))
    assert asked == {"selected": 2, "requested": 2, "left": 2}
    assert json.loads(output(env, "replace", "--serials", str(file), "--json"))["requested"] == 0
    assert "to be replaced" in output(env, "list", "--serial", first)
    await issue_all(5)
    asked = json.loads(output(env, "replace", "--serials", str(file), "--json"))
    assert asked == {"selected": 0, "requested": 0, "left": 0}
    kept = {each["serial"] for each in json.loads(output(env, "list", "--json"))["certificates"]}
    assert kept & {first, second, third} == {third}

    tomorrow = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%d}"
    assert "3 certificates would be replaced" in output(env, "replace", "--before", tomorrow, "--dry-run")
    assert "give --serials, or --before" in refused(env, "replace", "--issuer", "internal")
    file.write_text("garbage\n")
    assert "is no serial number" in refused(env, "replace", "--serials", str(file))
    assert "is no date" in refused(env, "list", "--before", "yesterday")


async def test_a_worker_that_decided_before_the_request_does_not_undo_it(
    database: Database, env: dict[str, str]
) -> None:
    await go_live(database)
    async with database.transaction() as connection:
        await connection.execute("update orders set due_at = now()")
        [order] = await order_queue.claim(connection, most=1, lease_seconds=60)
    assert output(env, "replace", "--before", "2100-01-01", "--json")
    async with database.transaction() as connection:
        with pytest.raises(FenceLost):
            await order_outcomes.record_renewal_check(connection, order, datetime.now(UTC), next_check_seconds=86400)
    async with database.transaction() as connection:
        [order] = await order_queue.claim(connection, most=1, lease_seconds=60)
    assert (order.kind, order.is_renewal_due, urgency(order, datetime.now(UTC))) == ("renewal", True, "expiring")
