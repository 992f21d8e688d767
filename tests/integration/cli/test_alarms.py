"""What an operator sees and does when alarms are held back."""

from __future__ import annotations

from pathlib import Path

from common.db.pool import Database
from tests.integration.cli.frontage import environment, run
from tests.integration.monitor.checks import parts


async def test_alarms_held_back_are_shown_and_let_out(database: Database, dsn: str, tmp_path: Path) -> None:
    env = environment(tmp_path, DATABASE_URL=dsn)
    assert run("migrate", env=env).returncode == 0
    await parts.add_application(database)
    for name in ("one.example", "two.example"):
        await parts.watch(database, name, [parts.a()])
    async with database.transaction() as connection:
        await connection.execute("update monitored_domains set alarm_held_at = now(), last_checked_at = now()")
        await connection.execute("update checks set requested_at = null, due_at = now() + interval '1 hour'")

    shown = run("alarms", "show", env=env)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.splitlines()[0] == "alarms of 2 domains are held back"

    released = run("alarms", "release", env=env)
    assert (released.returncode, released.stderr) == (0, "")
    assert "2 domains" in released.stdout
    rows = await parts.fetch(database, "select from checks where due_at <= now() and requested_at is not null")
    assert len(rows) == 2
