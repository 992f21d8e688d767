"""The change feed's triggers and readings: versions in order, only for what edges must know, and no deadlocks."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from random import Random

import asyncpg
import pytest

from common.db import feed
from common.db.pool import Connection, Database
from common.db.session import open_session
from tests.integration.replica.parts import add_routes, checksum, feed_contents
from tests.rows import add_application
from tests.waiting import let_run


async def changes_after(connection: Connection, positions: tuple[int, ...]) -> list[feed.FeedEntry]:
    async with feed.open_snapshot(connection) as snapshot:
        return [entry async for entries in snapshot.changes(positions) for entry in entries]


async def version_of(connection: Connection) -> int:
    return (await feed.read_head(connection)).version


async def positions_of(connection: Connection) -> tuple[int, ...]:
    return (await feed.read_head(connection)).positions


async def test_digests_are_the_same_in_sql_and_here(database: Database) -> None:
    async with database.transaction() as connection:
        await add_application(connection, "päö")
    async with database.connection() as connection:
        rows = await connection.fetch(
            "select kind, key, digest, e.content::text as content from changes join feed_entries e using (kind, key)"
        )
        assert [feed.digest(row["kind"], row["key"], row["content"]) for row in rows] == [row["digest"] for row in rows]
        assert (await feed.read_head(connection)).checksum == checksum(await feed_contents(connection)) != 0


async def test_a_fresh_session_reads_the_version_in_one_question(dsn: str) -> None:
    """For a type that it does not know, the driver asks the catalogue first: 10 ms, in each session of each pool."""
    session, asked = await open_session(dsn, "test"), []
    try:
        with session.query_logger(lambda record: asked.append(record.query)):
            identity, version = await feed.read_version(session)
            await let_run()  # the driver logs in the loop's next turn
        assert len(asked) == 1
        head = await feed.read_head(session)
        assert (identity, version) == (head.identity, head.version)
    finally:
        session.terminate()


async def test_rename_tombstones_the_old_key(database: Database) -> None:
    async with database.connection() as connection:
        await add_application(connection)
        await add_routes(connection, ["old.example"])
        before = await positions_of(connection)
        await connection.execute("update domains set domain = 'new.example'")
        entries = await changes_after(connection, before)
        assert {entry.key: entry.content is None for entry in entries} == {
            "power/new.example": False,
            "power/old.example": True,
        }


async def test_what_edges_need_not_know_costs_neither_version_nor_the_feeds_lock(database: Database) -> None:
    async with database.connection() as connection:
        await add_application(connection)
        await connection.execute(
            "insert into orders (domain, application_id, hold_until) values ('a.example', 'app', now())"
        )
        before = await version_of(connection)
        async with database.transaction() as holder:
            await holder.execute("select from feed_shards for update")
            await connection.execute("update orders set attempts = attempts + 1, lease_until = now()")
            await connection.execute("update applications set name = 'another'")
        assert await version_of(connection) == before


async def test_change_and_back_in_one_transaction_costs_no_version(database: Database) -> None:
    async with database.connection() as connection:
        await add_application(connection)
        await add_routes(connection, ["a.example"])
        before = await version_of(connection)
        async with connection.transaction():
            await connection.execute("delete from domains")
            await add_routes(connection, ["a.example"])
        assert await version_of(connection) == before


async def test_commit_that_publishes_much_costs_one_version(database: Database) -> None:
    async with database.connection() as connection:
        await add_application(connection)
        before = await feed.read_head(connection)
        async with connection.transaction():
            await add_routes(connection, ["a.example", "b.example"])
            await connection.execute(
                "insert into orders (domain, application_id, hold_until) values ('a.example', 'app', now())"
            )
        after = await feed.read_head(connection)
        assert after.version == before.version + 1
        assert len(await changes_after(connection, before.positions)) == 3
        assert after.checksum == checksum(await feed_contents(connection))


async def test_each_commit_that_publishes_has_a_version_of_its_own(database: Database) -> None:
    """Even when it takes a shard that its own transaction purged, or one that another transaction of its id wrote, on a
    server that the feed was restored from.
    """
    async with database.connection() as connection:
        await add_application(connection)
        await add_routes(connection, ["a.example"])
        before = await feed.read_head(connection)
        async with connection.transaction():
            await connection.execute("update feed_shards set purged_version = purged_version")
            await add_routes(connection, ["b.example"])
        purged = await feed.read_head(connection)
        assert [entry.key for entry in await changes_after(connection, before.positions)] == ["power/b.example"]
        next_ids = "update feed_shards set published_by = ((pg_current_xact_id()::text::bigint + 1)::text)::xid8"
        await connection.execute(next_ids)
        await add_routes(connection, ["c.example"])
        assert [entry.key for entry in await changes_after(connection, purged.positions)] == ["power/c.example"]
        assert (await feed.read_head(connection)).version == before.version + 2


async def test_savepoint_that_is_rolled_back_takes_no_change_with_it(database: Database) -> None:
    async with database.connection() as connection:
        await add_application(connection)
        await add_routes(connection, ["a.example", "b.example"])
        before = await positions_of(connection)
        async with connection.transaction():
            await connection.execute("set constraints all immediate")
            savepoint = connection.transaction()
            await savepoint.start()
            await connection.execute("update domains set redirect_to = 'x' where domain = 'a.example'")
            await savepoint.rollback()
            await connection.execute("update domains set redirect_to = 'y' where domain = 'b.example'")
        assert [entry.key for entry in await changes_after(connection, before)] == ["power/b.example"]
        assert (await feed.read_head(connection)).checksum == checksum(await feed_contents(connection))


async def test_released_certificate_gives_way_to_anothers_in_one_transaction(database: Database) -> None:
    async with database.connection() as connection:
        for application in ("app", "other"):
            await add_application(connection, application)
        insert = (
            "insert into certificates (domain, application_id, issuer, chain, private_key, not_before, not_after)"
            " values ('a.example', $1, 'internal', $1, '', now(), now())"
        )
        await connection.execute(insert, "app")
        async with connection.transaction():
            await connection.execute("update certificates set released_at = now()")
            await connection.execute(insert, "other")
        assert '"chain": "other"' in (await feed_contents(connection))["certificate/a.example"]
        assert (await feed.read_head(connection)).checksum == checksum(await feed_contents(connection))


async def test_truncate_is_refused(database: Database) -> None:
    async with database.connection() as connection:
        with pytest.raises(asyncpg.RaiseError, match="use DELETE"):
            await connection.execute("truncate domains")


async def test_purge_remembers_how_far_it_went(database: Database) -> None:
    async with database.connection() as connection:
        await add_application(connection)
        await add_routes(connection, ["a.example", "b.example"])
        await connection.execute("delete from domains where domain = 'a.example'")
        async with connection.transaction():
            assert await feed.purge_tombstones(connection) == 0  # not for days
            assert await feed.purge_tombstones(connection, older_than=timedelta(0)) == 1
        head = await feed.read_head(connection)
        assert sorted(set(head.purged)) == [0, 1]
        assert all(purged in {0, position} for purged, position in zip(head.purged, head.positions, strict=True))


async def test_snapshot_is_one_moment(database: Database) -> None:
    async with database.connection() as connection, database.connection() as other:
        await add_application(connection)
        async with feed.open_snapshot(connection) as snapshot:
            await add_routes(other, ["late.example"])
            seen = [entry.key async for entries in snapshot.everything() for entry in entries]
            assert (seen, snapshot.head.version) == (["app"], 1)
            assert [entry.key async for entries in snapshot.changes(()) for entry in entries] == ["app"]


async def test_large_feeds_come_in_batches(database: Database) -> None:
    domains = [f"d{number}.example" for number in range(4100)]
    async with database.connection() as connection:
        await add_application(connection)
        for start in range(0, len(domains), 1025):
            await add_routes(connection, domains[start : start + 1025])
        async with feed.open_snapshot(connection) as snapshot:
            everything = [len(entries) async for entries in snapshot.everything()]
            changes = [len(entries) async for entries in snapshot.changes(())]
    assert everything == changes == [2000, 2000, 101]


async def test_concurrent_writers_neither_deadlock_nor_hide_a_version(database: Database) -> None:
    """Writers touch the same rows and the feed; a reader that only ever asks for what is new must see all of it."""
    async with database.connection() as connection:
        await add_application(connection)
        await add_routes(connection, [f"d{number}.example" for number in range(8)])
    is_over = False
    seen: dict[str, str | None] = {}

    async def follow() -> None:
        positions: tuple[int, ...] = ()
        async with database.connection() as connection:
            while True:
                last = is_over
                async with feed.open_snapshot(connection) as snapshot:
                    async for entries in snapshot.changes(positions):
                        seen.update({f"{kind}/{key}": content for kind, key, content, _ in entries})
                    positions = snapshot.head.positions
                if last:
                    return

    async def write(random: Random) -> None:
        for _ in range(40):
            # In one order, as any program must: rows lock rows. The feed's lock comes after all of them.
            domains = sorted(random.sample(range(8), 3))
            async with database.transaction() as connection:
                for number in domains:
                    await connection.execute(
                        "update domains set application_url = $2 where domain = $1",
                        f"d{number}.example",
                        f"https://{random.random()}.example/",
                    )

    reader = asyncio.create_task(follow())
    async with asyncio.TaskGroup() as writers:
        for seed in range(5):
            writers.create_task(write(Random(seed)))
    is_over = True
    await reader
    async with database.connection() as connection:
        assert seen == await feed_contents(connection)
        assert (await feed.read_head(connection)).checksum == checksum(await feed_contents(connection))


async def test_commits_that_publish_do_not_wait_for_each_other(database: Database) -> None:
    """Neither for the feed's locks nor to notify. Time-outs of locks would end a commit that waited."""
    async with database.connection() as connection:
        await add_application(connection)
        await add_routes(connection, ["a.example", "b.example"])
    async with database.connection() as first, database.connection() as second:
        async with first.transaction():
            await first.execute("update domains set redirect_to = 'first' where domain = 'a.example'")
            await first.execute("set constraints all immediate")  # its locks are taken now, and held
            async with second.transaction():
                await second.execute("set local lock_timeout = '100ms'")
                await second.execute("update domains set redirect_to = 'second' where domain = 'b.example'")
            seen = await feed_contents(second)
            assert '"second"' in seen["route/power/b.example"]
        assert (await feed.read_head(first)).checksum == checksum(await feed_contents(first))


