"""No application keeps another waiting for its certificates: real Postgres."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from common.clock import SystemClock
from common.db import order_queue
from common.db.pool import Connection, Database
from common.secrets import Keyring
from monitor.certificates.issuer import Issued
from monitor.certificates.queue import AWAITED_AT_ONCE, RECHECKS_AT_ONCE, OrderQueue, Precedence, make_runner
from monitor.concurrency_shares import ConcurrencyShares
from tests.waiting import until

from . import parts
from .parts import APPLICATION, DOMAIN, OTHER_APPLICATION, CountingIssuer

SLOW = 200


class HangingIssuer(CountingIssuer):
    """Its orders for slow domains end when the test does."""

    def __init__(self, state_dir: Path) -> None:
        super().__init__(state_dir)
        self.never = asyncio.Event()
        self.hanging = 0

    async def issue(self, domain: str, *arguments: Any, **options: Any) -> Issued:
        if domain.startswith("slow"):
            self.hanging += 1
            await self.never.wait()
        return await super().issue(domain, *arguments, **options)


async def test_domain_is_issued_beside_another_applications_slow_ones(
    shop: Database, keys: Keyring, tmp_path: Path
) -> None:
    issuer = HangingIssuer(tmp_path)
    issuance = parts.make_issuance(shop, issuer, keys, random=Random(1))
    runner = make_runner(shop, order_queue.AWAITED, issuance.perform, Random(1), concurrency=AWAITED_AT_ONCE)

    async def issue(domain: str) -> float:
        began = time.monotonic()
        await parts.power(shop, domain)
        runner.wake()
        await parts.until_live(shop, domain)
        return time.monotonic() - began

    async with parts.running(runner):
        alone = await issue(DOMAIN)
        for number in range(SLOW):
            await parts.power(shop, f"slow-{number}.customer.example", application_id=OTHER_APPLICATION)
        runner.wake()
        await until(lambda: issuer.hanging >= AWAITED_AT_ONCE * 2 // 3)
        beside = [await issue(f"shop-{number}.customer.example") for number in range(5)]
        assert issuer.hanging <= AWAITED_AT_ONCE * 2 // 3
    print(f"issued in {alone:.2f} s alone, {sorted(beside)[2]:.2f} s beside {SLOW} slow domains of another")


async def test_applications_lines_are_shown_beside_one_that_has_more_than_can_be_taken(shop: Database) -> None:
    await add_orders(shop, OTHER_APPLICATION, 100)
    await add_orders(shop, APPLICATION, 2)
    async with shop.connection() as connection:
        everything, _ = await order_queue.AWAITED.find_due(connection, most=200)
        shown, after = await order_queue.AWAITED.find_due(connection, most=10)
        others, _ = await order_queue.AWAITED.find_due(connection, most=10, full=[OTHER_APPLICATION])
    assert len(everything) == 102
    assert {each.application_id for each in shown} == {APPLICATION, OTHER_APPLICATION}
    assert {each.application_id for each in others} == {APPLICATION}
    assert after == "", "there are no more applications"


async def test_applications_are_looked_at_in_turn_however_many_there_are(shop: Database) -> None:
    lane = replace(order_queue.AWAITED, most_visited=1)
    await add_orders(shop, OTHER_APPLICATION, 20)
    await add_orders(shop, APPLICATION, 2)
    found, after = [], ""
    async with shop.connection() as connection:
        for _ in range(3):
            due, after = await lane.find_due(connection, most=10, after=after)
            found.append({each.application_id for each in due})
    assert found == [{APPLICATION}, {OTHER_APPLICATION}, set()]
    assert after == ""


class TurnedClock(SystemClock):
    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


async def test_rechecks_give_way_to_awaited_orders_and_still_begin(shop: Database) -> None:
    """As beside an import, whose names are all rechecked; a recheck of another application is in the first group."""
    await add_orders(shop, OTHER_APPLICATION, 100)
    await add_orders(shop, APPLICATION, 1)
    async with shop.transaction() as connection:
        await connection.execute("update orders set recheck_requested_at = now()")
    await parts.power(shop, DOMAIN)
    clock = TurnedClock()
    first = Precedence(clock)
    awaited = OrderQueue(order_queue.AWAITED, ConcurrencyShares(), precedence=first)
    rechecks = OrderQueue(order_queue.RECHECKS, ConcurrencyShares(), gives_way_to=first)

    async def claim(queue: OrderQueue) -> list[str]:
        async with shop.transaction() as connection:
            claimed = await queue.claim(connection, most=RECHECKS_AT_ONCE, lease_seconds=600)
        return [order.application_id for order in claimed]

    assert await claim(awaited) == [APPLICATION]
    group = await claim(rechecks)
    assert 0 < len(group) <= RECHECKS_AT_ONCE // 4
    assert set(group) == {APPLICATION, OTHER_APPLICATION}
    assert await claim(rechecks) == []
    clock.seconds += 1
    assert len(await claim(rechecks)) == len(group), "the next group begins although awaited orders go on"
    clock.seconds += 60
    assert await claim(awaited) == [], "no claim of nothing is given way to"
    assert len(await claim(rechecks)) > len(group)


async def add_orders(database: Database, application_id: str, count: int, *, kind: str = "new") -> None:
    async with database.transaction() as connection:
        await connection.execute("alter table orders disable trigger follow")
        await connection.execute(
            "insert into orders (domain, application_id, state, kind, hold_until, due_at, renew_at)"
            " select $2 || n || '.' || $1 || '.example', $1, case $2 when 'renewal' then 'issued' else 'running' end,"
            " $2, now(), now() + case $2 when 'renewal' then interval '1 day' else interval '0' end, now()"
            " from generate_series(1, $3) n",
            application_id,
            kind,
            count,
        )
        await connection.execute("alter table orders enable trigger follow")


async def test_due_lists_are_read_by_their_own_indexes(shop: Database) -> None:
    """Among very many orders that merely wait for their renewal."""
    await add_orders(shop, APPLICATION, 20_000, kind="renewal")
    await add_orders(shop, OTHER_APPLICATION, 3)
    lane = order_queue.AWAITED
    async with shop.transaction() as connection:
        for analyze in ("select", "analyze orders"):
            await connection.execute(analyze)
            for mode in ("force_custom_plan", "force_generic_plan"):
                await connection.execute(f"set local plan_cache_mode = {mode}")
                for statement, types, values in (
                    (order_queue._DUE.format(listed=lane.listed), "bigint", "10"),
                    (order_queue._WALK.format(listed=lane.listed), "text, int", "'', 10"),
                    (order_queue._LINES.format(listed=lane.listed), "bigint, text[]", f"10, array['{APPLICATION}']"),
                ):
                    plan = await explain(connection, statement, types, values)
                    assert not re.search(r"Seq Scan on orders|orders_due|orders_pkey", plan), plan


async def explain(connection: Connection, statement: str, types: str, values: str) -> str:
    await connection.execute(f"prepare explained({types}) as {statement}")
    rows = await connection.fetch(f"explain execute explained({values})")
    await connection.execute("deallocate explained")
    return "\n".join(row[0] for row in rows)
