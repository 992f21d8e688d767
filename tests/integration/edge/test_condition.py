"""An edge that cannot serve, or cannot follow: what it says of itself, and how soon. Real processes and a database."""

from __future__ import annotations

import asyncio
import base64
import re
import resource
import shutil
import signal
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from common.db import certificates, edge_nodes, monitor_nodes
from common.db.certificates import Certificate
from common.db.edge_nodes import EdgeNode
from common.db.pool import Database
from common.secrets import Keyring, load_keyring
from tests.component.edge_process import EdgeProcess, real_edge
from tests.conftest import execute_at
from tests.integration.edge.test_role import DOMAIN, power
from tests.integration.replica.test_replicator import _forget_routes
from tests.tls_parts import the_ca
from tests.waiting import until, until_equal

PROMPTLY_SECONDS = 20.0  # on a busy machine; a second or two otherwise
_SMALL_FILE_BYTES = 16_384


@pytest.fixture
async def edge(tmp_path: Path, dsn: str, keyring: Keyring, database: Database) -> AsyncIterator[EdgeProcess]:
    """An edge to be started, with one domain."""
    await power(database, 1)
    with real_edge(tmp_path, workers=1, FRONTAGE_DATABASE_URL=dsn) as process:
        yield process


async def issue(database: Database, keyring: Keyring, domain: str = DOMAIN) -> None:
    """As a monitor with this key does."""
    chain, key = the_ca().issue(domain)
    now = datetime.now(UTC)
    sealed = keyring.seal(key, certificates.key_identity(domain))
    certificate = Certificate("internal", chain, sealed, now - timedelta(days=1), now + timedelta(days=1))
    async with database.transaction() as connection:
        await certificates.store(connection, domain, "app", certificate)


async def lease_when(database: Database, state: str) -> EdgeNode:
    async with database.connection() as connection:

        async def found() -> EdgeNode | None:
            nodes = [node for node, is_alive in await edge_nodes.list_nodes(connection) if is_alive]
            return nodes[0] if nodes and nodes[0].condition.state == state else None

        node = await until(found, state, seconds=PROMPTLY_SECONDS)
        assert node is not None
        return node