async def test_key_that_returns_while_its_tombstone_is_purged_is_published(database: Database) -> None:
    async with database.connection() as connection:
        await add_application(connection)
        await add_routes(connection, ["a.example"])
        await connection.execute("delete from domains")
        before = await positions_of(connection)

    async def return_key() -> None:
        async with database.connection() as connection:
            await add_routes(connection, ["a.example"])

    async with database.transaction() as purging:
        assert await feed.purge_tombstones(purging, older_than=timedelta(0)) == 1
        returning = asyncio.create_task(return_key())
        while not await purging.fetchval("select exists (select from pg_locks where not granted)"):
            assert not returning.done()
    await returning
    async with database.connection() as connection:
        assert [entry.key for entry in await changes_after(connection, before)] == ["power/a.example"]
        assert (await feed.read_head(connection)).checksum == checksum(await feed_contents(connection))


async def test_purge_waits_for_no_commit(database: Database) -> None:
    async with database.connection() as connection, database.connection() as writer:
        await add_application(connection)
        await add_routes(connection, [f"d{number}.example" for number in range(4)])
        for number in range(3):
            await connection.execute("delete from domains where domain = $1", f"d{number}.example")
        async with writer.transaction():
            await writer.execute("delete from domains where domain = 'd3.example'")
            await writer.execute("set constraints all immediate")
            async with connection.transaction():
                await connection.execute("set local lock_timeout = '100ms'")
                assert await feed.purge_tombstones(connection, older_than=timedelta(0), most=2) == 2
        async with connection.transaction():
            assert await feed.purge_tombstones(connection, older_than=timedelta(0)) == 2


async def test_certificate_erased_long_after_its_release_takes_no_lock_of_the_feed(database: Database) -> None:
    async with database.connection() as connection, database.connection() as holder:
        await add_application(connection)
        await connection.execute(
            "insert into certificates"
            " (domain, application_id, issuer, chain, private_key, not_before, not_after, released_at)"
            " values ('a.example', 'app', 'internal', '', '', now(), now(), now())"
        )
        async with holder.transaction():
            await holder.execute("select from feed_shards for update")
            await connection.execute("delete from certificates")
        assert await connection.fetchval("select count(*) from changes where kind = 'certificate'") == 0
