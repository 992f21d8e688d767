"""Certificates from the API to the visitor and back, with Pebble, two edges, two monitors and one Postgres.

Whatever is killed, restarted or refused on the way: one valid certificate for each domain in the end, and a ledger that
agrees with what Pebble saw.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from bench.certificate_world import RoleProcess, World, certificate_world
from bench.lab.pebble import is_installed
from bench.process_tree import descendants
from common.cli.walk import NoAnswer
from common.db import orders
from common.errors import DatabaseUnavailable
from monitor.certificates.acme.renewal_information import certificate_id

pytestmark = pytest.mark.skipif(not is_installed(), reason="needs Debian's pebble")

DOMAIN = "shop.customer.example"
STEPS = ("new order", "authorization", "challenge", "order", "finalize", "certificate")


@pytest.fixture
def directory() -> Iterator[Path]:
    """Where the embedded Postgres' own user can go, too."""
    path = Path(tempfile.mkdtemp(prefix="frontage-tests-", dir="/var/tmp"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
async def world(directory: Path) -> AsyncIterator[World]:
    async with certificate_world(directory) as world:
        yield world


async def until(condition: Callable[[], Awaitable[Any]], *, seconds: float = 60.0) -> Any:
    """The first truthy answer; an outage is one more reason for there being none yet."""
    async with asyncio.timeout(seconds):
        while True:
            try:
                if answer := await condition():
                    return answer
            except DatabaseUnavailable:
                pass
            await asyncio.sleep(0.05)


async def fetch(world: World, statement: str, *values: object) -> list[Any]:
    async with world.database.connection() as connection:
        return list(await connection.fetch(statement, *values))


async def are_live(world: World, domains: list[str]) -> bool:
    rows = await fetch(
        world,
        "select 1 from orders join certificates using (domain) where domain = any($1) and state = 'issued'"
        " and live_at >= issued_at and lease_until is null",
        domains,
    )
    return len(rows) == len(domains)


async def seen_serial(world: World, edge: int, domain: str = DOMAIN) -> int:
    """Of the certificate that edge presents; what Pebble did not sign, or not for this name, is an error."""
    context = ssl.create_default_context(cafile=world.ca_file)
    port = world.edges[edge].settings.edge_https.port
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=domain)
    try:
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return x509.load_der_x509_certificate(der).serial_number
    finally:
        writer.close()


async def assert_one_valid_certificate_each(world: World, domains: list[str], *, unsent: int = 0) -> None:
    """`unsent`: for so many orders at most nobody could tell whether Pebble heard of them; they count."""
    rows = await fetch(
        world, "select domain from certificates where released_at is null and not_after > now() order by domain"
    )
    assert [row["domain"] for row in rows] == sorted(domains)
    for domain in domains:
        for edge in range(len(world.edges)):
            assert (await world.visitor(edge).get(domain)).status == 200
    states = {row["state"]: row["n"] for row in await fetch(world, _LEDGER)}
    counted = sum(states.values())
    assert states.get("placed", 0) <= pebble_orders(world) <= counted <= pebble_orders(world) + unsent


_LEDGER = "select state, count(*)::int as n from ca_ledger where kind = 'order' group by state"


def pebble_orders(world: World) -> int:
    return max(map(int, re.findall(r"There are now (\d+) orders in the db", world.pebble.log())), default=0)


async def test_domain_is_secured_served_renewed_and_deleted(world: World) -> None:
    await world.partner.secure(DOMAIN)
    first_answer = await world.visitor(0).get(DOMAIN)  # held until the certificate is there
    assert first_answer.status == 200

    async def is_active() -> bool:
        return await world.partner.status(DOMAIN) == "active"

    await until(is_active)
    async with world.database.connection() as connection:
        state = await orders.describe(connection, DOMAIN)
    assert state is not None
    assert {"checks", "order", "challenge", "validation", "finalize", "live"} <= set(state.phases)
    old = await seen_serial(world, 0)
    assert await seen_serial(world, 1) == old  # active: every edge has it

    await world.partner.power(DOMAIN)  # shares it
    await world.partner.change("PUT", "/ssl", domain=DOMAIN)

    async def is_renewed() -> bool:
        return {await seen_serial(world, edge) for edge in (0, 1)}.isdisjoint({old})

    await until(is_renewed)
    await until(lambda: are_live(world, [DOMAIN]))
    assert [row["fields"] for row in await fetch(world, "select fields from events where type = 'domain.secure'")] == [
        {"secure_status": "success"},
        {"secure_status": "success"},
    ]
    await assert_one_valid_certificate_each(world, [DOMAIN])

    await world.partner.change("DELETE", "/power", domain=DOMAIN)
    await world.partner.change("DELETE", "/ssl", domain=DOMAIN)
    for edge in (0, 1):
        with pytest.raises(NoAnswer):
            await world.visitor(edge).get(DOMAIN)
    before = pebble_orders(world)
    await world.partner.secure(DOMAIN)  # adopted: nothing is ordered
    for edge in (0, 1):
        assert (await world.visitor(edge).get(DOMAIN)).status == 200
    await until(lambda: are_live(world, [DOMAIN]))
    assert pebble_orders(world) == before == 2


async def stall(world: World, step: Any, domain: str, *, seconds: float = 3.0) -> None:
    """Have a domain's order stand at a step: the CA hears of it only later."""
    world.ca.fail(step, delay_seconds=seconds)
    fault = world.ca.faults[-1]
    await world.partner.secure(domain)

    async def stands() -> bool:
        return fault.times == 0

    await until(stands)


async def test_monitors_killed_at_every_step_leave_one_certificate_each(world: World) -> None:
    domains = [f"shop.customer{number}.example" for number in range(len(STEPS))]
    for step, domain in zip(STEPS, domains, strict=True):
        await stall(world, step, domain)
    for monitor in world.monitors:
        await monitor.kill()
    for monitor in world.monitors:
        await monitor.start()
    await until(lambda: are_live(world, domains))
    await assert_one_valid_certificate_each(world, domains)
    assert pebble_orders(world) == len(domains) + 1  # of the order whose answer nobody lived to see, a second


async def test_postgres_killed_in_the_middle_of_orders(world: World) -> None:
    domains = [f"shop.customer{number}.example" for number in range(len(STEPS))]
    for step, domain in zip(STEPS, domains, strict=True):
        await stall(world, step, domain)
    await world.restart_postgres()
    await until(lambda: are_live(world, domains))
    await assert_one_valid_certificate_each(world, domains)


async def test_every_fault_of_the_authority_at_once_costs_time_only(world: World) -> None:
    steps = ("directory", "nonce", "account", *STEPS)
    for step in steps:
        world.ca.fail(step, status=503)
        world.ca.fail(step, status=429, problem="rateLimited", headers={"Retry-After": "1"})
        world.ca.fail(step, drop="before")
        world.ca.fail(step, drop="after")
    domains = [f"shop.customer{number}.example" for number in range(16)]
    await asyncio.gather(*map(world.partner.secure, domains))
    await until(lambda: are_live(world, domains), seconds=110)
    await assert_one_valid_certificate_each(world, domains, unsent=3)  # what was dropped for a nonce or an order


async def test_dead_edge_delays_nobody_and_a_frozen_one_for_a_second(world: World) -> None:
    _signal(world.edges[1], signal.SIGSTOP)
    try:
        await world.partner.secure(DOMAIN)
        assert (await world.visitor(0).get(DOMAIN)).status == 200  # on the other edge at once
        await until(lambda: are_live(world, [DOMAIN]))
        assert await live_seconds(world, DOMAIN) < 2.0  # though its lease stood
        await until(lambda: has_no_lease(world))
        other = "shop.other.example"
        await world.partner.secure(other)
        await until(lambda: are_live(world, [other]))
        assert await live_seconds(world, other) < 0.9
    finally:
        _signal(world.edges[1], signal.SIGCONT)

    async def catches_up() -> bool:
        return (await world.visitor(1).get(other)).status == 200

    await until(catches_up)
    await world.edges[1].kill()
    third = "shop.third.example"
    await world.partner.secure(third)
    assert (await world.visitor(0).get(third)).status == 200
    await until(lambda: are_live(world, [third]))
    assert await live_seconds(world, third) < 2.0


def _signal(role: RoleProcess, number: signal.Signals) -> None:
    for pid in [role.pid, *descendants(role.pid)]:
        os.kill(pid, number)


async def live_seconds(world: World, domain: str) -> float:
    [row] = await fetch(world, "select phases from orders where domain = $1", domain)
    return float(row["phases"]["live"])


async def has_no_lease(world: World) -> bool:
    return len(await fetch(world, "select 1 from edge_nodes where lease_until > clock_timestamp()")) == 1


async def test_compromised_certificate_is_replaced_and_revoked_at_the_authority(world: World) -> None:
    await world.partner.secure(DOMAIN)
    await until(lambda: are_live(world, [DOMAIN]))
    old = await seen_serial(world, 0)
    async with world.database.transaction() as connection:
        assert await orders.request_replacement(connection, DOMAIN, world.partner.application_id, 1)

    async def is_revoked() -> bool:
        return (await world.pebble.certificate_status(old))["Status"] == "Revoked"

    await until(is_revoked)
    new = await seen_serial(world, 0)
    assert new != old
    assert (await world.pebble.certificate_status(new))["Status"] == "Valid"
    await assert_one_valid_certificate_each(world, [DOMAIN])


async def test_window_of_the_authority_has_it_renewed_without_a_limits_slot(world: World) -> None:
    await world.partner.secure(DOMAIN)
    await until(lambda: are_live(world, [DOMAIN]))
    old = await seen_serial(world, 0)
    [row] = await fetch(world, "select chain from certificates")
    past = datetime(2026, 1, 1, tzinfo=UTC)
    world.ca.suggest(certificate_id(row["chain"]), past, past + timedelta(days=1))
    for monitor in world.monitors:  # a directory is read once
        await monitor.stop()
    async with world.database.transaction() as connection:
        await connection.execute("update orders set due_at = now()")
    for monitor in world.monitors:
        await monitor.start()

    async def is_renewed() -> bool:
        return await seen_serial(world, 0) != old and await are_live(world, [DOMAIN])

    await until(is_renewed)
    assert world.ca.orders[-1]["replaces"] == certificate_id(row["chain"])
    assert [row["is_exempt"] for row in await fetch(world, "select is_exempt from ca_ledger order by id")] == [
        False,
        True,
    ]
