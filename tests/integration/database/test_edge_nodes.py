"""Leases of edges: who counts, and whom a version has not reached."""

from __future__ import annotations

from common.db import edge_nodes
from common.db.pool import Database
from tests.integration.expiry import erase


async def test_a_version_is_live_when_no_leased_edge_is_behind(database: Database) -> None:
    async with database.connection() as connection:
        await connection.execute("update feed_shards set version = 7 where shard = 0")
        await edge_nodes.report(connection, "ahead", "one", 7)
        await edge_nodes.report(connection, "rolled back", "one", 8)
        await edge_nodes.report(connection, "behind", "one", 4)
        await edge_nodes.report(connection, "elsewhere", "another history", 9)
        behind = await edge_nodes.nodes_behind(connection, "one", 5)
        assert [edge.node_id for edge in behind] == ["behind", "elsewhere", "rolled back"]
        await edge_nodes.end_lease(connection, "rolled back")
        await edge_nodes.report(connection, "behind", "one", 5)
        await edge_nodes.end_lease(connection, "elsewhere")
        assert await edge_nodes.nodes_behind(connection, "one", 5) == []


async def test_a_lapsed_lease_counts_no_more(database: Database) -> None:
    async with database.connection() as connection:
        await edge_nodes.report(connection, "gone", "one", 1)
        await connection.execute("update edge_nodes set lease_until = clock_timestamp()")
        assert await edge_nodes.nodes_behind(connection, "one", 5) == []


async def test_nodes_that_fell_silent_are_forgotten_after_a_day(database: Database) -> None:
    async with database.connection() as connection:
        for node in ("gone", "late", "serving"):
            await edge_nodes.report(connection, node, "one", 1)
        await connection.execute(
            "update edge_nodes set lease_until = now() - interval '25 hours' where node_id = 'gone'"
        )
        await connection.execute(
            "update edge_nodes set lease_until = now() - interval '23 hours' where node_id = 'late'"
        )
        assert await erase(connection, "edge_nodes") == 1
        rows = await connection.fetch("select node_id from edge_nodes order by node_id")
    assert [row["node_id"] for row in rows] == ["late", "serving"]
