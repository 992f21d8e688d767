"""Orders from wanted to live, renewed and released, on a real Postgres."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from bench.following_edge import following_edge
from common.db import certificates, domains, edge_nodes, feed, order_queue, orders
from common.db.pool import Database
from common.secrets import Keyring
from tests.integration.expiry import erase
from tests.waiting import until

from . import parts
from .parts import APPLICATION, DOMAIN, OTHER_APPLICATION, CountingIssuer


@pytest.fixture
def issuer(tmp_path: Path) -> CountingIssuer:
    return CountingIssuer(tmp_path)


async def feed_entry(database: Database, kind: str, key: str) -> bool:
    """Whether the edges know of it."""
    rows = await parts.fetch(database, "select 1 from changes where kind = $1 and key = $2 and not deleted", kind, key)
    return bool(rows)


async def add_edge(database: Database, *, lease: str = "1 minute") -> None:
    """An edge that has applied nothing."""
    async with database.transaction() as connection:
        await connection.execute(
            "insert into edge_nodes (node_id, feed_identity, version, lease_until)"
            " values ('edge-1', '', 0, now() + $1::text::interval)",
            lease,
        )


async def make_due(database: Database, domain: str = DOMAIN) -> None:
    async with database.transaction() as connection:
        await connection.execute("update orders set due_at = now(), renew_at = now() where domain = $1", domain)


async def test_of_an_application_for_tests_the_internal_authority_issues_and_no_ca_is_asked(
    shop: Database, tmp_path: Path, keys: Keyring
) -> None:
    public, internal = parts.LimitedIssuer(tmp_path / "public"), CountingIssuer(tmp_path)

    async def find_internal() -> CountingIssuer:
        return internal

    async with shop.transaction() as connection:
        await connection.execute("update applications set is_test = true where id = $1", APPLICATION)
    async with parts.running(parts.make_runner(shop, public, keys, test_issuer=find_internal)):
        await parts.power(shop)
        await parts.power(shop, "www.customer.example", OTHER_APPLICATION)
        await parts.until_live(shop)
        await parts.until_live(shop, "www.customer.example")
    assert (internal.issued, public.issued) == ([DOMAIN], ["www.customer.example"])
    assert {row["domain"] for row in await parts.fetch(shop, "select domain from ca_ledger")} == {
        "www.customer.example"
    }


async def test_powering_leads_to_a_live_certificate_whose_key_opens(
    shop: Database, issuer: CountingIssuer, keys: Keyring
) -> None:
    async with parts.running(parts.make_runner(shop, issuer, keys)):
        await parts.go_live(shop)
    [certificate] = await parts.certificates_of(shop)
    secret = keys.open(certificate["private_key"], certificates.key_identity(DOMAIN))
    leaf = x509.load_pem_x509_certificate(certificate["chain"].encode())
    assert load_pem_private_key(secret, None).public_key() == leaf.public_key()
    assert certificate["issuer"] == "internal"
    order = await parts.order_of(shop)
    assert order is not None
    assert set(order["phases"]) == {"wait", "key", "sign", "store", "live"}
    assert order["due_at"] < order["renew_at"]  # it is looked after before it is renewed
    assert (
        0.65
        < (order["renew_at"] - leaf.not_valid_before_utc) / (leaf.not_valid_after_utc - leaf.not_valid_before_utc)
        < 0.68
    )
    assert await feed_entry(shop, "certificate", DOMAIN)
    assert not await feed_entry(shop, "order", DOMAIN)


@dataclass
class Published:
    """What one step published: versions of the feed, and its entries."""

    versions: int
    entries: set[str]


async def test_each_step_of_a_certificate_is_published_once(
    shop: Database, issuer: CountingIssuer, keys: Keyring
) -> None:
    """The route with its order; the certificate with the order's end. A renewal's order is published by itself, because
    edges answer its challenge. Nothing else that becomes of an order until it is live, is published.
    """
    before = await head_of(shop)
    await parts.power(shop)
    powered = await head_of(shop)
    assert await published(shop, before, powered) == Published(1, {f"route/power/{DOMAIN}", f"order/{DOMAIN}"})
    async with parts.running(parts.make_runner(shop, issuer, keys)):
        await parts.until_live(shop)
    issued = await head_of(shop)
    assert await published(shop, powered, issued) == Published(1, {f"certificate/{DOMAIN}", f"order/{DOMAIN}"})
    async with parts.running(parts.make_runner(shop, issuer, keys)):
        await make_due(shop)
        await until(lambda: has_been_renewed(shop, issuer))
    renewed = await head_of(shop)
    assert await published(shop, issued, renewed) == Published(2, {f"certificate/{DOMAIN}", f"order/{DOMAIN}"})


async def has_been_renewed(database: Database, issuer: CountingIssuer) -> bool:
    order = await parts.order_of(database)
    return len(issuer.issued) == 2 and order is not None and order["finished_at"] is not None


async def head_of(database: Database) -> feed.Head:
    async with database.connection() as connection:
        return await feed.read_head(connection)


async def published(database: Database, before: feed.Head, after: feed.Head) -> Published:
    async with database.connection() as connection, feed.open_snapshot(connection) as snapshot:
        batches = [entries async for entries in snapshot.changes(before.positions)]
        assert snapshot.head == after
    return Published(
        after.version - before.version, {f"{kind}/{key}" for batch in batches for kind, key, _, _ in batch}
    )


async def test_edges_hold_handshakes_while_the_order_runs_only(shop: Database) -> None:
    await parts.power(shop)
    assert await feed_entry(shop, "order", DOMAIN)
    await parts.remove(shop)
    assert not await feed_entry(shop, "order", DOMAIN)


async def test_second_product_shares_order_and_certificate(
    shop: Database, issuer: CountingIssuer, keys: Keyring
) -> None:
    await parts.power(shop)
    await parts.power(shop, product="secure")
    async with parts.running(parts.make_runner(shop, issuer, keys)):
        await parts.until_live(shop)
    await parts.remove(shop)
    assert await feed_entry(shop, "certificate", DOMAIN)
    await parts.remove(shop, product="secure")
    assert not await feed_entry(shop, "certificate", DOMAIN)
    assert issuer.issued == [DOMAIN]


async def test_removing_one_product_while_the_other_is_added_keeps_the_order(shop: Database) -> None:
    await parts.power(shop)
    async with shop.transaction() as adding:
        await certificates.lock_domain(adding, DOMAIN)
        await adding.execute(
            "insert into domains (domain, product, application_id) values ($1, 'secure', $2)", DOMAIN, APPLICATION
        )
        await orders.request_order(adding, DOMAIN, APPLICATION, hold_seconds=10)
        removing = asyncio.create_task(parts.remove(shop))
        await until(lambda: somebody_waits(shop))
    await removing
    assert await parts.order_of(shop) is not None


async def somebody_waits(database: Database) -> bool:
    return bool(await parts.fetch(database, "select 1 from pg_locks where not granted"))


async def test_same_application_adopts_what_it_released_and_no_other_does(
    shop: Database, issuer: CountingIssuer, keys: Keyring
) -> None:
    async with parts.running(parts.make_runner(shop, issuer, keys)):
        await parts.go_live(shop)
        [first] = await parts.certificates_of(shop)
        await parts.remove(shop)
        await parts.power(shop)
        assert await feed_entry(shop, "certificate", DOMAIN)  # served from the commit on
        assert not await feed_entry(shop, "order", DOMAIN)
        await parts.until_live(shop)
        [adopted] = await parts.certificates_of(shop)
        assert adopted["chain"] == first["chain"]
        assert issuer.issued == [DOMAIN]

        await parts.remove(shop)
        await parts.power(shop, application_id=OTHER_APPLICATION)
        await parts.until_live(shop)
    assert issuer.issued == [DOMAIN, DOMAIN]
    in_service = [row for row in await parts.certificates_of(shop) if row["released_at"] is None]
    assert [row["application_id"] for row in in_service] == [OTHER_APPLICATION]
    assert in_service[0]["chain"] != first["chain"]


async def test_release_stops_service_at_once_and_voids_the_order_at_work(
    shop: Database, issuer: CountingIssuer, keys: Keyring
) -> None:
    deleted = asyncio.Event()

    async def delete_meanwhile() -> None:
        await parts.remove(shop)
        issuer.before = None
        deleted.set()

    issuer.before = delete_meanwhile
    async with parts.running(parts.make_runner(shop, issuer, keys)):
        await parts.power(shop)
        await asyncio.wait_for(deleted.wait(), 5)
        await parts.power(shop, "other.customer.example")
        await parts.until_live(shop, "other.customer.example")
    assert await parts.certificates_of(shop) == []
    assert await parts.order_of(shop) is None


async def test_failing_issuer_is_retried_and_holds_nobody_for_ever(
    shop: Database, tmp_path: Path, keys: Keyring
) -> None:
    issuer = CountingIssuer(tmp_path, failures=order_queue.FAILED_AFTER_ATTEMPTS + 1)

    async def has_failed() -> bool:
        order = await parts.order_of(shop)
        return order is not None and order["state"] == "failed"

    async with parts.running(parts.make_runner(shop, issuer, keys)):
        await parts.power(shop)
        await until(has_failed)
        order = await parts.order_of(shop)
        assert order is not None
        assert order["last_error"] == "the authority is out to lunch"
        assert not await feed_entry(shop, "order", DOMAIN)
        await parts.until_live(shop)  # still tried: the authority came back
    order = await parts.order_of(shop)
    assert order is not None
    assert (order["state"], order["last_error"], order["attempts"]) == ("issued", None, 0)


async def test_unexpected_error_is_one_attempt_and_tells_the_owner_nothing_private(
    shop: Database, issuer: CountingIssuer, keys: Keyring
) -> None:
    async def break_once() -> None:
        issuer.before = None
        raise RuntimeError("secret detail")

    issuer.before = break_once
    async with parts.running(parts.make_runner(shop, issuer, keys)):
        await parts.go_live(shop)
    assert issuer.issued == [DOMAIN]


async def test_renewal_keeps_the_old_certificate_until_the_new_is_there(
    shop: Database, issuer: CountingIssuer, keys: Keyring
) -> None:
    async with parts.running(parts.make_runner(shop, issuer, keys)):
        await parts.go_live(shop)
        [old] = await parts.certificates_of(shop)
        seen_meanwhile: list[object] = []

        async def look() -> None:
            issuer.before = None
            seen_meanwhile.append(await parts.certificates_of(shop))
            seen_meanwhile.append(await feed_entry(shop, "order", DOMAIN))

        issuer.before = look
        await add_edge(shop)  # which applies nothing: the new certificate waits for it a second
        await make_due(shop)
        await until(lambda: is_other_chain(shop, old["chain"]))
        [waiting] = await parts.certificates_of(shop)
        await parts.until_live(shop)
    assert seen_meanwhile == [[old], True]
    assert waiting["live_at"] == old["live_at"]
    [new] = await parts.certificates_of(shop)
    assert new["live_at"] > old["live_at"]


async def is_other_chain(database: Database, chain: str) -> bool:
    [row] = await parts.certificates_of(database)
    return bool(row["chain"] != chain)


async def test_failed_renewal_never_takes_the_certificate_away(shop: Database, tmp_path: Path, keys: Keyring) -> None:
    async with parts.running(parts.make_runner(shop, CountingIssuer(tmp_path), keys)):
        await parts.go_live(shop)
    [old] = await parts.certificates_of(shop)
    await make_due(shop)

    async def has_failed() -> bool:
        order = await parts.order_of(shop)
        return order is not None and order["state"] == "failed"

    async with parts.running(parts.make_runner(shop, CountingIssuer(tmp_path, failures=100), keys)):
        await until(has_failed)
    assert await parts.certificates_of(shop) == [old]
    assert await feed_entry(shop, "certificate", DOMAIN)


@pytest.mark.parametrize("leased", [True, False])
async def test_live_waits_for_edges_with_a_lease_and_not_for_ever(
    shop: Database, issuer: CountingIssuer, keys: Keyring, leased: bool
) -> None:
    await add_edge(shop, lease="1 minute" if leased else "-1 minute")
    async with parts.running(parts.make_runner(shop, issuer, keys)):
        await parts.go_live(shop)
    order = await parts.order_of(shop)
    assert order is not None
    assert (order["phases"]["live"] >= 1.0) is leased


async def test_no_certificate_is_live_while_no_edge_serves_it(
    database: Database, issuer: CountingIssuer, keys: Keyring
) -> None:
    """With no edge, or none that can serve: the order waits without a failure, and an edge that starts ends that."""
    await parts.add_application(database)

    async def is_put_off() -> bool:
        """As an order that waits, without a lease; no attempt is counted."""
        order = await parts.order_of(database)
        return (
            order is not None
            and "no edge runs" in (order["last_error"] or "")
            and (order["lease_until"], order["attempts"], order["failed_at"], order["state"])
            == (None, 0, None, "issued")
        )

    async def status() -> str | None:
        async with database.connection() as connection:
            [domain] = await domains.find(connection, DOMAIN)
        return domain.certificate

    async with parts.running(parts.make_runner(database, issuer, keys)):
        await parts.power(database, product="secure")
        await until(is_put_off)
        assert await status() == "ordering"
        async with following_edge(database):
            await parts.until_live(database)
            assert await status() == "live"
    order = await parts.order_of(database)
    assert order is not None
    assert order["last_error"] is None  # it waits for nothing any more
    assert issuer.issued == [DOMAIN]


async def test_edge_that_applies_the_certificate_ends_the_wait(
    shop: Database, issuer: CountingIssuer, keys: Keyring
) -> None:
    await add_edge(shop)

    async with parts.running(parts.make_runner(shop, issuer, keys)):
        await parts.power(shop)
        await until(lambda: parts.certificates_of(shop))
        [waiting] = await parts.certificates_of(shop)
        assert waiting["live_at"] is None
        async with shop.transaction() as connection:
            head = await feed.read_head(connection)
            await edge_nodes.report(connection, "edge-1", head.identity, head.version)
        await parts.until_live(shop)
    order = await parts.order_of(shop)
    assert order is not None
    assert order["phases"]["live"] < 1.0


async def test_retention_erases_what_was_released_a_week_ago(
    shop: Database, issuer: CountingIssuer, keys: Keyring
) -> None:
    other = "other.customer.example"
    async with parts.running(parts.make_runner(shop, issuer, keys)):
        for domain in (DOMAIN, other):
            await parts.power(shop, domain)
            await parts.until_live(shop, domain)
    await parts.remove(shop)
    await parts.remove(shop, other)
    async with shop.transaction() as connection:
        await connection.execute(
            "update certificates set released_at = now() - interval '7 days 1 minute' where domain = $1", DOMAIN
        )
        assert await erase(connection, "certificates") == 1
    assert await parts.certificates_of(shop) == []
    assert len(await parts.certificates_of(shop, other)) == 1


async def test_requesting_again_does_not_start_a_running_order_over(
    shop: Database, issuer: CountingIssuer, keys: Keyring
) -> None:
    async def request_again() -> None:
        issuer.before = None
        async with shop.transaction() as connection:
            await orders.request_order(connection, DOMAIN, APPLICATION, hold_seconds=10)

    issuer.before = request_again
    async with parts.running(parts.make_runner(shop, issuer, keys), parts.make_runner(shop, issuer, keys)):
        await parts.go_live(shop)
    assert issuer.issued == [DOMAIN]
