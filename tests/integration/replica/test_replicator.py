"""The replicator at work: changes heard and unheard, no Postgres, a restored one, leases, and copies that are held."""

from __future__ import annotations

import asyncio
import signal
import sys
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from common.db import edge_nodes
from common.db.feed import read_head
from common.db.pool import Connection, Database
from common.errors import OperatorError
from edge.replica.directory import replica_path
from edge.replica.reader import ReplicaReader
from tests.rows import add_application
from tests.waiting import until, until_equal

from . import dying, parts
from .parts import add_routes, assert_equal, make_replicator, running

ROOT = Path(__file__).resolve().parents[3]
NOWHERE = "postgresql://nobody@127.0.0.1:1/nothing"


@pytest.fixture
async def shop(database: Database) -> Database:
    """A database with twenty routes, at version 21: each commit that publishes has one."""
    async with database.connection() as connection:
        await add_application(connection)
        for number in range(20):
            await add_routes(connection, [f"d{number}.example"])
    return database


async def cut_connections(connection: Connection) -> int:
    """End every session of the replicator; how many there were."""
    rows = await connection.fetch(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where datname = current_database() and application_name like 'frontage edge%'"
    )
    return len(rows)


async def test_committed_change_is_applied_and_reported_at_once(shop: Database, dsn: str, tmp_path: Path) -> None:
    applied: list[int] = []
    replicator = make_replicator(dsn, tmp_path, applied=applied)
    async with running(replicator), shop.connection() as connection:
        await until(lambda: replicator.version == 21 and replicator.connected, "the first copy")
        await add_routes(connection, ["new.example"])
        await until(lambda: applied[-1:] == [22], "the change")
        head = await assert_equal(replicator, connection)
        await _until_live(connection, 22)
        assert await connection.fetchval("select feed_identity from edge_nodes") == head.identity
        assert replicator.store.reader().get("route", "power/new.example") == {
            "domain": "new.example",
            "product": "power",
            "application_id": "app",
            "application_url": "https://origin.example/",
            "root_path_access": None,
            "redirect_to": None,
        }
        assert replicator.age_seconds is not None
    async with shop.connection() as connection:
        assert await connection.fetchval("select count(*) from edge_nodes") == 0  # the lease was ended


async def test_change_nobody_heard_of_arrives_with_the_next_connection(
    shop: Database, dsn: str, tmp_path: Path
) -> None:
    is_reachable = True
    replicator = make_replicator(lambda: dsn if is_reachable else NOWHERE, tmp_path)  # never polls
    async with running(replicator), shop.connection() as connection:
        await until(lambda: replicator.version == 21 and replicator.connected, "the first copy")
        is_reachable = False
        assert await cut_connections(connection) >= 1
        await until(lambda: not replicator.connected, "the cut")
        await add_routes(connection, ["unheard.example"])
        assert replicator.version == 21
        is_reachable = True
        await until(lambda: replicator.version == 22 and replicator.connected, "the unheard change")
        await assert_equal(replicator, connection)


async def test_slow_poll_finds_what_notifications_did_not_tell(shop: Database, dsn: str, tmp_path: Path) -> None:
    replicator = make_replicator(dsn, tmp_path, poll_seconds=0.05)
    async with running(replicator), shop.connection() as connection:
        await until(lambda: replicator.version == 21 and replicator.connected, "the first copy")
        async with connection.transaction():
            await connection.execute("set local session_replication_role = replica")  # no triggers, so no word
            await connection.execute("update feed_shards set version = version + 1 where shard = 0")
        await until(lambda: replicator.version == 22, "the poll")


async def test_writers_and_cut_connections_in_any_order_end_equal(shop: Database, dsn: str, tmp_path: Path) -> None:
    random = Random(7)
    replicator = make_replicator(dsn, tmp_path)

    async def write(name: str) -> None:
        async with shop.connection() as connection:
            for number in range(60):
                await connection.execute(
                    random.choice(
                        [
                            "update domains set application_url = $1 where domain = 'd1.example'",
                            "update domains set domain = $1 || '.moved.example' where domain = (select min(domain)"
                            " from domains where domain like 'd%')",
                            "insert into domains (domain, product, application_id) values ($1 || '.new.example',"
                            " 'power', 'app')",
                            "delete from domains where domain < $1",
                        ]
                    ),
                    f"{name}-{number}",
                )

    async def cut() -> None:
        async with shop.connection() as connection:
            for _ in range(6):
                await until(lambda: replicator.connected, "being connected")
                await cut_connections(connection)

    async with running(replicator), shop.connection() as connection:
        await asyncio.gather(write("a"), write("b"), cut())
        head = await read_head(connection)
        await until(lambda: replicator.version == head.version, "the last change")
        await assert_equal(replicator, connection)


