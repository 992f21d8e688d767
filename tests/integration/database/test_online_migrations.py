"""Steps of the schema are taken while the roles work: no writer waits long for one, and each can be taken again."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import asyncpg
import pytest

from common.db.migrate import migrate
from common.db.migrations.steps import Step, find_steps, read_step
from common.db.session import SessionTimeouts, open_session
from common.errors import OperatorError
from tests.conftest import execute_at

ROWS = 5_000
LOCK_SECONDS = 4.0
"""A step that locks a table while it works on every row takes longer than this; one that does not takes a small part of
it on a slow machine too."""

ONLINE = """
from common.db.migrations.scripts import add_columns, backfill, create_indexes, drop_index

async def take(connection):
    await add_columns(connection, {"domains": "note text", "applications": "note text"})
    await create_indexes(connection, {
        "domains_by_note": "on domains (note)",
        "unique domains_once": "on domains (domain, product, note)",
    })
    await drop_index(connection, "domains_lapsing_next")
    await backfill(connection, "update domains set note = 'seen' where ctid = any(array("
        "select ctid from domains where note is null limit 1000 for no key update))")
"""
SCRIPT = "alter table domains add column kind text not null default 'plain'; create table notes (id text primary key);"


def steps_of(directory: Path, **texts: str) -> list[Step]:
    """Return this program's steps, and those of `texts` after them: ``online`` and ``script`` in the order given."""
    for number, (name, text) in enumerate(texts.items()):
        (directory / f"9{number:03}_{name}.{'sql' if name == 'script' else 'py'}").write_text(text)
    return find_steps() + find_steps(directory)


async def filled(dsn: str) -> None:
    await migrate(dsn)
    await execute_at(
        dsn,
        "insert into applications (id, name, cname_target, client_secret, webhook_secret)"
        " values ('a', 'a', 'a', '', '')",
        "insert into domains (domain, product, application_id)"
        f" select 'd' || n, 'power', 'a' from generate_series(1, {ROWS}) n",
    )


@dataclass
class Writes:
    done: int = 0
    given_up: int = 0

    async def go_on(self, dsn: str, statement: str) -> None:
        connection = await open_session(dsn, "writer", SessionTimeouts(60, 60, 60, 60, LOCK_SECONDS))
        try:
            for number in count():
                try:
                    await connection.execute(statement, number % ROWS + 1)
                    self.done += 1
                except asyncpg.LockNotAvailableError:
                    self.given_up += 1
        finally:
            connection.terminate()


async def test_no_writer_waits_long_for_a_step(empty_dsn: str, tmp_path: Path) -> None:
    await filled(empty_dsn)
    writes = Writes()
    writers = [
        asyncio.create_task(writes.go_on(empty_dsn, statement))
        for statement in (
            "update domains set redirect_to = 'https://' || $1::bigint where domain = 'd' || $1::bigint",
            "update applications set name = $1::bigint::text where id = 'a'",
        )
    ]
    try:
        await migrate(empty_dsn, steps=steps_of(tmp_path, online=ONLINE, script=SCRIPT))
    finally:
        for writer in writers:
            writer.cancel()
        outcomes = await asyncio.gather(*writers, return_exceptions=True)
    assert [outcome for outcome in outcomes if isinstance(outcome, Exception)] == []
    assert (writes.given_up, writes.done > 0) == (0, True)

    connection = await open_session(empty_dsn, "test")
    try:
        assert await connection.fetchval("select count(*) from domains where note = 'seen' and kind = 'plain'") == ROWS
        assert await read_step(connection) == "9001"
        indexes = await connection.fetch("select indexrelid::regclass::text as name, indisunique from pg_index")
        found = {row["name"]: row["indisunique"] for row in indexes}
        assert (found.get("domains_by_note"), found.get("domains_once")) == (False, True)
        assert "domains_lapsing_next" not in found
    finally:
        connection.terminate()


async def test_online_work_that_broke_off_is_taken_again_from_its_beginning(empty_dsn: str, tmp_path: Path) -> None:
    await filled(empty_dsn)
    twice = "insert into domains (domain, product, application_id, note) select 'd1', 'secure', 'a', 'seen' where false"
    broken = ONLINE + f'    await connection.execute("{twice}")\n    await connection.execute("select 1 / 0")\n'
    with pytest.raises(OperatorError, match="division by zero"):
        await migrate(empty_dsn, steps=steps_of(tmp_path, online=broken))
    connection = await open_session(empty_dsn, "test")
    try:
        assert await read_step(connection) == find_steps()[-1].number
        # What CREATE INDEX CONCURRENTLY leaves behind when it ends early:
        is_note = "where indexrelid = 'domains_by_note'::regclass"
        await connection.execute(f"update pg_index set indisvalid = false {is_note}")
        await migrate(empty_dsn, steps=steps_of(tmp_path, online=ONLINE))
        assert await connection.fetchval(f"select indisvalid from pg_index {is_note}")
        assert await read_step(connection) == "9000"
    finally:
        connection.terminate()


async def test_a_script_that_fails_leaves_nothing(empty_dsn: str, tmp_path: Path) -> None:
    await migrate(empty_dsn)
    with pytest.raises(OperatorError, match="division by zero"):
        await migrate(empty_dsn, steps=steps_of(tmp_path, script="create table notes (id text); select 1 / 0;"))
    connection = await open_session(empty_dsn, "test")
    try:
        assert await connection.fetchval("select to_regclass('notes') is null")
        assert await read_step(connection) == find_steps()[-1].number
    finally:
        connection.terminate()
