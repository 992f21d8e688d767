"""What a stolen database login of an edge can change and hold up: its own lease, and nothing else."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from common.db import certificates, domains, edge_nodes, feed, locks, orders, ownership, roles, traffic
from common.db.edge_nodes import EdgeDescription, FailedUpgrade
from common.db.migrate import migrate
from common.db.migrations.steps import Step, find_steps
from common.db.pool import Database, open_pool
from common.db.session import Connection, open_session
from common.domain_settings import DomainSettings
from common.errors import OperatorError
from common.origin_faults import OriginIdentity
from common.postgres import EmbeddedPostgres
from common.traffic import FIGURES, TrafficKey, TrafficReport, add_up
from tests.conftest import execute_at
from tests.integration.replica.parts import add_routes
from tests.rows import add_application
from tests.timeouts import UNHURRIED
from tests.waiting import SECONDS

DOMAIN = "shop.customer.example"


@pytest.fixture
async def logins(dsn: str, database: Database) -> AsyncIterator[tuple[str, str]]:
    """The addresses of two edges' own logins."""
    names = [f"edge_{secrets.token_hex(6)}" for _ in range(2)]
    async with database.transaction() as connection:
        await roles.apply(connection, create=True)
        for name in names:
            await connection.execute(f"create role {name} login password 'x' in role {roles.group('edge')}")
    parts = urlsplit(dsn)
    address = parts.netloc.rpartition("@")[2]
    first, second = (urlunsplit(parts._replace(netloc=f"{name}:x@{address}")) for name in names)
    yield first, second
    async with database.connection() as connection:
        await connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where usename = any($1)", names
        )
        for name in names:
            await connection.execute(f"drop role {name}")


@pytest.fixture
async def honest(logins: tuple[str, str]) -> AsyncIterator[Connection]:
    session = await open_session(logins[0], "edge")
    yield session
    session.terminate()


@pytest.fixture
async def thief(logins: tuple[str, str]) -> AsyncIterator[Connection]:
    session = await open_session(logins[1], "thief")
    yield session
    session.terminate()


async def leases(database: Database) -> list[tuple[str, int, bool]]:
    async with database.connection() as connection:
        rows = await connection.fetch("select node_id, version, lease_until > now() as lasts from edge_nodes")
        return sorted((row["node_id"], row["version"], row["lasts"]) for row in rows)