async def test_restarted_without_postgres_it_serves_all_it_knew(shop: Database, dsn: str, tmp_path: Path) -> None:
    replicator = make_replicator(dsn, tmp_path)
    async with running(replicator):
        await until(lambda: replicator.version == 21, "the first copy")
    without = make_replicator(_no_database, tmp_path)
    async with running(without):
        assert without.version == 21
        assert (without.connected, without.age_seconds) == (False, None)
        reader = without.store.reader()
        assert all(reader.get("route", f"power/d{number}.example") for number in range(20))


async def test_readers_know_that_nothing_is_heard_once_the_lease_has_lapsed(
    shop: Database, dsn: str, tmp_path: Path
) -> None:
    where = [dsn]
    replicator = make_replicator(lambda: where[0], tmp_path)
    reader = replicator.store.reader()
    async with running(replicator), shop.connection() as connection:
        await until(lambda: replicator.version == 21, "the first copy")
        await _until_live(connection, 21)
        assert not reader.is_cut_off()
        where[0] = NOWHERE
        await cut_connections(connection)
        await until(reader.is_cut_off, "cut off")
    again = make_replicator(lambda: where[0], tmp_path)
    reader = again.store.reader()
    assert reader.is_cut_off()
    async with running(again):
        where[0] = dsn
        await until(lambda: not reader.is_cut_off(), "back")


async def test_readers_know_of_a_lost_connection_before_the_lease_has_lapsed(
    shop: Database, dsn: str, tmp_path: Path
) -> None:
    """A database that restarts within a lease: what is enrolled then is visited before the edge follows again."""
    where = [dsn]
    replicator = make_replicator(lambda: where[0], tmp_path, lease_seconds=3600.0)
    reader = replicator.store.reader()
    async with running(replicator), shop.connection() as connection:
        await until(lambda: replicator.version == 21, "the first copy")
        await until(lambda: not reader.is_cut_off(), "following")
        where[0] = NOWHERE
        await cut_connections(connection)
        await until(reader.is_cut_off, "cut off")
        where[0] = dsn
        await until(lambda: not reader.is_cut_off(), "back")


