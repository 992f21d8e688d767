"""The CA's limits as a ledger: counted by everybody as one, and nobody's order lost over it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from common.db import ca_ledger, order_queue
from common.db.ca_ledger import LimitReached, Limits, Urgency
from common.db.pool import Database, open_pool
from common.errors import DatabaseUnavailable, FenceLost
from common.secrets import Keyring
from tests.integration.expiry import erase
from tests.waiting import until

from . import parts
from .parts import APPLICATION, DOMAIN, OTHER_APPLICATION, LimitedIssuer

CA = "https://ca.example/directory"


async def claimed(database: Database, *domains: str) -> list[order_queue.Order]:
    for domain in domains:
        await parts.power(database, domain)
    async with database.transaction() as connection:
        return await order_queue.claim(connection, most=len(domains), lease_seconds=60)


async def reserve(
    database: Database,
    order: order_queue.Order,
    limits: Limits,
    urgency: Urgency = "expiring",
    *,
    is_exempt: bool = False,
) -> int | LimitReached:
    async with database.transaction() as connection:
        return await ca_ledger.reserve(connection, order, CA, limits, urgency, is_exempt=is_exempt)


def full(found: Sequence[int | LimitReached]) -> list[LimitReached]:
    return [each for each in found if isinstance(each, LimitReached)]


async def age(database: Database, by: timedelta) -> None:
    async with database.transaction() as connection:
        await connection.execute("update ca_ledger set taken_at = taken_at - $1::interval", by)


async def now(database: Database) -> datetime:
    at: datetime = (await parts.fetch(database, "select clock_timestamp() as at"))[0]["at"]
    return at


async def test_many_monitors_reserve_as_one(shop: Database, dsn: str) -> None:
    limits = Limits(orders_per_account=10)
    held = await claimed(shop, *(f"shop.customer{number}.example" for number in range(30)))
    async with open_pool(dsn, size=8, application_name="another monitor") as other:
        found = await asyncio.gather(
            *(reserve((shop, other)[number % 2], order, limits) for number, order in enumerate(held))
        )
    assert len(full(found)) == 22
    assert len(await parts.fetch(shop, "select 1 from ca_ledger")) == 8  # and two are kept for other applications


@pytest.mark.parametrize(
    ("limits", "domains", "limit", "window"),
    [
        (Limits(orders_per_account=2), ["a.one.example", "a.two.example"], "orders_per_account", timedelta(hours=3)),
        (
            Limits(certificates_per_registered_domain=2),
            ["a.one.co.uk", "b.one.co.uk"],
            "certificates_per_registered_domain",
            timedelta(days=7),
        ),
        (Limits(certificates_per_exact_set=1), ["c.one.co.uk"], "certificates_per_exact_set", timedelta(days=7)),
    ],
)
async def test_limit_is_full_until_its_window_has_passed(
    shop: Database, limits: Limits, domains: list[str], limit: str, window: timedelta
) -> None:
    held = {order.domain: order for order in await claimed(shop, *{*domains, "c.one.co.uk"})}
    for domain in domains:
        assert isinstance(await reserve(shop, held[domain], limits), int)
    found = await reserve(shop, held["c.one.co.uk"], limits)
    assert isinstance(found, LimitReached)
    assert found.limit == limit
    taken = await parts.fetch(shop, "select min(taken_at) as at from ca_ledger")
    assert found.free_at == taken[0]["at"] + window
    await age(shop, window)
    assert isinstance(await reserve(shop, held["c.one.co.uk"], limits), int)


async def test_another_registered_domain_has_limits_of_its_own(shop: Database) -> None:
    """By the public suffix list: co.uk is nobody's domain."""
    one, same, other = sorted(
        await claimed(shop, "a.one.co.uk", "b.one.co.uk", "c.other.co.uk"), key=lambda order: order.domain
    )
    limits = Limits(certificates_per_registered_domain=1)
    assert isinstance(await reserve(shop, one, limits), int)
    assert isinstance(await reserve(shop, same, limits), LimitReached)
    assert isinstance(await reserve(shop, other, limits), int)


