"""Certificates from the API to the visitor and back, with Pebble, two edges, two monitors and one Postgres."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from bench.certificate_world import CertificateWorld
from bench.certificates import pebble_orders
from bench.demo.walk_clients import NoAnswer
from bench.lab.pebble import is_installed
from common.clock import SystemClock
from common.db import orders
from common.liveness import await_edges
from common.secrets import read_key_file
from monitor.certificates.acme.renewal_information import certificate_id
from tests.children import clean_environment

from .certificate_parts import (
    DOMAIN,
    a_world,
    are_live,
    assert_one_valid_certificate_each,
    fetch,
    seen_serial,
    serves,
    until,
)

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(not is_installed(), reason="needs Debian's pebble"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world() -> AsyncIterator[CertificateWorld]:
    """One for all tests; each has a domain of its own."""
    async with a_world() as world:
        yield world


async def test_domain_is_secured_served_renewed_and_deleted(world: CertificateWorld) -> None:
    await world.partner.secure(DOMAIN)
    await until(lambda: serves(world, 0, DOMAIN))

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
    told = await fetch(world, "select fields from events where type = 'domain.secure' and domain = 'customer.example'")
    assert [row["fields"]["secure_status"] for row in told] == ["success"] * 2
    assert all("certificate_expires_at" in row["fields"] for row in told)
    await assert_one_valid_certificate_each(world, [DOMAIN])

    await world.partner.change("DELETE", "/power", domain=DOMAIN)
    await world.partner.change("DELETE", "/ssl", domain=DOMAIN)
    for edge in (0, 1):
        await until(lambda edge=edge: is_unknown(world, edge, DOMAIN))
    before = pebble_orders(world)
    await world.partner.secure(DOMAIN)  # adopted: nothing is ordered
    for edge in (0, 1):
        await until(lambda edge=edge: serves(world, edge, DOMAIN))
    await until(lambda: are_live(world, [DOMAIN]))
    assert pebble_orders(world) == before


async def test_client_that_comes_meanwhile_is_held_and_not_failed(world: CertificateWorld) -> None:
    domain = "shop.held.example"
    world.ca.fail("finalize", delay_seconds=2.0)
    await world.partner.secure(domain)
    assert not (await await_edges(world.database, SystemClock(), within_seconds=1.5)).behind  # they know the order runs
    assert not await are_live(world, [domain])
    assert await asyncio.gather(*(serves(world, edge, domain) for edge in (0, 1))) == [True, True]


async def is_unknown(world: CertificateWorld, edge: int, domain: str) -> bool:
    try:
        await world.visitor(edge).get(domain)
    except NoAnswer:
        return True
    return False


async def test_departed_domain_is_inactive_until_its_dns_is_back(world: CertificateWorld) -> None:
    domain = "shop.leaver.example"
    await world.partner.secure(domain)
    await until(lambda: are_live(world, [domain]))
    serial = await seen_serial(world, 0, domain)

    async def becomes(status: str) -> None:
        async def is_so() -> bool:
            async with world.database.transaction() as connection:  # the daily look, at once
                await connection.execute(
                    "update orders set due_at = now(), renew_at = now() where domain = $1 and lease_until is null",
                    domain,
                )
            return await world.partner.status(domain) == status

        await until(is_so)

    world.zone.add(domain, "A", "192.0.2.1")  # hides the wildcard
    await becomes("inactive")
    assert await seen_serial(world, 0, domain) == serial  # it serves on
    world.zone.remove(domain)
    await becomes("active")
    await until(lambda: are_live(world, [domain]))


async def test_master_key_is_rotated_under_everything_that_runs(world: CertificateWorld, tmp_path: Path) -> None:
    before, after = "shop.before.example", "shop.after.example"
    key_file = world.edges[0].settings.key_file
    [old] = read_key_file(key_file)
    await world.partner.secure(before)
    await until(lambda: are_live(world, [before]))
    rotation = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "api.cli", "master-key", "rotate", "--grace", "0"),
        env=clean_environment(
            FRONTAGE_DATABASE_URL=world.dsn,
            FRONTAGE_MASTER_KEY_FILE=str(key_file),
            FRONTAGE_STATE_DIR=str(tmp_path),  # that of whoever runs the tests has things sealed in it
        ),
        stdout=asyncio.subprocess.DEVNULL,
    )
    assert await asyncio.wait_for(rotation.wait(), 60) == 0
    [new] = read_key_file(key_file)
    assert new.id != old.id
    await world.partner.secure(after)  # the API opens client secrets, a monitor its account's key
    await until(lambda: are_live(world, [after]))
    await assert_one_valid_certificate_each(world, [before, after])


async def test_compromised_certificate_is_replaced_and_revoked_at_the_authority(world: CertificateWorld) -> None:
    domain = "shop.compromised.example"
    await world.partner.secure(domain)
    await until(lambda: are_live(world, [domain]))
    old = await seen_serial(world, 0, domain)
    async with world.database.transaction() as connection:
        assert await orders.request_replacement(connection, domain, world.partner.application_id, 1)

    async def is_revoked() -> bool:
        return bool((await world.pebble.certificate_status(old))["Status"] == "Revoked")

    await until(is_revoked)
    new = await seen_serial(world, 0, domain)
    assert new != old
    assert (await world.pebble.certificate_status(new))["Status"] == "Valid"
    await assert_one_valid_certificate_each(world, [domain])


async def test_window_of_the_authority_has_it_renewed_without_a_limits_slot(world: CertificateWorld) -> None:
    domain = "shop.window.example"
    await world.partner.secure(domain)
    await until(lambda: are_live(world, [domain]))
    old = await seen_serial(world, 0, domain)
    [row] = await fetch(world, "select chain from certificates where domain = $1", domain)
    past = datetime(2026, 1, 1, tzinfo=UTC)
    world.ca.suggest(certificate_id(row["chain"]), past, past + timedelta(days=1))
    for monitor in world.monitors:  # a directory is read once
        await monitor.stop()
    async with world.database.transaction() as connection:
        await connection.execute("update orders set due_at = now() where domain = $1", domain)
    for monitor in world.monitors:
        await monitor.start()

    async def is_renewed() -> bool:
        return await seen_serial(world, 0, domain) != old and await are_live(world, [domain])

    await until(is_renewed)
    assert world.ca.orders[-1]["replaces"] == certificate_id(row["chain"])
    counted = await fetch(world, "select is_exempt from ca_ledger where domain = $1 order by id", domain)
    assert [row["is_exempt"] for row in counted] == [False, True]