async def test_readers_know_that_the_replica_is_behind_until_it_has_caught_up(
    shop: Database, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = [dsn]
    replicator = make_replicator(lambda: where[0], tmp_path)
    reader = replicator.store.reader()
    caught_up = replicator.catch_up
    may_catch_up = asyncio.Event()
    may_catch_up.set()

    async def catch_up() -> None:
        await may_catch_up.wait()
        await caught_up()

    monkeypatch.setattr(replicator, "catch_up", catch_up)
    async with running(replicator), shop.connection() as connection:
        await until(lambda: replicator.version == 21, "the first copy")
        await _until_live(connection, 21)
        where[0] = NOWHERE
        await cut_connections(connection)
        await until(reader.is_cut_off, "cut off")
        await add_routes(connection, ["new.example"])
        may_catch_up.clear()
        where[0] = dsn
        leases: set[Any] = set()
        while len(leases) < 4:  # renewed once a second, and published twice a second
            leases.add(await connection.fetchval("select lease_until from edge_nodes"))
            assert reader.is_cut_off()
        may_catch_up.set()
        await until(lambda: not reader.is_cut_off(), "back")
        assert reader.get("route", "power/new.example")


async def test_readers_are_cut_off_between_one_writer_and_the_next(shop: Database, dsn: str, tmp_path: Path) -> None:
    first = make_replicator(dsn, tmp_path)
    async with running(first):
        await until(lambda: first.version == 21, "the first copy")
    second = make_replicator(dsn, tmp_path)
    reader = second.store.reader()
    assert reader.is_cut_off()
    async with running(second):
        await until(lambda: not reader.is_cut_off(), "the second writer has caught up")


async def test_without_replica_and_database_the_operator_is_told(tmp_path: Path) -> None:
    replicator = make_replicator(_no_database, tmp_path)
    try:
        with pytest.raises(OperatorError, match="no database"):
            await replicator.run()
    finally:
        replicator.close()


async def test_schema_that_is_missing_is_for_the_operator(server_dsn: str, tmp_path: Path) -> None:
    replicator = make_replicator(server_dsn, tmp_path)
    try:
        with pytest.raises(OperatorError, match="frontage migrate"):
            await replicator.run()
    finally:
        replicator.close()


async def described_as(shop: Database, held_copy_at: datetime | None) -> bool:
    async with shop.connection() as connection:
        ((node, _),) = await edge_nodes.list_nodes(connection)
    return node.description.held_copy_at == held_copy_at


async def test_mass_removal_is_held_until_an_operator_accepts_it(shop: Database, dsn: str, tmp_path: Path) -> None:
    replicator = make_replicator(dsn, tmp_path)
    async with running(replicator), shop.connection() as connection:
        await until(lambda: replicator.version == 21, "the first copy")
        await _forget_routes(connection, 2)
        replicator.wake()
        await until(lambda: replicator.held_copy is not None, "the guard")
        held = replicator.held_copy
        assert held is not None
        assert (held.routes, held.removed_routes, replicator.version) == (20, 2, 21)
        assert abs(datetime.now(UTC) - held.held_at) < timedelta(minutes=1)
        assert replicator.store.reader().get("route", "power/d0.example") is not None
        await until(partial(edge_nodes.nodes_behind, connection, held.identity, held.version))
        reader = replicator.store.reader()
        await until(lambda: described_as(shop, held.held_at), "the lease shows since when")
        await until(reader.is_cut_off, "cut off from what is held")
        assert replicator.accept_held_copy()
        await until(lambda: replicator.held_copy is None, "acceptance")
        await until(lambda: not reader.is_cut_off(), "serving what was held")
        await until(lambda: described_as(shop, None), "the lease shows that none is held")
        await assert_equal(replicator, connection)
        assert not replicator.accept_held_copy()


async def test_held_copy_is_forgotten_when_the_database_comes_back(shop: Database, dsn: str, tmp_path: Path) -> None:
    replicator = make_replicator(dsn, tmp_path)
    async with running(replicator), shop.connection() as connection:
        await until(lambda: replicator.version == 21, "the first copy")
        await _forget_routes(connection, 20)
        replicator.wake()
        await until(lambda: replicator.held_copy is not None, "the guard")
        async with connection.transaction():
            await connection.execute("set local session_replication_role = replica")
            await connection.execute("insert into domains select * from kept_domains")
            for table in ("changes", "feed_shards"):
                await connection.execute(f"delete from {table}; insert into {table} select * from kept_{table}")
        replicator.wake()
        await until(lambda: replicator.held_copy is None, "the database's return")
        await assert_equal(replicator, connection)


async def test_removal_of_few_routes_by_a_copy_is_not_held(shop: Database, dsn: str, tmp_path: Path) -> None:
    replicator = make_replicator(dsn, tmp_path)
    async with running(replicator), shop.connection() as connection:
        await until(lambda: replicator.version == 21, "the first copy")
        await _forget_routes(connection, 1)
        replicator.wake()
        await until(lambda: replicator.version == 20, "the copy")
        await assert_equal(replicator, connection)


async def test_feed_that_is_wrong_about_its_tables_is_followed_all_the_same(
    shop: Database, dsn: str, tmp_path: Path
) -> None:
    async with shop.connection() as connection:
        async with connection.transaction():
            await connection.execute("set local session_replication_role = replica")
            await connection.execute("delete from domains where domain = 'd0.example'")
        replicator = make_replicator(dsn, tmp_path)
        async with running(replicator):
            await until(lambda: replicator.version == 21, "the first copy")
            assert replicator.store.state.skew != 0
            await add_routes(connection, ["new.example"])
            await until(lambda: replicator.version == 22, "a change")
            assert parts.replica_contents(replicator) == await parts.feed_contents(connection)


async def test_one_writer_a_state_directory(tmp_path: Path) -> None:
    replicator = make_replicator(NOWHERE, tmp_path)
    try:
        with pytest.raises(OperatorError, match="another edge"):
            make_replicator(NOWHERE, tmp_path)
    finally:
        replicator.close()
    make_replicator(NOWHERE, tmp_path).close()


def test_other_format_and_damage_are_for_the_operator(tmp_path: Path) -> None:
    make_replicator(NOWHERE, tmp_path).close()
    path = replica_path(tmp_path)
    (path / "format").write_text("9\n")
    with pytest.raises(OperatorError, match="format 9"):
        make_replicator(NOWHERE, tmp_path)
    (path / "format").write_text("1\n")
    (path / "data.mdb").write_bytes(b"not LMDB at all" * 1000)
    with pytest.raises(OperatorError, match="move it away"):
        make_replicator(NOWHERE, tmp_path)


def test_reader_before_any_writer_is_for_the_operator(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="no replica"):
        ReplicaReader(replica_path(tmp_path))


@pytest.mark.parametrize("moment", dying.MOMENTS)
async def test_killed_in_the_middle_of_a_write_it_ends_equal(
    shop: Database, dsn: str, tmp_path: Path, moment: str
) -> None:
    async with shop.connection() as connection:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", dying.__name__, dsn, str(tmp_path), moment, cwd=ROOT
        )
        try:
            assert await asyncio.wait_for(process.wait(), 60) == -signal.SIGKILL
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        replicator = make_replicator(dsn, tmp_path)
        assert replicator.store.state.checksum == parts.checksum(parts.replica_contents(replicator))
        async with running(replicator):
            head = await read_head(connection)
            await until(lambda: replicator.version == head.version, "following on")
            await assert_equal(replicator, connection)