async def test_an_edge_writes_and_ends_only_the_leases_of_its_own_login(
    database: Database, honest: Connection, thief: Connection
) -> None:
    await edge_nodes.report(honest, "node", "one", 7)
    await edge_nodes.report(thief, "node", "one", 3)
    assert await leases(database) == [("node", 3, True), ("node", 7, True)]
    await edge_nodes.end_lease(thief, "node")
    await edge_nodes.end_lease(thief, "node")
    assert await leases(database) == [("node", 7, True)]
    for statement in (
        "select node_id from edge_nodes",
        "delete from edge_nodes",
        "update edge_nodes set version = 0",
        "insert into edge_nodes (node_id, feed_identity, version, lease_until) values ('n', '', 0, now())",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await thief.execute(statement)


async def test_an_edge_describes_only_the_leases_of_its_own_login(
    database: Database, honest: Connection, thief: Connection
) -> None:
    await edge_nodes.report(honest, "node", "one", 7, description=EdgeDescription("1.0"))
    failed = FailedUpgrade(datetime.now(UTC), "\x1b[2Jgone" + "x" * 5000)
    async with database.connection() as connection:
        ((node, _),) = await edge_nodes.list_nodes(connection)
        assert node.description == EdgeDescription("1.0")
        await edge_nodes.report(thief, "node", "one", 7, description=EdgeDescription("2.0"))
        await edge_nodes.report(thief, "other", "one", 7, description=EdgeDescription("9" * 5000, None, failed))
        rows = await connection.fetch("select software_version from edge_nodes where node_id = 'node' order by 1")
        assert [row["software_version"] for row in rows] == ["1.0", "2.0"]  # of each login its own
        described = {node.node_id: node.description for node, _ in await edge_nodes.list_nodes(connection)}
    shown = described["other"].failed_upgrade
    assert shown is not None
    assert len(described["other"].software_version) == 100
    assert shown.reason.startswith(" [2Jgone")
    assert len(shown.reason) == 1000


async def test_a_report_lasts_a_moment_and_is_brought_into_form(database: Database, thief: Connection) -> None:
    report = (
        "select renew_edge_lease('node', '', true, jsonb_build_object('identity', 'one', 'version', 7, 'seconds',"
        " $1::float8, 'state', 'serving', 'reason', $2::text, 'host', 'host', 'failing_origins', $3::jsonb), false)"
    )
    await thief.execute(report, float("inf"), "\x1b[2Jgone" + "x" * 5000, [{"origin": 1}, 2])
    async with database.connection() as connection:
        row = await connection.fetchrow("select lease_until < now() + interval '61 s' as ends, reason from edge_nodes")
        assert row is not None
        assert row["ends"]
        assert row["reason"].startswith(" [2Jgone")
        assert len(row["reason"]) == 1000
        origin = OriginIdentity("http", "origin.test", 80, "origin.test", True)
        assert await edge_nodes.find_unreached(connection, origin) == []
    for failing in cast("tuple[Any, ...]", ({}, ["x" * 200_000])):
        with pytest.raises(asyncpg.CheckViolationError):
            await thief.execute(report, 1.0, None, failing)
    with pytest.raises(asyncpg.CheckViolationError, match="too many edges"):
        await thief.execute(
            """select renew_edge_lease('n' || n, '', true, '{"identity": "", "version": 0, "state": "serving"}', false)
            from generate_series(1, 1000) n"""
        )


async def test_a_login_fills_no_more_than_its_rows_of_traffic(database: Database, thief: Connection) -> None:
    async with database.transaction() as connection:
        await add_application(connection)
        await add_routes(connection, [f"name-{number}.example" for number in range(2500)])
    now = datetime.now(UTC)
    for first in range(0, 2500, 500):
        entries = [["app", f"name-{number}.example", [1] * FIGURES] for number in range(first, first + 500)]
        await thief.execute("select report_traffic($1, $2)", now, entries)
    async with database.connection() as connection:
        rows = await connection.fetch("select minutes, count(*) from traffic group by minutes order by minutes")
        assert [tuple(row) for row in rows] == [(5, 2000), (60, 2500)]
    with pytest.raises(asyncpg.CheckViolationError):
        await thief.execute("select report_traffic($1, $2)", now, [["app", "", []]] * 1001)
    for statement in ("select counts from traffic", "delete from traffic", "select rows from traffic_reports"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await thief.execute(statement)


async def test_traffic_is_of_the_present_and_of_domains_that_are_enrolled(
    database: Database, honest: Connection, thief: Connection
) -> None:
    async with database.transaction() as connection:
        await add_application(connection)
        await add_application(connection, "other")
        await add_routes(connection, [DOMAIN])
    report, now = TrafficReport(), datetime.now(UTC)
    counts = [1, *[2] * (FIGURES - 1)]
    report.add(TrafficKey("app", DOMAIN), counts)
    report.add(TrafficKey("other", DOMAIN), counts)
    report.add(TrafficKey("nobody", ""), counts)
    report.add(TrafficKey("app", "foreign.example"), counts)
    await honest.execute("select report_traffic($1, $2)", now, [["app", DOMAIN, [0] * 20]])  # of a version before
    await traffic.write_report(honest, now, report)
    await traffic.write_report(honest, now - timedelta(days=5000), report)
    await traffic.write_report(thief, now + timedelta(days=5000), report)
    async with database.connection() as connection:
        applications = await connection.fetch("select distinct application_id, domain from traffic")
        assert [tuple(row) for row in applications] == [("app", DOMAIN)]
        points = await traffic.list_points(connection, "app", DOMAIN, 60, timedelta(hours=2))
        assert add_up(point.counts for point in points) == [3, *[6] * (FIGURES - 1)]
        assert {len(row["counts"]) for row in await connection.fetch("select counts from traffic")} == {20}


async def test_an_edge_makes_nothing_of_its_own(thief: Connection) -> None:
    for statement in (
        "create temporary table filled (n int)",
        "create table filled (n int)",
        "select lo_create(0)",
        "select lo_from_bytea(0, 'x')",
        "select pg_logical_emit_message(false, 'x', 'x')",
        "select from lock_slots for update",
        "select lock_slots.slot from lock_slots",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await thief.execute(statement)


async def test_no_work_waits_for_a_lock_that_an_edge_can_hold(database: Database, thief: Connection) -> None:
    async with database.transaction() as connection:
        await add_application(connection)
    names = [DOMAIN, "moves", "redirects", "ca-ledger/internal", "frontage_changes"]
    await thief.execute("select pg_advisory_lock(hashtextextended(name, 0)) from unnest($1::text[]) name", names)
    await thief.execute("select pg_advisory_lock($1)", 0x46524F4E54524F4C)
    async with database.transaction() as connection:
        await connection.execute("set local lock_timeout = '500ms'")
        await domains.lock_redirects(connection)
        await domains.power(connection, DOMAIN, "app", DomainSettings("https://origin.example"))
        assert await ownership.revoke_ownership(connection, DOMAIN, "app", "released")
        await locks.hold(connection, "ca_ledger", "internal")
        await roles.apply(connection, create=False)


async def test_names_are_locked_together_without_deadlock(database: Database) -> None:
    names = [f"name-{number}.example" for number in range(200)]

    async def hold(order: list[str]) -> None:
        async with database.transaction() as connection:
            await locks.hold(connection, "domain", *order)

    async with asyncio.timeout(SECONDS):
        await asyncio.gather(*(hold(names[turn:] + names[:turn]) for turn in range(0, 200, 25)))
    async with database.transaction() as connection, database.transaction() as other:
        await certificates.lock_domain(connection, names[0])
        await other.execute("set local lock_timeout = '20ms'")
        with pytest.raises(asyncpg.LockNotAvailableError):
            await certificates.lock_domain(other, names[0])
        await other.execute("rollback")


async def fill_queue(connection: Connection) -> None:
    for number in range(200):
        await connection.execute("select pg_notify('nothing', repeat('x', 7000) || $1)", str(number))


async def test_no_commit_fails_because_an_edge_has_filled_the_queue_of_notifications(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path)
    try:
        await execute_at(server.start(), "alter system set max_notify_queue_pages = 64")  # the least
        server.stop()
        dsn = server.start()
        await migrate(dsn)
        async with open_pool(dsn, size=2, application_name="test", timeouts=UNHURRIED) as database:
            thief = await open_session(dsn, "thief", UNHURRIED)
            await thief.execute("listen nothing")
            await thief.execute("begin")  # nothing that is sent from now on can be forgotten
            other = await open_session(dsn, "thief", UNHURRIED)
            with pytest.raises(asyncpg.PostgresError, match="too many notifications"):
                await fill_queue(other)
            async with database.transaction() as connection:
                await add_application(connection)
                await domains.power(connection, DOMAIN, "app", DomainSettings("https://origin.example"))
                await orders.request_recheck(connection, DOMAIN)
                await feed.wake_listeners(connection)
            thief.terminate()
            other.terminate()
    finally:
        server.stop()


async def test_a_migration_names_the_session_that_holds_its_lock_and_gives_up(
    dsn: str, database: Database, thief: Connection
) -> None:
    await thief.execute("select pg_advisory_lock($1)", 0x46524F4E54414745)
    waits: list[str] = []
    with pytest.raises(OperatorError, match=r"session \d+ of the login edge_\w+ .*pg_terminate_backend"):
        await migrate(dsn, on_wait=waits.append, give_up_seconds=0.5)
    assert [words.partition(" of ")[0] for words in waits] == [f"waiting for session {thief.get_server_pid()}"]
    await thief.execute("select pg_advisory_unlock_all()")
    await migrate(dsn)


async def test_a_migration_names_the_session_that_keeps_a_table_and_gives_up(
    dsn: str, database: Database, thief: Connection, tmp_path: Path
) -> None:
    script = tmp_path / "9000_wider.sql"
    script.write_text("alter table feed_shards add column note text")
    steps = [*find_steps(), Step("9000", script)]
    async with database.transaction() as connection:
        await connection.execute("grant select on feed_shards to public")
    async with thief.transaction():
        await thief.fetch("select * from feed_shards")
        with pytest.raises(OperatorError, match=r"session \d+ of the login edge_\w+ .*kept the migration waiting"):
            await migrate(dsn, steps=steps, give_up_seconds=0.5)
    await migrate(dsn, steps=steps)
