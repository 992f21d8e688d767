"""What an edge logs of the changes that it applies."""

from __future__ import annotations

import logging
from pathlib import Path
from unittest.mock import patch

from common import logs
from common.db.session import open_session
from tests.captured_logs import capture_logs
from tests.integration.replica import parts
from tests.rows import add_application
from tests.waiting import until


async def test_applied_changes_are_logged_at_debug(dsn: str, tmp_path: Path) -> None:
    writer = await open_session(dsn, "writer")
    try:
        await add_application(writer)
        replicator = parts.make_replicator(dsn, tmp_path)
        with patch.object(logs._output, "least_level", logging.DEBUG), capture_logs() as lines:
            async with parts.running(replicator):
                await until(lambda: replicator.connected and replicator.version == 1, "the first copy")
                await parts.add_routes(writer, [f"{number}.example" for number in range(60)])
                await until(lambda: sum(line.get("count", 0) for line in lines) == 60, "the changes")
    finally:
        writer.terminate()
    applied = [line for line in lines if line["event"] == "applied changes"]
    assert {line["level"] for line in applied} == {"debug"}
    assert "route power/0.example" in {change for line in applied for change in line["changes"]}
    assert all(len(line["changes"]) <= 50 for line in applied)
