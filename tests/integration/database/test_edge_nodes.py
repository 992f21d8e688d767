"""Leases of edges: who counts, and whom a version has not reached."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from common.db import edge_nodes
from common.db.edge_nodes import EdgeDescription, EdgeTraffic, FailedUpgrade
from common.db.pool import Database
from common.origin_faults import FailingOrigin, OriginIdentity
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


async def test_an_edge_is_found_by_the_origin_that_it_cannot_reach(database: Database) -> None:
    origin = OriginIdentity("https", "origin.test", 443, "origin.test", True)
    others = replace(origin, server_name="another.test")
    async with database.connection() as connection:
        await edge_nodes.report(connection, "fails", "one", 1, failing=[FailingOrigin(origin, "timeout")])
        await edge_nodes.report(connection, "reaches", "one", 1, failing=[FailingOrigin(others, "certificate")])
        await edge_nodes.report(connection, "fails", "one", 2)  # unchanged, hence not sent
        found = await edge_nodes.find_unreached(connection, origin)
        assert [(each.edge.node_id, each.fault) for each in found] == [("fails", "timeout")]
        await edge_nodes.report(connection, "fails", "one", 3, failing=[])
        assert await edge_nodes.find_unreached(connection, origin) == []


async def test_an_edge_that_is_gone_says_nothing_of_origins(database: Database) -> None:
    origin = OriginIdentity("http", "origin.test", 80, "origin.test", True)
    async with database.connection() as connection:
        await edge_nodes.report(connection, "gone", "one", 1, failing=[FailingOrigin(origin, "refused")])
        await connection.execute("update edge_nodes set lease_until = clock_timestamp()")
        assert await edge_nodes.find_unreached(connection, origin) == []


async def test_a_lapsed_lease_counts_no_more(database: Database) -> None:
    async with database.connection() as connection:
        await edge_nodes.report(connection, "gone", "one", 1)
        await connection.execute("update edge_nodes set lease_until = clock_timestamp()")
        assert await edge_nodes.nodes_behind(connection, "one", 5) == []


async def test_an_edge_describes_itself_beside_its_lease(database: Database) -> None:
    at = datetime(2026, 11, 22, 10, tzinfo=UTC)
    description = EdgeDescription("1.2.3", at, FailedUpgrade(at, "did not serve"))
    async with database.connection() as connection:
        await edge_nodes.report(connection, "silent", "feed", 1)
        await edge_nodes.report(connection, "one", "feed", 2, description=description)
        described = {node.node_id: node.description for node, _ in await edge_nodes.list_nodes(connection)}
        assert described == {"one": description, "silent": EdgeDescription()}
        await edge_nodes.report(connection, "one", "feed", 2, description=EdgeDescription("1.2.4"))
        described = {node.node_id: node.description for node, _ in await edge_nodes.list_nodes(connection)}
        assert described["one"] == EdgeDescription("1.2.4")


async def test_an_edge_reports_its_traffic_beside_its_lease(database: Database) -> None:
    async with database.connection() as connection:
        await edge_nodes.report(connection, "silent", "feed", 1)
        await edge_nodes.report(connection, "one", "feed", 1, traffic=EdgeTraffic(1200, 3))
        found = {node.node_id: node.traffic for node, _ in await edge_nodes.list_nodes(connection)}
        assert found == {"one": EdgeTraffic(1200, 3), "silent": None}


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


async def test_positions_count_for_the_version_that_they_were_reported_with(database: Database) -> None:
    """An edge that went back to a program which does not report them is not judged by them."""
    async with database.connection() as connection:
        await connection.execute(
            "insert into changes (kind, key, version, shard, deleted, digest)"
            " values ('certificate', 'a.test', 5, 1, false, 1)"
        )

        async def reach() -> list[bool]:
            return [each for _, each in await edge_nodes.find_certificate_reach(connection, "a.test", "one")]

        await edge_nodes.report(connection, "node", "one", 6)
        assert await reach() == []
        await edge_nodes.report(connection, "node", "one", 6, positions=[2, 4])
        assert await reach() == [False]
        await edge_nodes.report(connection, "node", "one", 7, positions=[2, 5])
        assert await reach() == [True]
        await connection.execute("select report_lease('node', 'one', 9, 3, 'serving', null, '', null)")
        assert await reach() == []
