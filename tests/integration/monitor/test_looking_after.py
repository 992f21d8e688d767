"""Certificates looked after: renewed when it is time, not for domains that have left, never at a new domain's cost."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from common.db import certificates, domains, events, order_queue, orders
from common.db.domains import NewDomain
from common.db.pool import Database
from common.domain_settings import DomainSettings
from common.secrets import Keyring
from monitor.certificates.dns_moved_away import Lead
from monitor.certificates.issuer import RenewalWindow
from tests.integration.monitor.looking_after import is_looked_after, make_due, order_of, statuses_sent
from tests.waiting import never, until

from . import parts
from .parts import APPLICATION, DOMAIN, OTHER_APPLICATION, CountingIssuer, LimitedIssuer

# When ------------------------------------------------------------------------------------------------------


async def test_issuer_is_asked_when_to_renew_and_heeded(shop: Database, issuer: LimitedIssuer, keys: Keyring) -> None:
    soon = datetime.now(UTC) + timedelta(days=3)
    async with parts.running(parts.make_runner(shop, issuer, keys)):
        await parts.go_live(shop)
        assert (await order_of(shop))["renew_at"] > soon + timedelta(days=30)
        issuer.window = RenewalWindow(soon, soon + timedelta(days=2), ask_again_seconds=21600)
        await make_due(shop, renew=False)
        await until(is_looked_after(shop))
        chosen = (await order_of(shop))["renew_at"]
        assert soon <= chosen <= soon + timedelta(days=2)
        await make_due(shop, renew=False)
        await until(is_looked_after(shop))
        assert (await order_of(shop))["renew_at"] == chosen  # chosen once
        assert (await order_of(shop))["due_at"] < datetime.now(UTC) + timedelta(hours=6)
    assert issuer.placed == [DOMAIN]


async def test_window_that_has_passed_renews_at_once_and_names_what_it_replaces(
    shop: Database, issuer: LimitedIssuer, keys: Keyring
) -> None:
    async with parts.running(parts.make_runner(shop, issuer, keys)):
        await parts.go_live(shop)
        [old] = await parts.certificates_of(shop)
        past = datetime.now(UTC) - timedelta(days=3)
        issuer.window = RenewalWindow(past, past + timedelta(days=1), ask_again_seconds=21600)
        await make_due(shop, renew=False)

        async def is_renewed() -> bool:
            [new] = await parts.certificates_of(shop)
            return bool(new["chain"] != old["chain"])

        await until(is_renewed)
        await parts.until_live(shop)
    assert [replaced and replaced.chain for replaced in issuer.replaced] == [None, old["chain"]]


async def test_renewal_asked_for_runs_at_once_and_holds_nobody(
    shop: Database, issuer: LimitedIssuer, keys: Keyring
) -> None:
    async with parts.running(parts.make_runner(shop, issuer, keys)):
        await parts.go_live(shop)
        async with shop.transaction() as connection:
            await orders.request_renewal(connection, DOMAIN, APPLICATION)
            state = await orders.describe(connection, DOMAIN)
            held = await connection.fetchval("select hold_until > now() from orders")
        assert state is not None
        assert (state.state, state.kind, held) == ("running", "manual", False)
        async with shop.transaction() as connection:
            await orders.request_renewal(connection, DOMAIN, APPLICATION)  # as good as asked once
        await parts.until_live(shop)
        with pytest.raises(orders.NotRenewable):
            async with shop.transaction() as connection:
                await orders.request_renewal(connection, DOMAIN, OTHER_APPLICATION)
    assert issuer.placed == [DOMAIN, DOMAIN]
    assert await statuses_sent(shop) == [("power", "success"), ("power", "success")]


async def test_order_carried_on_by_another_monitor_keeps_its_place_and_key(
    shop: Database, issuer: LimitedIssuer, keys: Keyring
) -> None:
    at_work = asyncio.Event()

    async def hang() -> None:
        at_work.set()
        await never()

    issuer.before = hang  # after the order is placed
    await parts.power(shop)
    async with parts.running(parts.make_runner(shop, issuer, keys)):
        await asyncio.wait_for(at_work.wait(), 5)
    placed_key = (await order_of(shop))["placed_key"]
    issuer.before = None
    async with parts.running(parts.make_runner(shop, issuer, keys)):
        await parts.until_live(shop)
    [certificate] = await parts.certificates_of(shop)
    assert certificate["private_key"] == placed_key
    assert issuer.placed == [DOMAIN]
    order = await order_of(shop)
    assert (order["placed_url"], order["placed_key"]) == (None, None)
    assert await parts.fetch(shop, "select state from ca_ledger") == [{"state": "placed"}]


async def test_order_whose_validation_failed_is_placed_anew(
    shop: Database, issuer: LimitedIssuer, keys: Keyring
) -> None:
    issuer.refuses_validation = True

    async def has_tried_twice() -> bool:
        issuer.refuses_validation = len(issuer.placed) < 2
        return len(issuer.placed) >= 2

    async with parts.running(parts.make_runner(shop, issuer, keys)):
        await parts.power(shop)
        await until(has_tried_twice)
        await parts.until_live(shop)
    kinds = await parts.fetch(shop, "select kind, count(*)::int as n from ca_ledger group by kind order by kind")
    placed = len(issuer.placed)
    assert [(row["kind"], row["n"]) for row in kinds] == [("failed_validation", placed - 1), ("order", placed)]


# Events ------------------------------------------------------------------------------------------------------


async def test_owner_is_told_once_of_a_run_of_failures_and_of_its_end(
    shop: Database, tmp_path: Path, keys: Keyring
) -> None:
    issuer = CountingIssuer(tmp_path, failures=order_queue.FAILED_AFTER_ATTEMPTS + 2)
    async with parts.running(parts.make_runner(shop, issuer, keys)):
        await parts.power(shop)
        await parts.power(shop, product="secure")
        await parts.until_live(shop, seconds=30)
    assert await statuses_sent(shop) == [
        ("power", "failed"),
        ("secure", "failed"),
        ("power", "success"),
        ("secure", "success"),
    ]
    async with shop.connection() as connection:
        listed = await events.list_events(connection, APPLICATION, before=None, limit=10)
    assert {(event.domain, event.subdomain) for event in listed} == {("customer.example", "shop")}
    assert listed[-1].fields["reason"] == "the authority is out to lunch"


# Enrolled by an operator -----------------------------------------------------------------------------------


async def test_the_ca_is_asked_for_a_name_of_a_file_once_its_dns_leads_here(
    shop: Database, issuer: LimitedIssuer, keys: Keyring
) -> None:
    leads_here = False

    async def dns(_domain: str, _application_id: str) -> Lead:
        return "here" if leads_here else "elsewhere"

    async def is_put_off() -> bool:
        return bool((await order_of(shop))["state"] == "failed")

    async with shop.transaction() as connection:
        await certificates.lock_domain(connection, DOMAIN)
        await domains.enrol_by_hand(
            connection, APPLICATION, [NewDomain(DOMAIN, "power", DomainSettings("https://o.test"))]
        )
    assert not (await orders_due(shop, order_queue.AWAITED))
    async with parts.running(parts.make_runner(shop, issuer, keys, find_lead=dns, queue=order_queue.RECHECKS)):
        await until(is_put_off)
        assert issuer.placed == []
        assert await statuses_sent(shop) == []  # its DNS is yet to be moved
        leads_here = True
        async with shop.transaction() as connection:
            await certificates.lock_domain(connection, DOMAIN)
            assert await orders.request_rechecks(connection, [DOMAIN, "other.example"], APPLICATION) == 1
        await parts.until_live(shop)
    assert issuer.placed == [DOMAIN]
    assert await statuses_sent(shop) == [("power", "success")]


async def orders_due(database: Database, lane: order_queue.Lane) -> list[order_queue.DueOrder]:
    async with database.connection() as connection:
        due, _ = await lane.find_due(connection, most=10)
    return due
