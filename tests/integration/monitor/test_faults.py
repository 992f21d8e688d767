"""Orders under every kind of death: nothing stuck, nothing twice, no stale word counts."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from bench.following_edge import following_edge
from common.db import certificates, order_outcomes, order_queue
from common.db.migrate import migrate
from common.db.pool import Database, open_pool
from common.errors import FenceLost
from common.postgres import EmbeddedPostgres, running_dsn
from common.secrets import Keyring
from tests.waiting import never, until

from . import dying, parts
from .parts import DOMAIN, CountingIssuer, LimitedIssuer

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def issuer(tmp_path: Path) -> CountingIssuer:
    return CountingIssuer(tmp_path)


async def claim_one(database: Database, *, lease_seconds: float = 10.0) -> order_queue.Order:
    async with database.transaction() as connection:
        [order] = await order_queue.claim(connection, most=1, lease_seconds=lease_seconds)
    return order


@pytest.mark.parametrize("step", dying.STEPS)
async def test_killed_monitor_leaves_nothing_stuck_and_nothing_twice(
    shop: Database, dsn: str, keys: Keyring, tmp_path: Path, step: str
) -> None:
    await parts.power(shop)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", dying.__name__, dsn, str(tmp_path), step, cwd=ROOT, stdout=asyncio.subprocess.DEVNULL
    )
    try:
        assert await asyncio.wait_for(process.wait(), 30) == -signal.SIGKILL
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    placed_before = await parts.fetch(shop, "select placed_url, placed_key from orders where placed_url is not null")
    async with shop.transaction() as connection:  # the dead monitor's lease, without the waiting
        await connection.execute("update orders set lease_until = now() where lease_until is not null")
    limited = LimitedIssuer(tmp_path)
    async with parts.running(parts.make_runner(shop, limited, keys), parts.make_runner(shop, limited, keys)):
        await parts.until_live(shop)
    [certificate] = await parts.certificates_of(shop)
    stored_before = step in ("stored", "record live", "live")
    assert limited.issued == ([] if stored_before else [DOMAIN])
    assert bool(placed_before) is (step in ("placed", "issue", "store"))
    if placed_before:  # the very order is carried on
        assert limited.placed == []
        assert certificate["private_key"] == placed_before[0]["placed_key"]
    counted = await parts.fetch(shop, "select state, count(*)::int as n from ca_ledger group by state order by state")
    perhaps_sent = [{"state": "reserved", "n": 1}] if step in ("reserved", "record placed") else []
    assert counted == [{"state": "placed", "n": 1}, *perhaps_sent]


async def test_two_monitors_issue_each_of_many_domains_once(
    shop: Database, issuer: CountingIssuer, keys: Keyring
) -> None:
    domains = [f"shop{number}.customer.example" for number in range(30)]
    async with parts.running(parts.make_runner(shop, issuer, keys), parts.make_runner(shop, issuer, keys)):
        for domain in domains:
            await parts.power(shop, domain)
        for domain in domains:
            await parts.until_live(shop, domain)
    assert sorted(issuer.issued) == sorted(domains)


async def test_stale_fence_writes_nothing(shop: Database, issuer: CountingIssuer) -> None:
    await parts.power(shop)
    stale = await claim_one(shop, lease_seconds=0)
    current = await claim_one(shop)
    before = await parts.order_of(shop)
    await assert_void(shop, stale)
    assert await parts.order_of(shop) == before
    async with shop.transaction() as connection:
        assert await order_queue.extend(connection, [stale, current], lease_seconds=10) == {DOMAIN}


async def test_fence_of_a_deleted_order_is_never_given_again(shop: Database) -> None:
    await parts.power(shop)
    stale = await claim_one(shop)
    await parts.remove(shop)
    await assert_void(shop, stale)
    await parts.power(shop)
    await claim_one(shop)
    await assert_void(shop, stale)


async def assert_void(database: Database, stale: order_queue.Order) -> None:
    certificate = certificates.Certificate("internal", "", b"", *[(await now(database))] * 2)
    with pytest.raises(FenceLost):
        async with database.transaction() as connection:
            await order_outcomes.record_issued(connection, stale, certificate, {})
    with pytest.raises(FenceLost):
        async with database.transaction() as connection:
            await order_outcomes.record_live(connection, stale, await now(database), {})
    with pytest.raises(FenceLost):
        async with database.transaction() as connection:
            await order_outcomes.record_renewal_begun(connection, stale)
    async with database.transaction() as connection:
        await order_queue.postpone(connection, stale, delay_seconds=0, last_error="stale")
        assert await order_queue.extend(connection, [stale], lease_seconds=10) == set()
    assert await parts.certificates_of(database) == []
    assert "stale" not in str(await parts.order_of(database))


async def now(database: Database):  # type: ignore[no-untyped-def]
    return (await parts.fetch(database, "select now() as at"))[0]["at"]


async def test_lease_is_extended_while_the_work_runs(shop: Database, issuer: CountingIssuer, keys: Keyring) -> None:
    """An issuer ten times slower than the lease, and a rival that would take over if it could."""

    async def take_long() -> None:
        await asyncio.sleep(1.5)

    issuer.before = take_long
    rivals = [parts.make_runner(shop, issuer, keys, lease_seconds=0.3) for _ in range(2)]
    async with parts.running(*rivals):
        await parts.go_live(shop)
    assert issuer.issued == [DOMAIN]


async def test_work_taken_over_is_stopped(shop: Database, issuer: CountingIssuer, keys: Keyring) -> None:
    stopped = asyncio.Event()

    async def lose_the_lease() -> None:
        issuer.before = None
        async with shop.transaction() as connection:
            await connection.execute("update orders set lease_until = now()")
            await order_queue.claim(connection, most=1, lease_seconds=1)
        try:
            await never()
        finally:
            stopped.set()

    issuer.before = lose_the_lease
    async with parts.running(parts.make_runner(shop, issuer, keys, lease_seconds=0.3)):
        await parts.power(shop)
        await asyncio.wait_for(stopped.wait(), 5)
        await parts.until_live(shop)
    assert issuer.issued == [DOMAIN]


async def test_stopped_monitor_hands_its_work_back_at_once(
    shop: Database, issuer: CountingIssuer, keys: Keyring
) -> None:
    at_work = asyncio.Event()

    async def hang() -> None:
        at_work.set()
        await never()

    issuer.before = hang
    await parts.power(shop)
    async with parts.running(parts.make_runner(shop, issuer, keys, lease_seconds=300)):
        await asyncio.wait_for(at_work.wait(), 5)
    issuer.before = None
    async with parts.running(parts.make_runner(shop, issuer, keys)):
        await parts.until_live(shop)


async def test_lost_notify_is_found_by_the_poll(shop: Database, issuer: CountingIssuer, keys: Keyring) -> None:
    """No listener at all: nobody ever calls `wake`."""
    async with parts.running(parts.make_runner(shop, issuer, keys, poll_seconds=0.1)):
        await parts.go_live(shop)


async def test_wake_up_spares_the_wait_for_the_poll(shop: Database, issuer: CountingIssuer, keys: Keyring) -> None:
    runner = parts.make_runner(shop, issuer, keys, poll_seconds=3600)
    async with parts.running(runner):
        await parts.power(shop)
        runner.wake()
        await parts.until_live(shop)


@pytest.mark.parametrize("step", ["issuing", "storing"])
async def test_postgres_crash_in_the_middle_of_an_order(
    issuer: CountingIssuer, keys: Keyring, tmp_path: Path, step: str
) -> None:
    """A server that loses a backend to kill -9 drops every session and recovers."""
    with EmbeddedPostgres(tmp_path / "postgres"):
        dsn = running_dsn(tmp_path / "postgres")
        assert dsn is not None
        await migrate(dsn)
        async with open_pool(dsn, size=4, application_name="test") as shop:
            await parts.add_application(shop)

            async def crash() -> None:
                issuer.before = None
                [backend] = await parts.fetch(shop, "select pg_backend_pid() as pid")
                os.kill(backend["pid"], signal.SIGKILL)
                if step == "issuing":  # else the very next thing, storing, meets the outage
                    await until(lambda: parts.answers(shop))

            issuer.before = crash
            async with following_edge(shop), parts.running(parts.make_runner(shop, issuer, keys)):
                await parts.go_live(shop)
            assert issuer.issued == [DOMAIN]
            assert len(await parts.certificates_of(shop)) == 1
