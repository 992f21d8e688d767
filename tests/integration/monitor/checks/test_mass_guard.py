"""Too many alarms at once are held back, until the next round or an operator says they are true."""

from __future__ import annotations

from bench.lab.server import NameServer
from bench.lab.zone import Behaviour
from common.db import checks, monitor_health
from common.db.monitor_health import MonitorHealth
from common.db.pool import Database
from monitor.checks.checking import Checking
from monitor.checks.health import HELD, CheckHealth
from tests.waiting import until

from . import parts
from .parts import HOUR, a, check_now, check_until_known, events_of, fetch, watch

COUNT = 60


def domain(number: int) -> str:
    return f"c{number}.example"


async def set_up(shop: Database, server: NameServer, checking: Checking, count: int) -> None:
    """So many domains, all well."""
    for number in range(count):
        server.zone.add(domain(number), "A", "192.0.2.1")
        await watch(shop, domain(number), [a()])
    await check_until_known(shop, checking)


def lose(server: NameServer, count: int) -> None:
    for number in range(count):
        server.zone.remove(domain(number))


async def health(shop: Database) -> MonitorHealth:
    await CheckHealth(shop, HOUR).report()
    async with shop.connection() as connection:
        return await monitor_health.read(connection)


async def held(shop: Database) -> int:
    return len(await fetch(shop, "select from monitored_domains where alarm_held_at is not null"))


async def next_round(shop: Database) -> None:
    """As if an hour had gone by."""
    async with shop.transaction() as connection:
        await connection.execute("update monitored_domains set alarm_held_at = alarm_held_at - interval '1 hour'")
        await connection.execute(
            "update checks set turned_missing_at = turned_missing_at - interval '1 hour',"
            " rechecked_at = rechecked_at - interval '1 hour'"
        )


async def test_a_mass_of_alarms_is_held_and_the_service_says_it_is_not_well(
    shop: Database, server: NameServer, checking: Checking
) -> None:
    await set_up(shop, server, checking, COUNT)
    assert (await health(shop)).is_healthy
    lose(server, COUNT)
    await check_until_known(shop, checking)

    told, waiting = len(await events_of(shop)), await held(shop)
    assert told + waiting == COUNT
    assert told < 50, "the first of them could not be known for what they are"
    rows = await fetch(shop, "select records_missing from monitored_domains")
    assert all(row["records_missing"] == [a()] for row in rows), "what was found is shown all the same"
    async with shop.connection() as connection:
        assert not (await monitor_health.read(connection)).is_healthy, "at once"
    assert not (await health(shop)).is_healthy

    await check_until_known(shop, checking)
    assert len(await events_of(shop)) == told, "the same round does not confirm"


async def test_the_next_round_confirms(shop: Database, server: NameServer, checking: Checking) -> None:
    await set_up(shop, server, checking, COUNT)
    lose(server, COUNT)
    await check_until_known(shop, checking)
    await next_round(shop)
    await check_until_known(shop, checking)

    assert len(await events_of(shop)) == COUNT
    assert {event["type"] for event in await events_of(shop)} == {"domain.record_missing"}
    assert await held(shop) == 0
    assert (await health(shop)).is_healthy


async def test_what_was_not_true_is_never_told(shop: Database, server: NameServer, checking: Checking) -> None:
    await set_up(shop, server, checking, COUNT)
    lose(server, COUNT)
    await check_until_known(shop, checking)
    told = len(await events_of(shop))
    for number in range(COUNT):
        server.zone.add(domain(number), "A", "192.0.2.1")
    await check_until_known(shop, checking)

    assert await held(shop) == 0
    events = await events_of(shop)
    assert len(events) == 2 * told, "who was told of a loss is told of its return, nobody else of anything"
    assert (await health(shop)).is_healthy


async def test_an_operator_confirms(shop: Database, server: NameServer, checking: Checking) -> None:
    await set_up(shop, server, checking, COUNT)
    lose(server, COUNT)
    await check_until_known(shop, checking)
    waiting = await held(shop)
    async with shop.transaction() as connection:
        assert await checks.release_alarms(connection, for_seconds=HOUR) == waiting
    checking.wake()

    async def is_told() -> bool:
        return len(await events_of(shop)) == COUNT

    await until(is_told)
    assert await held(shop) == 0


