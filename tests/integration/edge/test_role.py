"""The edge as people run it: real processes, a real database, and an origin behind it."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dns.asyncquery
import dns.message
import dns.rcode
import pytest

from bench.lab.ports import free_ports
from common.builds import read_build
from common.db import edge_nodes, traffic
from common.db.edge_nodes import EdgeDescription
from common.db.pool import Database
from common.secrets import Keyring
from common.traffic import requests_of
from tests import rows
from tests.component.edge_process import EdgeProcess, exchange, is_alive, real_edge
from tests.integration.edge.origins import an_origin
from tests.waiting import SECONDS, until, until_equal

DOMAIN = "shop.customer.example"
NOWHERE = "postgresql://frontage:none@127.0.0.1:1/frontage"


async def power(database: Database, origin: int) -> None:
    async with database.transaction() as connection:
        await rows.power(connection, DOMAIN, f"http://127.0.0.1:{origin}/")


@pytest.fixture
async def edge(tmp_path: Path, dsn: str, keyring: Keyring) -> AsyncIterator[EdgeProcess]:
    settings = {"FRONTAGE_EDGE_HTTPS_REDIRECT": "off", "FRONTAGE_ALLOW_PRIVATE_ADDRESSES": "127.0.0.0/8"}
    with real_edge(tmp_path, workers=2, FRONTAGE_DATABASE_URL=dsn, **settings) as process:
        yield process


async def ask(edge: EdgeProcess, path: str = "/") -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", edge.http)
    try:
        return await exchange(reader, writer, path, host=DOMAIN)
    finally:
        writer.close()


async def answers(edge: EdgeProcess, count: int = 24) -> set[str]:
    """From so many new connections that every worker has had some."""
    return set(await asyncio.gather(*(ask(edge) for _ in range(count))))


async def answered_everywhere(edge: EdgeProcess, name: str) -> None:
    async with asyncio.timeout(SECONDS):
        while await answers(edge) != {name}:
            pass


async def nodes(database: Database) -> int:
    async with database.connection() as connection:
        count: int = await connection.fetchval("select count(*) from edge_nodes where lease_until > clock_timestamp()")
    return count


async def test_changed_route_is_served_by_every_worker(edge: EdgeProcess, database: Database) -> None:
    async with an_origin("old") as old, an_origin("new") as new:
        await power(database, old)
        await edge.start()
        assert await answers(edge) == {"old"}
        await power(database, new)
        await answered_everywhere(edge, "new")


async def test_restart_without_postgres_serves_what_was_known(edge: EdgeProcess, database: Database) -> None:
    async with an_origin("known") as origin:
        await power(database, origin)
        await edge.start()
        edge.signal(signal.SIGKILL)
        await edge.ended()
        await edge.start(FRONTAGE_DATABASE_URL=NOWHERE)
        assert await answers(edge) == {"known"}
        ready = await edge.admin_json("/readyz")
        assert ready["message"] == "ready"
        assert ready["replica"]["connected"] is False


async def test_lease_stands_while_the_edge_serves_and_ends_with_it(edge: EdgeProcess, database: Database) -> None:
    await edge.start()
    await until_equal(lambda: nodes(database), 1)
    edge.signal(signal.SIGTERM)
    assert await edge.ended() == 0
    assert await nodes(database) == 0
    assert edge.living() == set()


async def test_renewing_and_killing_workers_under_load(edge: EdgeProcess, database: Database) -> None:
    async with an_origin("here") as origin:
        await power(database, origin)
        await edge.start()
        before = await edge.workers()
        is_over = False
        broken: list[BaseException] = []

        async def load() -> None:
            while not is_over:
                reader, writer = await asyncio.open_connection("127.0.0.1", edge.http)
                try:
                    while not is_over and not writer.is_closing():
                        assert await exchange(reader, writer, host=DOMAIN) == "here"
                except (OSError, EOFError) as error:
                    broken.append(error)
                finally:
                    writer.close()

        clients = [asyncio.create_task(load()) for _ in range(8)]
        edge.signal(signal.SIGHUP)
        renewed = await edge.workers_when(
            lambda workers: len(workers) == 2 and not set(workers.values()) & set(before.values())
        )
        await until(lambda: not edge.living() & set(before.values()))
        assert broken == []

        os.kill(renewed[0], signal.SIGKILL)
        await edge.workers_when(lambda workers: len(workers) == 2 and workers[0] != renewed[0])
        is_over = True
        await asyncio.wait_for(asyncio.gather(*clients), 30)
        assert len(broken) <= len(clients)


async def test_stop_lets_a_slow_origin_answer(edge: EdgeProcess, database: Database) -> None:
    released = asyncio.Event()
    async with an_origin("late", released) as origin:
        await power(database, origin)
        await edge.start()
        slow = asyncio.create_task(ask(edge, "/slow"))
        await edge.metrics_with("frontage_edge_upstream_connections 1.0")
        edge.signal(signal.SIGTERM)
        await edge.draining()
        released.set()
        assert await slow == "late"
        assert await edge.ended() == 0


async def test_a_failed_upgrade_is_reported_with_the_lease_until_one_succeeds(
    edge: EdgeProcess, database: Database
) -> None:
    described = EdgeDescription()

    async def is_described(*, as_failed: bool) -> bool:
        nonlocal described
        async with database.connection() as connection:
            for node, _ in await edge_nodes.list_nodes(connection):
                described = node.description
        return described.software_version != "" and (described.failed_upgrade is not None) is as_failed

    await edge.start()
    await until(lambda: is_described(as_failed=False), "the lease shows the version")
    assert described.software_version == str(read_build())

    key, begun_at = edge.state_dir / "master.key", datetime.now(UTC)
    key.rename(edge.state_dir / "away")
    edge.signal(signal.SIGUSR2)
    await until(lambda: is_described(as_failed=True), "the lease shows the failed upgrade")
    failed = described.failed_upgrade
    assert failed is not None
    assert begun_at <= failed.at <= datetime.now(UTC)
    assert "ended with status 1" in failed.reason

    (edge.state_dir / "away").rename(key)
    edge.signal(signal.SIGUSR2)
    await until(lambda: is_described(as_failed=False), "the lease shows that an upgrade succeeded")


async def test_missing_master_key_is_one_line(edge: EdgeProcess) -> None:
    (edge.state_dir / "master.key").unlink()
    edge.launch()
    assert await edge.ended() == 1
    assert edge.log().startswith("frontage edge: no master key at ")


async def test_two_edges_on_one_state_directory_are_refused(edge: EdgeProcess, tmp_path: Path, dsn: str) -> None:
    await edge.start()
    with real_edge(tmp_path, workers=1, FRONTAGE_DATABASE_URL=dsn) as second:
        second.launch()
        assert await second.ended() == 1
        assert "another edge already runs" in second.log()
        assert "FRONTAGE_STATE_DIR of its own" in second.log()


async def test_every_question_about_the_challenge_zone_is_answered_through_an_upgrade(edge: EdgeProcess) -> None:
    [port] = free_ports(1)
    zone, numbers = "acme.frontage.example", itertools.cycle(range(2, 252))
    await edge.start(FRONTAGE_EDGE_DNS=f"127.0.0.1:{port}", FRONTAGE_ACME_DNS_ZONE=zone)
    upgrade = asyncio.create_task(_upgraded(edge, await edge.serving()))
    answered = 0
    while not upgrade.done() or not answered:
        query, source = dns.message.make_query(zone, "SOA"), f"127.0.0.{next(numbers)}"  # each has its own limit
        reply = await dns.asyncquery.udp(query, "127.0.0.1", port=port, source=source, timeout=SECONDS)
        assert reply.rcode() == dns.rcode.NOERROR
        answered += 1
    await upgrade


async def _upgraded(edge: EdgeProcess, old: int) -> None:
    edge.signal(signal.SIGUSR2)
    await edge.upgraded(old)
    await until(lambda: not is_alive(old), "the old generation has ended")


async def test_a_draining_generation_reports_its_requests_once(edge: EdgeProcess, database: Database) -> None:
    released = asyncio.Event()
    async with an_origin("late", released) as origin:
        await power(database, origin)
        await edge.start()
        old = await edge.serving()
        slow = asyncio.create_task(ask(edge, "/slow"))
        await edge.metrics_with("frontage_edge_upstream_connections 1.0")
        edge.signal(signal.SIGUSR2)
        await edge.upgraded(old)
        await answers(edge, 5)
        released.set()
        assert await slow == "late"
        await until(lambda: not is_alive(old), "the old generation has drained")
        assert await requests_in(database) >= 1  # the new one reports every few seconds
        edge.signal(signal.SIGTERM)
        assert await edge.ended() == 0
        assert await requests_in(database) == 6


async def requests_in(database: Database) -> int:
    async with database.connection() as connection:
        points = await traffic.list_points(connection, "app", DOMAIN, 60, timedelta(hours=2))
    return sum(requests_of(point.counts) for point in points)


async def test_requests_are_counted_in_postgres_by_domain(edge: EdgeProcess, database: Database) -> None:
    async def counted() -> bool:
        return await requests_in(database) >= 24

    async with an_origin("here") as origin:
        await power(database, origin)
        await edge.start()
        await answers(edge)
        await until(counted, "every request is in Postgres", seconds=120)
