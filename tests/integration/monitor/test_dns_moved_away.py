"""Domains whose DNS has moved away: not renewed, and active again once it is back."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from common.db import domains, events, order_queue, orders
from common.db.domains import NewDomain
from common.db.pool import Database
from common.domain_settings import DomainSettings
from common.secrets import Keyring
from monitor.certificates.dns_moved_away import Lead
from tests.integration.monitor.looking_after import is_looked_after, make_due, order_of, statuses_sent
from tests.waiting import until, until_equal

from . import parts
from .parts import APPLICATION, DOMAIN, LimitedIssuer


class Dns:
    """Where the domain leads, to order."""

    def __init__(self) -> None:
        self.lead: Lead | None = "here"
        self.asked = 0

    async def __call__(self, domain: str, application_id: str) -> Lead | None:
        self.asked += 1
        return self.lead


async def status_of(database: Database) -> list[str]:
    rows = await parts.fetch(
        database, "select case when departed_at is null then 'active' else 'inactive' end as s from domains"
    )
    return [row["s"] for row in rows]


async def test_domain_whose_dns_moved_away_is_not_renewed_and_active_again_when_it_is_back(
    shop: Database, issuer: LimitedIssuer, keys: Keyring
) -> None:
    dns = Dns()
    async with parts.running(parts.make_runner(shop, issuer, keys, find_lead=dns)):
        await parts.power(shop)
        await parts.power(shop, product="secure")
        await parts.until_live(shop)
        assert dns.asked == 0  # the API has just looked
        [old] = await parts.certificates_of(shop)
        dns.lead = "elsewhere"
        for _ in range(2):
            await make_due(shop, renew=True)
            await until(is_looked_after(shop))
        assert await status_of(shop) == ["inactive", "inactive"]
        assert await parts.certificates_of(shop) == [old]  # it serves on
        order = await order_of(shop)
        assert (order["state"], order["last_error"]) == ("issued", orders.DNS_MOVED_AWAY)
        assert order["due_at"] < datetime.now(UTC) + timedelta(hours=12)

        dns.lead = None  # an outage is no evidence
        await make_due(shop, renew=True)
        await until(is_looked_after(shop))
        assert await status_of(shop) == ["inactive", "inactive"]

        dns.lead = "here"
        await make_due(shop, renew=False)

        await until_equal(lambda: status_of(shop), ["active", "active"])
        await parts.until_live(shop)
    assert issuer.placed == [DOMAIN, DOMAIN]
    both = [("power", "success"), ("secure", "success")]
    failed = [("power", "failed"), ("secure", "failed")]
    assert await statuses_sent(shop) == [*both, *failed, *both, *both]  # live, left, back, renewed


async def test_dns_that_leads_here_past_its_target_is_told_apart_from_dns_that_leads_elsewhere(
    shop: Database, issuer: LimitedIssuer, keys: Keyring
) -> None:
    dns = Dns()
    async with parts.running(parts.make_runner(shop, issuer, keys, find_lead=dns)):
        await parts.go_live(shop)
        for dns.lead in ("past its target", None):  # an outage changes no reason
            await make_due(shop, renew=True)
            await until(is_looked_after(shop))
            assert await status_of(shop) == ["inactive"]
            assert (await order_of(shop))["last_error"] == orders.DNS_BYPASSES_TARGET
    assert issuer.placed == [DOMAIN]
    async with shop.connection() as connection:
        [left, _] = await events.list_events(connection, APPLICATION, before=None, limit=10)
    assert left.fields["reason"] == orders.DNS_BYPASSES_TARGET


async def moved_away(shop: Database, issuer: LimitedIssuer, keys: Keyring, dns: Dns) -> None:
    """A domain that is live and whose DNS has moved away; no monitor runs."""
    async with parts.running(parts.make_runner(shop, issuer, keys, find_lead=dns)):
        await parts.go_live(shop)
        dns.lead = "elsewhere"
        await make_due(shop, renew=False)
        await until(is_looked_after(shop))
    assert await status_of(shop) == ["inactive"]
    dns.lead = "here"


async def request_recheck(shop: Database) -> None:
    async with shop.transaction() as connection:
        assert await orders.request_recheck(connection, DOMAIN, parts.APPLICATION, only_moved_away=True)


async def is_active(shop: Database) -> bool:
    return await status_of(shop) == ["active"]


async def test_a_requested_recheck_outlives_the_monitor_that_had_it(
    shop: Database, issuer: LimitedIssuer, keys: Keyring
) -> None:
    dns = Dns()
    await moved_away(shop, issuer, keys, dns)
    await request_recheck(shop)
    async with shop.transaction() as connection:  # by a monitor that is killed at once
        assert await order_queue.AWAITED.claim(connection, most=1, lease_seconds=0.1) == []
        assert await order_queue.ROUTINE.claim(connection, most=1, lease_seconds=0.1) == []
        assert len(await order_queue.RECHECKS.claim(connection, most=1, lease_seconds=0.1)) == 1

    async with parts.running(parts.make_runner(shop, issuer, keys, find_lead=dns, queue=order_queue.RECHECKS)):
        await until(lambda: is_active(shop))


async def test_a_recheck_requested_while_the_dns_is_being_checked_is_done_after_that(
    shop: Database, issuer: LimitedIssuer, keys: Keyring
) -> None:
    dns = Dns()
    await moved_away(shop, issuer, keys, dns)
    asked, may_answer = asyncio.Event(), asyncio.Event()

    async def slow(domain: str, application_id: str) -> Lead | None:
        seen, dns.lead = dns.lead, "here"
        if seen == "elsewhere":
            asked.set()
            await may_answer.wait()
        return seen

    dns.lead = "elsewhere"  # as the check in progress sees it
    await make_due(shop, renew=False)
    async with (
        parts.running(parts.make_runner(shop, issuer, keys, find_lead=slow, queue=order_queue.ROUTINE)),
        parts.running(parts.make_runner(shop, issuer, keys, find_lead=slow, queue=order_queue.RECHECKS)),
    ):
        await asyncio.wait_for(asked.wait(), 5)
        await request_recheck(shop)
        may_answer.set()
        await until(lambda: is_active(shop))


async def test_an_imported_name_whose_dns_cannot_be_asked_waits_for_an_answer(
    shop: Database, issuer: LimitedIssuer, keys: Keyring
) -> None:
    async with shop.transaction() as connection:
        await domains.enrol_by_hand(
            connection, APPLICATION, [NewDomain(DOMAIN, "power", DomainSettings("https://origin.test"))]
        )
    dns = Dns()
    dns.lead = None
    async with parts.running(parts.make_runner(shop, issuer, keys, find_lead=dns)):

        async def waits() -> bool:
            order = await order_of(shop)
            return "could not be asked" in (order["last_error"] or "") and order["lease_until"] is None

        await until(waits)
        assert (issuer.placed, (await order_of(shop))["state"], await statuses_sent(shop)) == ([], "running", [])
        dns.lead = "here"
        await make_due(shop, renew=False)
        await parts.until_live(shop)
    assert len(issuer.placed) == 1


async def test_dns_that_cannot_be_asked_stops_no_renewal(shop: Database, issuer: LimitedIssuer, keys: Keyring) -> None:
    dns = Dns()
    async with parts.running(parts.make_runner(shop, issuer, keys, find_lead=dns)):
        await parts.go_live(shop)
        dns.lead = None
        await make_due(shop, renew=True)

        await until(lambda: len(issuer.placed) == 2)
        await parts.until_live(shop)
    assert await status_of(shop) == ["active"]


async def test_new_domain_that_leaves_before_its_certificate_costs_the_authority_nothing_more(
    shop: Database, issuer: LimitedIssuer, keys: Keyring
) -> None:
    dns = Dns()
    dns.lead = "elsewhere"
    issuer.refuses_validation = True
    async with parts.running(parts.make_runner(shop, issuer, keys, find_lead=dns)):
        await parts.power(shop)

        await until_equal(lambda: status_of(shop), ["inactive"])
    assert issuer.placed == [DOMAIN]
    assert (await order_of(shop))["state"] == "failed"  # no client is held
    assert await statuses_sent(shop) == [("power", "failed")]
