"""Names that change hands, in a real Postgres: what the holder loses, what is remembered, and for how long."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from common.db import application_removal, applications, certificates, domains, ownership
from common.db.applications import NewApplication
from common.db.certificates import Certificate
from common.db.domains import EnrolledTooOften
from common.db.pool import Database
from common.db.target_contests import CnameTargetTaken
from common.domain_settings import DomainSettings
from common.enrolment.ownership import OwnershipRecord
from common.names import parse_domain
from tests.integration.expiry import erase

SHOP = "shop.customer.test"


@pytest.fixture
async def two(database: Database) -> Database:
    for letter in "ab":
        await create(database, letter)
    return database


async def create(database: Database, letter: str, target: str | None = None) -> None:
    new = NewApplication(letter, letter, target or f"{letter}.partner.test", b"s", b"w")
    async with database.transaction() as connection:
        await applications.create_application(connection, new)


async def power(database: Database, application_id: str, domain: str = SHOP) -> None:
    async with database.transaction() as connection:
        await certificates.lock_domain(connection, domain)
        await domains.power(connection, domain, application_id, DomainSettings("https://origin.test", ("/secret",)))


async def remove(database: Database, application_id: str, domain: str = SHOP) -> None:
    async with database.transaction() as connection:
        assert await domains.remove(connection, domain, "power", application_id)


async def standing(database: Database, domain: str = SHOP, claimant: str = "a") -> OwnershipRecord:
    async with database.connection() as connection:
        return await ownership.find_standing(connection, parse_domain(domain), claimant)


async def name_targets(database: Database, application_id: str, *targets: str) -> None:
    """One after the other."""
    for target in targets:
        async with database.transaction() as connection:
            await applications.update_application(connection, application_id, cname_target=target)


async def fetch(database: Database, statement: str) -> list[tuple[Any, ...]]:
    async with database.connection() as connection:
        return [tuple(row) for row in await connection.fetch(statement)]


async def age(database: Database, days: float) -> None:
    async with database.connection() as connection:
        await connection.execute(
            "update former_holders set released_at = released_at - make_interval(secs => $1)", days * 86400
        )


async def test_a_name_is_locked_once_by_an_enrolment_and_once_by_a_removal(two: Database) -> None:
    statements: list[str] = []
    async with two.transaction() as connection:
        connection.add_query_logger(lambda record: statements.append(record.query))
        await certificates.lock_domain(connection, SHOP)
        await domains.power(connection, SHOP, "a", DomainSettings("https://origin.test"))
        await domains.remove(connection, SHOP, "power", "a")
    assert sum("lock_slots" in statement for statement in statements) == 2


async def test_a_name_remembers_its_holders_for_thirty_days(two: Database) -> None:
    await power(two, "a")
    assert await standing(two) == OwnershipRecord(holder="a")
    await remove(two, "a")
    await power(two, "b")
    await remove(two, "b")
    assert await standing(two) == OwnershipRecord(former_holders=("b", "a"))

    await age(two, 29.9)
    assert await erase_former_holders(two) == 0
    assert (await standing(two)).former_holders == ("b", "a")
    await age(two, 0.2)
    assert await standing(two) == OwnershipRecord()
    assert await erase_former_holders(two) == 2
    assert await fetch(two, "select * from former_holders") == []


async def erase_former_holders(database: Database) -> int:
    async with database.transaction() as connection:
        return await erase(connection, "former_holders")


async def test_a_holder_is_remembered_only_once_its_last_product_is_gone(two: Database) -> None:
    await power(two, "a")
    async with two.transaction() as connection:
        await domains.secure(connection, SHOP, "a", DomainSettings())
    await remove(two, "a")
    assert await standing(two) == OwnershipRecord(holder="a")


async def test_targets_and_the_roots_above_them_are_seen(two: Database) -> None:
    assert (await standing(two, "b.partner.test")).is_target
    assert (await standing(two, "partner.test", "a")).is_above_foreign_target
    assert not (await standing(two, "artner.test")).is_above_foreign_target
    async with two.transaction() as connection:
        await applications.update_application(connection, "b", secure_cname_target="deep.below.other.test")
    assert (await standing(two, "deep.below.other.test")).is_target
    assert (await standing(two, "other.test", "a")).is_above_foreign_target
    assert not (await standing(two, "other.test", "b")).is_above_foreign_target


async def test_a_name_taken_away_leaves_nothing_but_an_event(two: Database) -> None:
    await power(two, "a")
    async with two.transaction() as connection:
        await domains.secure(connection, SHOP, "a", DomainSettings(redirect_to="https://elsewhere.test"))
        now = datetime.now(UTC)
        await certificates.store(
            connection, SHOP, "a", Certificate("internal", "chain", b"key", now, now + timedelta(days=90))
        )

    async with two.transaction() as connection:
        assert await ownership.revoke_ownership(connection, SHOP, "a", "moved")
        await domains.power(connection, SHOP, "b", DomainSettings("https://new.test"))

    assert await fetch(
        two, "select product, application_id, application_url, redirect_to, root_path_access from domains"
    ) == [("power", "b", "https://new.test", None, None)]
    assert await fetch(two, "select application_id, state, fence, placed_url from orders") == [
        ("b", "running", 0, None)
    ]
    assert await fetch(two, "select application_id, released_at is null from certificates") == [("a", False)]
    events = "select application_id, type, subdomain, fields from events order by sequence"
    assert await fetch(two, events) == [
        ("a", "domain.power", "shop", {"power_status": "inactive", "reason": "moved"}),
        ("a", "domain.secure", "shop", {"secure_status": "inactive", "reason": "moved"}),
    ]
    assert await standing(two) == OwnershipRecord(holder="b", former_holders=("a",))


async def test_opposite_moves_at_the_same_time_do_not_deadlock(two: Database) -> None:
    [(from_a, from_b)] = await fetch(
        two,
        "select min(name), max(name) from"
        " (select 'shop-' || n || '.customer.test' as name from generate_series(1, 99) n) names"
        " where domain_slot(name) = 0",
    )
    await power(two, "a", from_a)
    await power(two, "b", from_b)

    async def move_to_a() -> None:
        async with two.transaction() as connection:
            await ownership.revoke_ownership(connection, from_b, "b", "moved")
            await domains.power(connection, from_b, "a", DomainSettings("https://new.test"))

    async with two.transaction() as connection:
        await ownership.revoke_ownership(connection, from_a, "a", "moved")
        moving = asyncio.create_task(move_to_a())
        while not await fetch(two, "select 1 from pg_locks where not granted"):
            assert not moving.done()
        await domains.power(connection, from_a, "b", DomainSettings("https://new.test"))
    await moving
    assert await fetch(two, "select domain, application_id from domains order by domain") == [
        (from_a, "b"),
        (from_b, "a"),
    ]


async def test_what_is_not_held_cannot_be_taken_away(two: Database) -> None:
    await power(two, "a")
    async with two.transaction() as connection:
        assert not await ownership.revoke_ownership(connection, SHOP, "b", "moved")
    assert await fetch(two, "select * from events") == []
    assert await standing(two) == OwnershipRecord(holder="a")


async def test_the_limit_counts_an_applications_own_enrolments(two: Database) -> None:
    for _ in range(6):
        await power(two, "a")
        await remove(two, "a")
    with pytest.raises(EnrolledTooOften):
        await power(two, "a")

    for _ in range(6):
        await power(two, "b")
        await remove(two, "b")
    with pytest.raises(EnrolledTooOften):
        await power(two, "b")


async def test_a_target_is_no_domain_and_no_target_that_another_application_had(two: Database) -> None:
    await power(two, "a")
    await power(two, "a", "lost.customer.test")
    await remove(two, "a", "lost.customer.test")
    async with two.transaction() as connection:
        await applications.update_application(connection, "a", cname_target="new.partner.test")

    for target in (SHOP, "lost.customer.test", "a.partner.test"):
        with pytest.raises(CnameTargetTaken):
            await create(two, "c", target)
        async with two.transaction() as connection:
            with pytest.raises(CnameTargetTaken):
                await applications.update_application(connection, "b", secure_cname_target=target)

    async with two.transaction() as connection:
        await applications.update_application(connection, "a", cname_target="a.partner.test")  # its own, before
        assert await ownership.forget(connection, "lost.customer.test") == 1
    await create(two, "c", "lost.customer.test")


async def test_a_former_target_is_remembered_while_its_application_is_there(two: Database) -> None:
    """Not as a name that was held: by that, naming it would open it to an address."""
    await name_targets(two, "a", "new.partner.test")
    await age(two, 40)
    assert (await standing(two, "a.partner.test", "b")).former_holders == ()
    with pytest.raises(CnameTargetTaken):
        await create(two, "c", "a.partner.test")

    async with two.transaction() as connection:
        assert await application_removal.begin(connection, "a")
    await application_removal.remove_all(two, "a")
    await age(two, 29)
    for target in ("a.partner.test", "new.partner.test"):
        with pytest.raises(CnameTargetTaken):
            await create(two, "c", target)
    await age(two, 2)
    await create(two, "c", "a.partner.test")


async def test_an_application_keeps_others_from_ten_former_targets_at_most(two: Database) -> None:
    await name_targets(two, "a", *(f"{number}.partner.test" for number in range(12)))
    await create(two, "c", "0.partner.test")
    with pytest.raises(CnameTargetTaken):
        await create(two, "d", "1.partner.test")


async def test_deleting_an_application_takes_all_that_it_has_and_nothing_else(two: Database) -> None:
    for number in range(450):
        await power(two, "a", f"shop-{number}.customer.test")
    await power(two, "b", "other.customer.test")
    async with two.transaction() as connection:
        for application_id in "ab":
            await connection.execute(
                "insert into monitored_domains (id, application_id, domain, dns_records)"
                " values ($1, $1, 'c.test', '[]')",
                application_id,
            )
        now = datetime.now(UTC)
        await certificates.store(
            connection,
            "shop-1.customer.test",
            "a",
            Certificate("internal", "chain", b"key", now, now + timedelta(days=90)),
        )
        await ownership.revoke_ownership(connection, "shop-0.customer.test", "a", "released")
        extent = await application_removal.measure(connection, "a")
    assert (extent.domains, extent.monitored_domains) == (449, 1)

    async with two.transaction() as connection:
        assert await application_removal.begin(connection, "a")
    async with two.transaction() as connection:
        assert not await application_removal.finish(connection, "a")
    for stage in application_removal.STAGES:
        found = 1
        while found:
            async with two.transaction() as connection:
                found = await stage.remove(connection, "a")
    async with two.transaction() as connection:
        assert await application_removal.finish(connection, "a")
        assert not await application_removal.begin(connection, "a")

    for table in ("domains", "orders", "certificates", "monitored_domains", "checks", "events", "deliveries"):
        assert await fetch(two, f"select * from {table} where application_id = 'a'") == []
    assert await fetch(two, "select domain from domains") == [("other.customer.test",)]
    assert await fetch(two, "select id from monitored_domains") == [("b",)]
    assert (await standing(two, "shop-7.customer.test", "b")).former_holders == ("a",)
    with pytest.raises(CnameTargetTaken):
        await create(two, "c", "a.partner.test")
    live = "select kind, key from changes where not deleted order by kind, key"
    assert await fetch(two, live) == [
        ("application", "b"),
        ("order", "other.customer.test"),
        ("route", "power/other.customer.test"),
    ]
