"""Certificates under every kind of death: in the end one valid for each domain, and a ledger that agrees with Pebble.

The long version is ``python -m bench.certificate_faults``.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bench.certificate_world import CertificateWorld, RoleProcess
from bench.certificates import pebble_orders
from bench.lab.faulty_ca import Step
from bench.lab.pebble import is_installed
from bench.lab.unbound import find_unbound
from bench.process_tree import descendants

from .certificate_parts import DOMAIN, a_world, are_live, assert_one_valid_certificate_each, fetch, serves, until

pytestmark = pytest.mark.skipif(not is_installed(), reason="needs Debian's pebble")

STEPS: tuple[Step, ...] = ("new order", "authorization", "challenge", "order", "finalize", "certificate")


@pytest.fixture
async def world() -> AsyncIterator[CertificateWorld]:
    async with a_world() as world:
        yield world


async def stall(
    world: CertificateWorld, step: Any, domain: str, released: asyncio.Event, *, is_away: bool = False
) -> None:
    """Have a domain's order stand at a step: the CA receives its request when `released` is set.

    `is_away`: it does not lead here, and is validated by DNS-01.
    """
    world.ca.fail(step, released=released)
    fault = world.ca.faults[-1]
    if is_away:
        await world.delegate(domain)
    await (world.partner.prepare if is_away else world.partner.secure)(domain)

    await until(lambda: fault.times == 0)


@pytest.mark.parametrize(
    "is_away",
    [False, pytest.param(True, marks=pytest.mark.skipif(not find_unbound(), reason="needs Debian's unbound"))],
    ids=["http-01", "dns-01"],
)
async def test_monitors_killed_at_every_step_leave_one_certificate_each(is_away: bool) -> None:
    domains = [f"shop.customer{number}.example" for number in range(len(STEPS))]
    released = asyncio.Event()
    # Pebble refuses one good nonce in twenty; a monitor that was killed sends the request that it held no second time.
    async with a_world({"PEBBLE_WFE_NONCEREJECT": "0"}, has_challenge_zone=is_away) as world:
        for step, domain in zip(STEPS, domains, strict=True):
            await stall(world, step, domain, released, is_away=is_away)
        for monitor in world.monitors:
            await monitor.kill()
        released.set()
        for monitor in world.monitors:
            await monitor.start()
        await until(lambda: are_live(world, domains))
        await assert_one_valid_certificate_each(world, domains)
        assert pebble_orders(world) == len(domains) + 1  # a second for the order whose answer no monitor received


async def test_postgres_killed_in_the_middle_of_orders(world: CertificateWorld) -> None:
    domains = [f"shop.customer{number}.example" for number in range(len(STEPS))]
    released = asyncio.Event()
    for step, domain in zip(STEPS, domains, strict=True):
        await stall(world, step, domain, released)
    await world.restart_postgres()
    released.set()
    await until(lambda: are_live(world, domains))
    await assert_one_valid_certificate_each(world, domains)


async def test_every_fault_of_the_authority_at_once_costs_time_only(world: CertificateWorld) -> None:
    steps: tuple[Step, ...] = ("directory", "nonce", "account", *STEPS)
    for step in steps:
        world.ca.fail(step, status=503)
        world.ca.fail(step, status=429, problem="rateLimited", headers={"Retry-After": "1"})
        world.ca.fail(step, drop="before")
        world.ca.fail(step, drop="after")
    domains = [f"shop.customer{number}.example" for number in range(16)]
    await asyncio.gather(*map(world.partner.secure, domains))
    await until(lambda: are_live(world, domains), seconds=110)
    await assert_one_valid_certificate_each(world, domains, unsent=3)  # what was dropped for a nonce or an order


async def test_dead_edge_delays_nobody_and_a_frozen_one_for_a_second(world: CertificateWorld) -> None:
    _signal(world.edges[1], signal.SIGSTOP)
    try:
        await world.partner.secure(DOMAIN)
        await until(lambda: serves(world, 0, DOMAIN))  # on the other edge at once
        await until(lambda: are_live(world, [DOMAIN]))
        assert await live_seconds(world, DOMAIN) < 3.0  # though its lease stood
        [frozen] = await until(lambda: nodes_without_lease(world))
        other = "shop.other.example"
        await world.partner.secure(other)
        await until(lambda: are_live(world, [other]))
        assert frozen not in waited_for(world, other)
    finally:
        _signal(world.edges[1], signal.SIGCONT)
    await until(lambda: serves(world, 1, other))  # it catches up
    await world.edges[1].kill()
    third = "shop.third.example"
    await world.partner.secure(third)
    await until(lambda: serves(world, 0, third))
    await until(lambda: are_live(world, [third]))
    assert await live_seconds(world, third) < 3.0


def _signal(role: RoleProcess, number: signal.Signals) -> None:
    for pid in [role.pid, *descendants(role.pid)]:
        os.kill(pid, number)


async def live_seconds(world: CertificateWorld, domain: str) -> float:
    [row] = await fetch(world, "select phases from orders where domain = $1", domain)
    return float(row["phases"]["live"])


async def nodes_without_lease(world: CertificateWorld) -> list[str]:
    rows = await fetch(world, "select node_id from edge_nodes where lease_until <= clock_timestamp()")
    return [row["node_id"] for row in rows]


def waited_for(world: CertificateWorld, domain: str) -> list[str]:
    """The edges that monitors say did not report this domain's certificate in time."""
    said = map(json.loads, world.monitors[0].log.read_text().splitlines())
    return [
        node
        for line in said
        if line["event"] == "edges did not report a certificate" and line["domain"] == domain
        for node in line["edges"]
    ]