async def test_expiring_comes_before_new_and_new_before_manual(shop: Database) -> None:
    limits = Limits(orders_per_account=20)
    held = await claimed(shop, *(f"shop.customer{number}.example" for number in range(80)))
    taken: dict[Urgency, int] = {}
    of_each: tuple[Urgency, ...] = ("manual", "renewal", "new", "expiring")
    for number, urgency in enumerate(of_each):
        found = [await reserve(shop, order, limits, urgency) for order in held[number * 20 : number * 20 + 20]]
        taken[urgency] = len(found) - len(full(found))
    assert taken == {"manual": 10, "renewal": 0, "new": 5, "expiring": 1}  # of one application


async def test_account_emptied_by_one_application_has_slots_for_another(shop: Database) -> None:
    limits = Limits(orders_per_account=300)
    greedy = await claimed(shop, *(f"shop.customer{number}.example" for number in range(400)))
    for order in greedy:
        last = await reserve(shop, order, limits, "new")
    assert isinstance(last, LimitReached)
    assert last.limit == "orders_per_application"
    taken = await parts.fetch(shop, "select taken_at from ca_ledger order by taken_at")
    assert last.free_at == taken[0]["taken_at"] + timedelta(hours=3)
    for number in range(20):
        await parts.power(shop, f"new{number}.example", application_id=OTHER_APPLICATION)
    async with shop.transaction() as connection:
        modest = await order_queue.claim(connection, most=100, lease_seconds=60)
    found = [await reserve(shop, order, limits, "new") for order in modest]
    placed = len(found) - len(full(found))
    print(f"one application took {len(taken)} of 270 orders; of another's first {len(found)}, {placed} were placed")
    assert len(found) == 20
    assert not full(found)
    await age(shop, timedelta(hours=3))
    assert isinstance(await reserve(shop, greedy[-1], limits, "new"), int)


async def test_compromised_certificates_have_a_reserve_where_all_else_is_used(shop: Database) -> None:
    limits = Limits(orders_per_account=40)
    held = await claimed(shop, *(f"shop.customer{number}.example" for number in range(80)))
    while not isinstance(await reserve(shop, held.pop(), limits, "expiring"), LimitReached):
        pass
    [used] = await parts.fetch(shop, "select count(*) from ca_ledger")
    found = [await reserve(shop, order, limits, "compromised") for order in held[:20]]
    assert used["count"] + len(found) - len(full(found)) == 38  # of one application; two are left for others
    for number in range(20):
        await parts.power(shop, f"new{number}.example", application_id=OTHER_APPLICATION)
    async with shop.transaction() as connection:
        others = await order_queue.claim(connection, most=100, lease_seconds=60)
    assert len(full([await reserve(shop, order, limits, "expiring") for order in others])) == 20
    assert len(full([await reserve(shop, order, limits, "compromised") for order in others])) == 18


async def test_renewal_the_authority_suggested_does_not_count(shop: Database) -> None:
    limits = Limits(orders_per_account=1, certificates_per_registered_domain=1, certificates_per_exact_set=1)
    [order] = await claimed(shop, DOMAIN)
    for _ in range(3):
        assert isinstance(await reserve(shop, order, limits, is_exempt=True), int)
    assert isinstance(await reserve(shop, order, limits), int)
    assert isinstance(await reserve(shop, order, limits), LimitReached)
    assert isinstance(await reserve(shop, order, limits, is_exempt=True), int)


async def test_failed_validations_count_once_an_order_and_free_the_certificate(shop: Database) -> None:
    limits = Limits(certificates_per_exact_set=1, failed_validations=2)
    [order] = await claimed(shop, DOMAIN)
    for number in range(2):
        reservation = await reserve(shop, order, limits)
        assert isinstance(reservation, int)
        async with shop.transaction() as connection:
            await ca_ledger.record_placed(connection, reservation, f"order/{number}")
            for _ in range(2):
                await ca_ledger.record_failed_validation(connection, CA, DOMAIN, f"order/{number}")
    found = await reserve(shop, order, limits, is_exempt=True)
    assert isinstance(found, LimitReached)
    assert found.limit == "failed_validations"
    await age(shop, timedelta(hours=1))
    assert isinstance(await reserve(shop, order, limits), int)