async def test_first_checks_do_not_count(shop: Database, server: NameServer, checking: Checking) -> None:
    for number in range(COUNT):
        await watch(shop, domain(number), [a()])
    await check_until_known(shop, checking)
    assert len(await events_of(shop)) == COUNT


async def test_a_small_share_is_believed(shop: Database, server: NameServer, checking: Checking) -> None:
    await set_up(shop, server, checking, 5 * COUNT)
    await check_until_known(shop, checking)
    lose(server, COUNT - 5)
    await check_until_known(shop, checking)
    assert len(await events_of(shop)) == COUNT - 5


async def test_monitors_count_together(shop: Database, server: NameServer, checking: Checking) -> None:
    await set_up(shop, server, checking, COUNT)
    lose(server, COUNT)
    async with parts.running(*(parts.make_checking(shop, parts.address_of(server)) for _ in range(2))):
        await check_until_known(shop, checking)
    assert len(await events_of(shop)) < 50


async def test_one_partner_cannot_hold_up_anothers_alarms(
    shop: Database, server: NameServer, checking: Checking
) -> None:
    await set_up(shop, server, checking, COUNT + 10)
    mine = [domain(number) for number in range(COUNT, COUNT + 10)]
    await move(shop, "neighbour", mine)
    await check_until_known(shop, checking)
    lose(server, COUNT)
    server.zone.remove(mine[0])
    await check_until_known(shop, checking, *(domain(number) for number in range(COUNT)))
    assert await held(shop) > 0
    await check_until_known(shop, checking, *mine)
    assert [event["type"] for event in await events_of(shop, mine[0])] == ["domain.record_missing"]


async def test_a_held_domain_that_can_no_longer_be_asked_does_not_make_the_service_unwell_for_ever(
    shop: Database, server: NameServer, checking: Checking
) -> None:
    await set_up(shop, server, checking, COUNT)
    lose(server, COUNT)
    await check_until_known(shop, checking)
    for number in range(COUNT):
        server.zone.misbehave(domain(number), Behaviour.SERVFAIL)
    waiting = await held(shop)
    for _ in range(2):
        assert not (await health(shop)).is_healthy
        await next_round(shop)
    await check_now(shop, checking)

    assert await held(shop) == waiting > 0, "silence confirms nothing"
    reason = (await health(shop)).reason
    assert reason is None or HELD not in reason


async def test_two_partners_cannot_hold_up_a_thirds_alarms(
    shop: Database, server: NameServer, checking: Checking
) -> None:
    await set_up(shop, server, checking, 2 * COUNT + 10)
    mine = [domain(number) for number in range(2 * COUNT, 2 * COUNT + 10)]
    await move(shop, "second", [domain(number) for number in range(COUNT, 2 * COUNT)])
    await move(shop, "third", mine)
    await check_until_known(shop, checking)
    lose(server, 2 * COUNT)
    server.zone.remove(mine[0])
    await check_until_known(shop, checking, *(domain(number) for number in range(2 * COUNT)))
    assert await held(shop) > 0
    await check_until_known(shop, checking, *mine)
    assert [event["type"] for event in await events_of(shop, mine[0])] == ["domain.record_missing"]


async def move(shop: Database, application_id: str, domains: list[str]) -> None:
    """Make these domains another application's."""
    async with shop.transaction() as connection:
        await connection.execute(
            "insert into applications select (jsonb_populate_record(applications, $1)).* from applications limit 1",
            {"id": application_id, "cname_target": application_id},
        )
        await connection.execute(
            "update checks set application_id = $2 from monitored_domains of_it"
            " where checks.id = of_it.id and of_it.domain = any($1)",
            domains,
            application_id,
        )
        await connection.execute(
            "update monitored_domains set application_id = $2 where domain = any($1)", domains, application_id
        )
