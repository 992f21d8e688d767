"""Revoked certificates are replaced, one or all at once, inside the CA's limits."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from common.db import certificates, order_queue, orders
from common.db.ca_ledger import WAITS_FOR_LIMIT, Limits
from common.db.pool import Database
from common.db.revocations import REASONS
from common.db.status import read_status
from common.secrets import Keyring
from tests.waiting import until

from . import parts
from .parts import APPLICATION, DOMAIN, LimitedIssuer

# Revoked ---------------------------------------------------------------------------------------------------


async def test_revoked_certificate_is_replaced_under_a_new_key_and_then_revoked(
    shop: Database, issuer: LimitedIssuer, keys: Keyring
) -> None:
    async with parts.running(parts.make_runner(shop, issuer, keys), parts.make_revoking_runner(shop, issuer)):
        await parts.go_live(shop)
        [old] = await parts.certificates_of(shop)
        at_work, go_on = asyncio.Event(), asyncio.Event()

        async def wait() -> None:
            issuer.before = None
            at_work.set()
            await go_on.wait()

        issuer.before = wait
        async with shop.transaction() as connection:
            assert await orders.request_replacement(connection, DOMAIN, APPLICATION, 1)
        async with shop.transaction() as connection:
            assert not await orders.request_replacement(connection, DOMAIN, APPLICATION, 1)  # it is under way
        await asyncio.wait_for(at_work.wait(), 5)
        assert issuer.revoked == []  # it serves until the other is there
        go_on.set()

        await until(lambda: parts.fetch(shop, "select from revocations where revoked_at is not null"))
    [new] = await parts.certificates_of(shop)
    assert public_key(new["chain"]) != public_key(old["chain"])
    assert [(issued.chain, reason) for issued, reason in issuer.revoked] == [(old["chain"], 1)]
    assert (await parts.fetch(shop, "select due_at, revoked_at is null as open from revocations")) == [
        {"due_at": None, "open": False}
    ]


async def test_certificate_whose_replacement_waits_for_a_limit_is_revoked_only_after_it(
    shop: Database, issuer: LimitedIssuer, keys: Keyring
) -> None:
    """Else it would be served revoked, for as long as the limit's window."""
    limits = Limits(orders_per_account=1)

    async def waits() -> bool:
        order = await parts.order_of(shop)
        return order is not None and WAITS_FOR_LIMIT in (order["last_error"] or "") and order["lease_until"] is None

    async with parts.running(
        parts.make_runner(shop, issuer, keys, limits=limits), parts.make_revoking_runner(shop, issuer)
    ):
        await parts.go_live(shop)
        async with shop.transaction() as connection:
            await orders.request_replacement(connection, DOMAIN, APPLICATION, REASONS["keyCompromise"])
        await until(waits)
        [waiting] = await parts.fetch(shop, "select due_at - requested_at as pause, revoked_at from revocations")
        assert waiting == {"pause": timedelta(hours=24), "revoked_at": None}
        async with shop.connection() as connection:
            status = await read_status(connection, limits)
        assert (status.revocations.count, status.revocations.domain) == (1, DOMAIN)
        assert status.progress.waiting == 1
        assert "1 certificate orders wait for limits of the CA" in " ".join(status.notices)
        assert issuer.revoked == []
        async with shop.transaction() as connection:
            await connection.execute("update ca_ledger set taken_at = taken_at - interval '3 hours'")
            await connection.execute("update orders set due_at = now()")

        await until(lambda: parts.fetch(shop, "select from revocations where revoked_at is not null"))
    [order] = await parts.fetch(shop, "select live_at < revoked_at as first from certificates, revocations")
    assert order["first"]


