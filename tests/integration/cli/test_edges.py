"""A lost edge is forgotten by hand; one that runs is not."""

from __future__ import annotations

from pathlib import Path

from common.db import edge_nodes
from common.db.pool import Database
from tests.integration.cli.frontage import environment, run

LOST, RUNS = "1a2b3c4d" + "0" * 24, "1a2bffff" + "0" * 24


async def test_a_lost_edge_is_forgotten_and_the_audit_has_it(database: Database, dsn: str, tmp_path: Path) -> None:
    env = environment(tmp_path, DATABASE_URL=dsn)
    assert run("migrate", env=env).returncode == 0
    async with database.transaction() as connection:
        await edge_nodes.report(connection, LOST, "one", 1, host="edge-1.example")
        await edge_nodes.report(connection, RUNS, "one", 1)
        await connection.execute("update edge_nodes set lease_until = now() where node_id = $1", LOST)
        await connection.execute("update edge_nodes set lease_until = now() + '1 h' where node_id = $1", RUNS)
    status = run("status", env=env)
    assert "`frontage edge forget 1a2b3c4d`" in status.stdout

    refused = run("edge", "forget", RUNS[:8], env=env)
    assert (refused.returncode, "stop it first" in refused.stderr) == (1, True)
    assert "2 edges have an id that begins with 1a2b" in run("edge", "forget", "1a2b", env=env).stderr
    assert "no edge of the last day" in run("edge", "forget", "ffff", env=env).stderr
    assert "no edge of the last day" in run("edge", "forget", "", env=env).stderr

    forgotten = run("edge", "forget", LOST[:8], env=env)
    assert (forgotten.returncode, forgotten.stdout) == (0, "edge 1a2b3c4d is forgotten\n")
    async with database.connection() as connection:
        assert [node.node_id for node, _ in await edge_nodes.list_nodes(connection)] == [RUNS]
    assert "edge.forget" in run("audit", "--subject", LOST[:8], env=env).stdout