async def test_what_never_was_sent_is_given_back(shop: Database) -> None:
    limits = Limits(orders_per_account=1)
    [order] = await claimed(shop, DOMAIN)
    reservation = await reserve(shop, order, limits)
    assert isinstance(reservation, int)
    async with shop.transaction() as connection:
        await ca_ledger.cancel_reservation(connection, reservation)
    again = await reserve(shop, order, limits)
    assert isinstance(again, int)
    async with shop.transaction() as connection:
        await ca_ledger.record_placed(connection, again, "order/1")
        await ca_ledger.cancel_reservation(connection, again)  # it was
    assert isinstance(await reserve(shop, order, limits), LimitReached)


async def test_order_that_is_anothers_reserves_nothing(shop: Database) -> None:
    [order] = await claimed(shop, DOMAIN)
    async with shop.transaction() as connection:
        await connection.execute("update orders set fence = fence + 1")
    with pytest.raises(FenceLost):
        await reserve(shop, order, Limits())
    assert await parts.fetch(shop, "select 1 from ca_ledger") == []


async def test_nothing_is_ordered_while_the_ledger_cannot_be_asked(
    shop: Database, keys: Keyring, tmp_path: Path
) -> None:
    issuer = LimitedIssuer(tmp_path)
    [order] = await claimed(shop, DOMAIN)
    async with open_pool("postgresql://127.0.0.1:1/none", size=1, application_name="away") as away:
        issuance = parts.make_issuance(away, issuer, keys)
        with pytest.raises(DatabaseUnavailable):
            await issuance.perform(order)
    assert issuer.placed == []


async def test_order_waits_for_a_slot_without_failing_and_then_goes_on(
    shop: Database, keys: Keyring, tmp_path: Path
) -> None:
    issuer = LimitedIssuer(tmp_path)
    limits = Limits(certificates_per_registered_domain=1)
    second = "second.customer.example"

    async def waits() -> bool:
        order = await parts.order_of(shop, second)
        return order is not None and order["last_error"] is not None and order["lease_until"] is None

    async with parts.running(parts.make_runner(shop, issuer, keys, limits=limits)):
        await parts.go_live(shop)
        await parts.power(shop, second)
        await until(waits)
        order = await parts.order_of(shop, second)
        assert order is not None
        assert (order["state"], order["attempts"]) == ("running", 0)
        assert "1 certificates of the registered domain in 7 days" in order["last_error"]
        assert timedelta(days=6, hours=23) < order["due_at"] - await now(shop) < timedelta(days=7, hours=1)
        async with shop.connection() as connection:
            found = await ca_ledger.next_slot(connection, issuer.name, second, APPLICATION, limits)
        assert found is not None
        assert found.free_at <= order["due_at"]
        await age(shop, timedelta(days=7))
        async with shop.transaction() as connection:
            await connection.execute("update orders set due_at = now() where domain = $1", second)
        await parts.until_live(shop, second)
    assert await parts.fetch(shop, "select 1 from events where fields->>'power_status' = 'failed'") == []


async def test_issuer_without_limits_is_not_counted(shop: Database, keys: Keyring, tmp_path: Path) -> None:
    async with parts.running(parts.make_runner(shop, parts.CountingIssuer(tmp_path), keys)):
        await parts.go_live(shop)
    assert await parts.fetch(shop, "select 1 from ca_ledger") == []


async def test_ledger_forgets_what_no_window_reaches(shop: Database) -> None:
    [order] = await claimed(shop, DOMAIN)
    await reserve(shop, order, Limits())
    await age(shop, timedelta(days=7, hours=23))
    async with shop.transaction() as connection:
        assert await erase(connection, "ca_ledger") == 0
    await age(shop, timedelta(hours=2))
    async with shop.transaction() as connection:
        assert await erase(connection, "ca_ledger") == 1