async def test_certificate_that_is_served_no_more_is_revoked_without_a_replacement(
    shop: Database, issuer: LimitedIssuer, keys: Keyring
) -> None:
    async with parts.running(parts.make_runner(shop, issuer, keys)):
        await parts.go_live(shop)
    async with shop.transaction() as connection:
        await orders.request_replacement(connection, DOMAIN, APPLICATION, REASONS["superseded"])
    await parts.remove(shop)
    assert await parts.fetch(shop, "select due_at <= now() as due from revocations") == [{"due": True}]


async def test_kept_certificate_that_is_revoked_is_never_adopted(
    shop: Database, issuer: LimitedIssuer, keys: Keyring
) -> None:
    async with parts.running(parts.make_runner(shop, issuer, keys), parts.make_revoking_runner(shop, issuer)):
        await parts.go_live(shop)
        [old] = await parts.certificates_of(shop)
        await parts.remove(shop)
        async with shop.transaction() as connection:
            assert await orders.request_replacement(connection, DOMAIN, APPLICATION, 5)
        await parts.go_live(shop)

        await until(lambda: issuer.revoked)
    [new] = await parts.certificates_of(shop)
    assert new["chain"] != old["chain"]
    assert issuer.placed == [DOMAIN, DOMAIN]


def public_key(chain: str) -> object:
    return x509.load_pem_x509_certificate(chain.encode()).public_key()


# All at once -----------------------------------------------------------------------------------------------


async def add_live(database: Database, domains: list[str], keys: Keyring, *, left: timedelta) -> None:
    """Domains with certificates that are live, all due for renewal now."""
    now = datetime.now(UTC)
    valid = certificates.Certificate("internal", "old chain", b"key", now - timedelta(days=60), now + left)
    async with database.transaction() as connection:
        for domain in domains:
            await connection.execute(
                "insert into domains (domain, product, application_id) values ($1, 'power', $2)", domain, APPLICATION
            )
            await certificates.store(connection, domain, APPLICATION, valid)
            await certificates.set_live(connection, domain)
        await connection.execute(
            "insert into orders (domain, application_id, state, kind, hold_until, due_at, renew_at)"
            " select domain, $1, 'issued', 'renewal', now(), now(), now() from unnest($2::text[]) domain",
            APPLICATION,
            domains,
        )


async def renewed(database: Database) -> int:
    rows = await parts.fetch(database, "select 1 from certificates where chain <> 'old chain'")
    return len(rows)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("counts_renewals", [True, False])
async def test_mass_revocation_stays_inside_the_budget_and_starves_no_new_domain(
    shop: Database, tmp_path: Path, keys: Keyring, counts_renewals: bool
) -> None:
    """Every certificate's window at once, two monitors; an authority that counts renewals, and one that does not."""
    many, new = [f"shop.customer{number}.example" for number in range(300)], "shop.newcomer.example"
    issuer = LimitedIssuer(tmp_path, counts_renewals=counts_renewals)
    limits = Limits(orders_per_account=100)
    await add_live(shop, many, keys, left=timedelta(days=30))

    async def take_its_time() -> None:
        await asyncio.sleep(0.02)

    issuer.before = take_its_time
    monitors = [
        parts.make_runner(shop, issuer, keys, limits=limits, queue=lane, concurrency=4)
        for lane in (order_queue.AWAITED, order_queue.ROUTINE)
        for _ in range(2)
    ]
    async with parts.running(*monitors):
        await until(lambda: len(issuer.placed) >= 8)
        await parts.power(shop, new)
        await parts.until_live(shop, new)
        before_the_newcomer = issuer.placed.index(new)

        async def is_settled() -> bool:
            busy = await parts.fetch(shop, "select 1 from orders where due_at <= now() or lease_until is not null")
            return not busy

        await until(is_settled, seconds=120)  # each of 300 waits for the edge
    assert before_the_newcomer < 60
    assert await renewed(shop) == len(issuer.placed) == (48 if counts_renewals else 301)  # of 100, new ones' too
    assert len(await parts.fetch(shop, "select 1 from certificates where released_at is null")) == 301
    assert await parts.fetch(shop, "select 1 from orders where state <> 'issued'") == []