async def test_worker_that_was_killed_pins_no_pages(tmp_path: Path) -> None:
    replicator = make_replicator(NOWHERE, tmp_path)
    try:
        script = (
            "import sys; from edge.replica.reader import ReplicaReader; from pathlib import Path\n"
            "reader = ReplicaReader(Path(sys.argv[1])); reading = reader._environment.begin()\n"
            "print(flush=True); sys.stdin.read()"
        )
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            script,
            str(replica_path(tmp_path)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=ROOT,
        )
        try:
            assert process.stdout is not None
            await asyncio.wait_for(process.stdout.readline(), 20)
            assert str(process.pid) in replicator.store.environment.readers()
        finally:
            process.send_signal(signal.SIGKILL)
            await process.communicate()
        replicator.check_readers()
        assert str(process.pid) not in replicator.store.environment.readers()
    finally:
        replicator.close()


def _no_database() -> str:
    raise OperatorError("no database")


async def _until_live(connection: Connection, version: int) -> None:
    await until_equal(lambda: connection.fetchval("select version from edge_nodes"), version)


async def _forget_routes(connection: Connection, count: int) -> None:
    """As if restored from a time before those routes: what was forgotten is kept in temporary tables of the session."""
    await connection.execute(
        f"create temp table kept_domains as select * from domains order by domain limit {count:d};"
        "create temp table kept_changes as select * from changes;"
        "create temp table kept_feed_shards as select * from feed_shards"
    )
    names = [row["domain"] for row in await connection.fetch("select domain from kept_domains")]
    async with connection.transaction():
        await connection.execute("set local session_replication_role = replica")
        await connection.execute("delete from domains where domain = any($1::text[])", names)
        forgotten = await connection.fetch(
            "delete from changes where key = any($1::text[]) returning shard", [f"power/{name}" for name in names]
        )
        await connection.execute(
            "update feed_shards set version = version - (select count(*) from unnest($1::smallint[]) each"
            " where each = shard), checksum ="
            " (select coalesce(bit_xor(digest), 0) from changes where changes.shard = feed_shards.shard)",
            [row["shard"] for row in forgotten],
        )


async def test_what_a_disk_has_changed_is_found_and_copied_afresh(shop: Database, dsn: str, tmp_path: Path) -> None:
    replicator = make_replicator(dsn, tmp_path, proof_seconds=0.01)
    store = replicator.store
    async with running(replicator), shop.connection() as connection:
        await until(lambda: replicator.proof_age_seconds is not None, "the first proof")
        await add_routes(connection, ["a.example", "z.example"])  # before and behind what is being read
        await until(lambda: replicator.version == 22, "the change")
        assert replicator.damages == 0
        with store.environment.begin(write=True, db=store.copies[store.state.serving]) as transaction:
            transaction.put(b"route/power/d7.example", b'{"domain": "d7.example"}')
        await until(lambda: replicator.damages == 1, "the proof fails")
        await until(lambda: replicator.proof_age_seconds is not None and not replicator._is_damaged, "the copy")
        await assert_equal(replicator, connection)
