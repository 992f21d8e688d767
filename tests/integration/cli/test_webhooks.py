"""`frontage webhook`: what failed in a range of time is sent again, one event, and a test; an endpoint is enabled."""

from __future__ import annotations

import json
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
    tested = frontage.run("webhook", "test", "a", "--json", env=env)
    assert tested.returncode == 0, tested.stderr
    again = frontage.run("webhook", "replay-event", "a", json.loads(tested.stdout)["event"], env=env)
    assert (again.returncode, again.stderr) == (0, "")
    async with database.transaction() as connection:
        await connection.execute("update webhook_endpoints set disabled_at = now()")
    assert "the webhook is disabled" in frontage.run("webhook", "test", "a", env=env).stderr
    assert frontage.run("webhook", "enable", "a", env=env).returncode == 0
    async with database.connection() as connection:
        assert await connection.fetchval("select count(*) from webhook_endpoints where disabled_at is not null") == 0
    unknown = frontage.run("webhook", "replay", "b", "--from", "2020-01-01", env=env)
    assert unknown.returncode == 1
    assert "there is no application b" in unknown.stderr
