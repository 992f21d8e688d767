"""Certificates looked after: renewed when it is time, not for domains that have left, never at a new domain's cost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from common.db import certificates, domains, events, order_queue, orders
from common.db.ca_ledger import WAITS_FOR_LIMIT, Limits
from common.db.domains import NewDomain
from common.db.pool import Database
from common.db.revocations import REASONS
from common.db.status import read_status
from common.domain_settings import DomainSettings
from common.secrets import Keyring
from monitor.certificates.dns_moved_away import Lead
from monitor.certificates.issuer import RenewalWindow
from tests.waiting import never, until

from . import parts
from .parts import APPLICATION, DOMAIN, OTHER_APPLICATION, CountingIssuer, LimitedIssuer


@pytest.fixture
def issuer(tmp_path: Path) -> LimitedIssuer:
    return LimitedIssuer(tmp_path)


async def make_due(database: Database, *, renew: bool) -> None:
    async with database.transaction() as connection:
        await connection.execute(
            "update orders set due_at = now(), renew_at = case when $1 then now() else renew_at end", renew
        )


async def order_of(database: Database, domain: str = DOMAIN) -> dict[str, Any]:
    order = await parts.order_of(database, domain)
    assert order is not None
    return order


async def statuses_sent(database: Database) -> list[tuple[str, str]]:
    """The events of the application, oldest first: product and status."""
    async with database.connection() as connection:
        listed = await events.list_events(connection, APPLICATION, before=None, limit=100)
    return [
        (event.type.removeprefix("domain."), event.fields[f"{event.type.removeprefix('domain.')}_status"])
        for event in reversed(listed)
    ]


def is_looked_after(database: Database) -> Callable[[], Any]:
    async def is_so() -> bool:
        order = await order_of(database)
        return order["lease_until"] is None and order["due_at"] > datetime.now(UTC)

    return is_so


# When ------------------------------------------------------------------------------------------------------


async def test_issuer_is_asked_when_to_renew_and_heeded(shop: Database, issuer: LimitedIssuer, keys: Keyring) -> None:
    soon = datetime.now(UTC) + timedelta(days=3)
    async with parts.running(parts.make_runner(shop, issuer, keys)):
        await parts.power(shop)
        await parts.until_live(shop)
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
        await parts.power(shop)
        await parts.until_live(shop)
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
        await parts.power(shop)
        await parts.until_live(shop)
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


# DNS moved away --------------------------------------------------------------------------------------------------


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

        async def is_healed() -> bool:
            return await status_of(shop) == ["active", "active"]

        await until(is_healed)
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
        await parts.power(shop)
        await parts.until_live(shop)
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
        await parts.power(shop)
        await parts.until_live(shop)
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
        await parts.power(shop)
        await parts.until_live(shop)
        dns.lead = None
        await make_due(shop, renew=True)

        async def is_renewed() -> bool:
            return len(issuer.placed) == 2

        await until(is_renewed)
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

        async def has_left() -> bool:
            return await status_of(shop) == ["inactive"]

        await until(has_left)
    assert issuer.placed == [DOMAIN]
    assert (await order_of(shop))["state"] == "failed"  # no client is held
    assert await statuses_sent(shop) == [("power", "failed")]


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


# Revoked ---------------------------------------------------------------------------------------------------


async def test_revoked_certificate_is_replaced_under_a_new_key_and_then_revoked(
    shop: Database, issuer: LimitedIssuer, keys: Keyring
) -> None:
    async with (
        parts.running(parts.make_runner(shop, issuer, keys)),
        parts.running(parts.make_revoking_runner(shop, issuer)),
    ):
        await parts.power(shop)
        await parts.until_live(shop)
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

        async def is_revoked() -> bool:
            return bool(await parts.fetch(shop, "select from revocations where revoked_at is not null"))

        await until(is_revoked)
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

    async with (
        parts.running(parts.make_runner(shop, issuer, keys, limits=limits)),
        parts.running(parts.make_revoking_runner(shop, issuer)),
    ):
        await parts.power(shop)
        await parts.until_live(shop)
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

        async def is_revoked() -> bool:
            return bool(await parts.fetch(shop, "select from revocations where revoked_at is not null"))

        await until(is_revoked)
    [order] = await parts.fetch(shop, "select live_at < revoked_at as first from certificates, revocations")
    assert order["first"]


async def test_certificate_that_is_served_no_more_is_revoked_without_a_replacement(
    shop: Database, issuer: LimitedIssuer, keys: Keyring
) -> None:
    async with parts.running(parts.make_runner(shop, issuer, keys)):
        await parts.power(shop)
        await parts.until_live(shop)
    async with shop.transaction() as connection:
        await orders.request_replacement(connection, DOMAIN, APPLICATION, REASONS["superseded"])
    await parts.remove(shop)
    assert await parts.fetch(shop, "select due_at <= now() as due from revocations") == [{"due": True}]


async def test_kept_certificate_that_is_revoked_is_never_adopted(
    shop: Database, issuer: LimitedIssuer, keys: Keyring
) -> None:
    async with (
        parts.running(parts.make_runner(shop, issuer, keys)),
        parts.running(parts.make_revoking_runner(shop, issuer)),
    ):
        await parts.power(shop)
        await parts.until_live(shop)
        [old] = await parts.certificates_of(shop)
        await parts.remove(shop)
        async with shop.transaction() as connection:
            assert await orders.request_replacement(connection, DOMAIN, APPLICATION, 5)
        await parts.power(shop)
        await parts.until_live(shop)

        async def is_revoked() -> bool:
            return bool(issuer.revoked)

        await until(is_revoked)
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

    async def is_under_way() -> bool:
        return len(issuer.placed) >= 8

    issuer.before = take_its_time
    monitors = [
        parts.make_runner(shop, issuer, keys, limits=limits, queue=lane, concurrency=4)
        for lane in (order_queue.AWAITED, order_queue.ROUTINE)
        for _ in range(2)
    ]
    async with parts.running(*monitors):
        await until(is_under_way)
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
