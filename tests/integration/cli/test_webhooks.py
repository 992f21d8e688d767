"""`frontage webhook replay`: what failed in a range of time is sent again."""

from __future__ import annotations

from pathlib import Path

from common.db import applications, events
from common.db.applications import NewApplication
from common.db.events import NewEvent
from common.db.pool import Database
from common.secrets import load_keyring
from tests.integration.cli import frontage


async def test_a_replay_names_how_many_are_sent_again(database: Database, dsn: str, tmp_path: Path) -> None:
    load_keyring(tmp_path / "master.key", create=True)
    async with database.transaction() as connection:
        new = NewApplication("a", "Partner", "a.partner.test", b"s", b"w", webhook_url="https://hooks.partner.test/")
        await applications.create_application(connection, new)
        for _ in range(3):
            await events.record(connection, NewEvent("a", events.TEST, None, None, {}))
        await connection.execute("update deliveries set status = 'failed', due_at = null, settled_at = now()")
    env = frontage.environment(tmp_path, DATABASE_URL=dsn)
    none = frontage.run("webhook", "replay", "a", "--from", "2020-01-01", "--to", "2020-01-02", env=env)
    assert (none.returncode, none.stdout) == (0, "0 deliveries are sent again\n")
    done = frontage.run("webhook", "replay", "a", "--from", "2020-01-01", env=env)
    assert (done.returncode, done.stdout) == (0, "3 deliveries are sent again\n")
    unknown = frontage.run("webhook", "replay", "b", "--from", "2020-01-01", env=env)
    assert unknown.returncode == 1
    assert "there is no application b" in unknown.stderr
