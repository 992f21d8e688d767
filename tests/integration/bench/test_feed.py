"""The feed's bench on a server of its own."""

from __future__ import annotations

from pathlib import Path

from bench.feed import run_pgbench
from common.postgres import EmbeddedPostgres


async def test_many_writers_connect_in_time_for_a_short_run(tmp_path: Path) -> None:
    script = tmp_path / "waiting.sql"
    script.write_text("select pg_sleep(0.2);\n")
    server = EmbeddedPostgres(tmp_path / "state")
    dsn = server.start()
    try:
        commits_per_second, milliseconds = await run_pgbench(dsn, script, writers=64, seconds=1)
    finally:
        server.stop()
    assert commits_per_second > 0
    assert milliseconds > 0