async def readiness(edge: EdgeProcess) -> tuple[int, dict[str, Any]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", edge.admin)
    writer.write(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    status = int((await reader.readline()).split()[1])
    writer.close()
    return status, await edge.admin_json("/readyz")


async def test_an_edge_whose_key_opens_no_certificate_is_not_ready(edge: EdgeProcess, database: Database) -> None:
    await edge.start()
    assert (await readiness(edge))[0] == 200

    others = load_keyring(edge.state_dir / "other.key", create=True)
    await issue(database, others)
    node = await lease_when(database, "unusable")
    assert "`frontage master-key export --role edge FILE`" in (node.condition.reason or "")
    status, ready = await readiness(edge)
    assert (status, ready["message"], ready["replica"]["state"]) == (503, "not ready", "unusable")
    assert "master.key" in ready["replica"]["reason"]


async def test_an_edge_started_with_another_key_never_becomes_ready(edge: EdgeProcess, database: Database) -> None:
    await issue(database, load_keyring(edge.state_dir / "master.key"))
    await edge.start()
    await lease_when(database, "serving")
    edge.end()
    (edge.state_dir / "master.key").unlink()
    load_keyring(edge.state_dir / "master.key", create=True)
    edge.launch()
    await lease_when(database, "unusable")
    assert (await readiness(edge))[0] == 503


async def test_an_edge_with_other_bytes_under_the_same_key_id_is_not_ready(
    edge: EdgeProcess, database: Database
) -> None:
    await issue(database, load_keyring(edge.state_dir / "master.key"))
    key_file = edge.state_dir / "master.key"
    key_id = key_file.read_text().split()[0]
    key_file.write_text(f"{key_id} {base64.b64encode(bytes(32)).decode()}\n")
    edge.launch()
    await lease_when(database, "unusable")
    assert (await readiness(edge))[0] == 503


async def handshakes(edge: EdgeProcess, domains: list[str]) -> int:
    """How many of these succeed."""
    context, succeeded = the_ca().client_context(), 0
    for domain in domains:
        with suppress(ssl.SSLError, ConnectionError):
            _, writer = await asyncio.open_connection("127.0.0.1", edge.https, ssl=context, server_hostname=domain)
            writer.close()
            succeeded += 1
    return succeeded


async def test_an_edge_that_cannot_open_its_keys_leaves_its_ports_closed_until_it_can(
    edge: EdgeProcess, database: Database
) -> None:
    key_file = edge.state_dir / "master.key"
    await issue(database, load_keyring(key_file))
    key_file.rename(edge.state_dir / "right.key")
    load_keyring(key_file, create=True)
    edge.launch()
    node = await lease_when(database, "unusable")
    assert "it is used at once" in (node.condition.reason or "")
    assert (await readiness(edge))[0] == 503
    for port in (edge.http, edge.https):
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)

    (edge.state_dir / "right.key").rename(key_file)
    await lease_when(database, "serving")
    await edge.workers_when(lambda workers: len(workers) == 1)
    assert (await readiness(edge))[0] == 200
    assert await handshakes(edge, [DOMAIN]) == 1


async def test_handshakes_that_failed_for_the_key_succeed_once_the_right_file_is_back(
    edge: EdgeProcess, database: Database
) -> None:
    key_file = edge.state_dir / "master.key"
    sealing = load_keyring(key_file)
    domains = [f"shop-{number}.example.com" for number in range(20)]
    for domain in domains:
        await issue(database, sealing, domain)
    await edge.start()
    assert await handshakes(edge, domains[:10]) == 10
    key_file.rename(edge.state_dir / "right.key")
    load_keyring(key_file, create=True)
    before = await edge.workers()
    edge.signal(signal.SIGHUP)
    await edge.workers_when(lambda workers: len(workers) == 1 and workers != before)

    async def succeeding() -> int:
        return await handshakes(edge, domains)

    # The worker before may still accept what waited in its queue.
    await until_equal(succeeding, 0, seconds=PROMPTLY_SECONDS)
    node = await lease_when(database, "unusable")
    assert node.unusable.count == 20
    status, ready = await readiness(edge)
    assert (status, ready["certificates"]["unusable"]) == (503, 20)

    (edge.state_dir / "right.key").rename(key_file)
    await lease_when(database, "serving")
    assert (await readiness(edge))[0] == 200
    assert await handshakes(edge, domains) == 20

    async def unusable() -> int:
        return (await lease_when(database, "serving")).unusable.count

    await until_equal(unusable, 0, seconds=PROMPTLY_SECONDS)


async def test_a_damaged_certificate_is_counted_and_the_edge_stays_ready(edge: EdgeProcess, database: Database) -> None:
    await issue(database, load_keyring(edge.state_dir / "master.key"))
    await issue(database, load_keyring(edge.state_dir / "other.key", create=True), "b.example.com")
    await issue(database, load_keyring(edge.state_dir / "master.key"), "zoo.example.com")
    async with database.transaction() as connection:
        await connection.execute(
            "update certificates b set private_key = a.private_key from certificates a"
            " where a.domain = $1 and b.domain = 'b.example.com'",
            DOMAIN,
        )
    await edge.start()
    assert await handshakes(edge, [DOMAIN, "b.example.com"]) == 1
    await edge.metrics_with("frontage_edge_unusable_certificates 1")

    async def is_reported() -> bool:
        return (await lease_when(database, "serving")).unusable.example == "b.example.com"

    await until(is_reported, seconds=PROMPTLY_SECONDS)
    assert (await readiness(edge))[0] == 200


async def test_an_edge_cut_off_from_the_database_is_not_ready_where_the_age_is_bounded(
    edge: EdgeProcess, database: Database, server_dsn: str, dsn: str
) -> None:
    await edge.start(FRONTAGE_EDGE_READY_MAX_AGE_SECONDS="5")
    assert (await readiness(edge))[0] == 200
    name = dsn.partition("?")[0].rpartition("/")[2]
    await execute_at(server_dsn, f'alter database "{name}" with allow_connections false')
    await execute_at(server_dsn, f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'")

    async def is_ready() -> bool:
        return (await readiness(edge))[0] == 200

    await until_equal(is_ready, False, seconds=PROMPTLY_SECONDS)
    assert len(await edge.workers()) == 1
    await execute_at(server_dsn, f'alter database "{name}" with allow_connections true')
    await until_equal(is_ready, True, seconds=PROMPTLY_SECONDS)


async def leases(database: Database) -> list[EdgeNode]:
    """Those that last."""
    async with database.connection() as connection:
        return [node for node, is_alive in await edge_nodes.list_nodes(connection) if is_alive]


async def test_an_edge_that_is_stopped_signs_off(edge: EdgeProcess, database: Database) -> None:
    await edge.start()
    await lease_when(database, "serving")
    edge.signal(signal.SIGTERM)
    assert await edge.ended() == 0
    async with database.connection() as connection:
        assert await edge_nodes.list_nodes(connection) == []


async def test_edges_with_one_node_id_are_told_apart_and_both_say_so(
    edge: EdgeProcess, database: Database, tmp_path_factory: pytest.TempPathFactory, dsn: str
) -> None:
    await edge.start()
    node_id = (await lease_when(database, "serving")).node_id
    edge.signal(signal.SIGTERM)
    await edge.ended()
    copied = tmp_path_factory.mktemp("copy") / "state"
    shutil.copytree(edge.state_dir, copied)
    with real_edge(copied, workers=1, FRONTAGE_DATABASE_URL=dsn) as copy:
        await asyncio.gather(edge.start(), copy.start())

        async def shared_ids() -> set[str | None]:
            return {each.shares_id_of for each in await leases(database)}

        await until_equal(shared_ids, {None, node_id}, seconds=PROMPTLY_SECONDS)
        first, second = await leases(database)
        assert first.label != second.label
        logs = edge.log() + copy.log()
        assert logs.count("another edge has this node id") == 1
        assert logs.count("another process has reported under this node id") == 2
        for each in (edge, copy):
            each.signal(signal.SIGTERM)
            await each.ended()
        assert await leases(database) == []


async def test_an_upgrade_or_a_killed_edge_is_no_second_holder_of_the_id(edge: EdgeProcess, database: Database) -> None:
    await edge.start()
    before = await edge.serving()
    edge.signal(signal.SIGUSR2)
    await edge.upgraded(before)
    edge.end()
    await edge.start()
    await edge.metrics_with("frontage_edge_replica_connected 1")
    (node,) = await leases(database)
    assert node.shares_id_of is None
    assert "node id" not in edge.log()


async def test_an_edge_with_a_full_disk_says_so_and_catches_up(edge: EdgeProcess, database: Database) -> None:
    await edge.start()
    await lease_when(database, "serving")
    supervisor = await edge.serving()
    no_limit = resource.RLIM_INFINITY
    resource.prlimit(supervisor, resource.RLIMIT_FSIZE, (_SMALL_FILE_BYTES, no_limit))
    await power(database, 2)
    node = await lease_when(database, "stuck")
    assert "free space on that disk" in (node.condition.reason or "")
    status, ready = await readiness(edge)
    assert (status, ready["message"]) == (200, "ready, with old routes")

    resource.prlimit(supervisor, resource.RLIMIT_FSIZE, (no_limit, no_limit))
    node = await lease_when(database, "serving")
    assert (await edge.admin_json("/readyz"))["message"] == "ready"


async def test_an_edge_that_holds_a_copy_says_so(edge: EdgeProcess, database: Database) -> None:
    await edge.start()
    await lease_when(database, "serving")
    async with database.connection() as connection:
        await _forget_routes(connection, 1)
        await connection.execute("notify frontage_changes")
    node = await lease_when(database, "held")
    assert "the database has lost 1 of 1 routes" in (node.condition.reason or "")
    status, ready = await readiness(edge)
    assert (status, ready["message"]) == (200, "ready, with old routes")


async def test_no_handshake_waits_for_an_order_while_no_monitor_runs(edge: EdgeProcess, database: Database) -> None:
    async with database.transaction() as connection:
        await monitor_nodes.report(connection, "monitor-1", "host", "internal 00", ())
    await edge.start()
    async with database.transaction() as connection:
        await connection.execute(
            "insert into orders (domain, application_id, state, hold_until, due_at)"
            " values ($1, 'app', 'running', now() + interval '1 hour', now())",
            DOMAIN,
        )
    context = ssl.create_default_context()
    began = time.monotonic()
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await asyncio.open_connection("127.0.0.1", edge.https, ssl=context, server_hostname=DOMAIN)
    assert time.monotonic() - began < PROMPTLY_SECONDS
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await asyncio.open_connection("127.0.0.1", edge.https, ssl=context, server_hostname=DOMAIN)
    await edge.metrics_with('frontage_edge_tls_failures_total{reason="unknown_name"} 2')
    held = re.search(r"^frontage_edge_tls_held_total (\d+)", await edge.metrics(), re.MULTILINE)
    assert held
    assert int(held[1]) <= 1, "that no monitor runs is known at the second one"
