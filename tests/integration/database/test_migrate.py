"""The schema: brought up once however many try, checked before use, and never half there."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from unittest.mock import patch

import pytest

from common.db.migrate import migrate
from common.db.migrations.steps import Step, find_steps
from common.db.schema import OLDEST_PROGRAM, REVISION, check_schema, find_newer_schema
from common.db.session import open_session
from common.errors import DatabaseUnavailable, OperatorError
from tests.conftest import execute_at


def test_code_expects_the_newest_schema() -> None:
    assert find_steps()[-1].number == REVISION


def test_steps_are_numbered_without_gaps() -> None:
    numbers = [int(step.number) for step in find_steps()]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


async def test_several_migrations_at_once_make_one_schema(empty_dsn: str) -> None:
    await asyncio.gather(*(migrate(empty_dsn) for _ in range(4)))
    await migrate(empty_dsn)
    connection = await open_session(empty_dsn, "test")
    try:
        await check_schema(connection)
        assert await connection.fetchval("select count(*) from feed") == 1
    finally:
        connection.terminate()


async def test_missing_and_foreign_schemas_are_for_the_operator(empty_dsn: str) -> None:
    connection = await open_session(empty_dsn, "test")
    try:
        with pytest.raises(OperatorError, match="run `frontage migrate`"):
            await check_schema(connection)
        await migrate(empty_dsn)
        await connection.execute("update alembic_version set version_num = '0001'")
        with pytest.raises(OperatorError, match="run `frontage migrate`"):
            await check_schema(connection)
    finally:
        connection.terminate()


async def test_a_newer_schema_states_which_programs_it_works_with(empty_dsn: str) -> None:
    await migrate(empty_dsn)
    connection = await open_session(empty_dsn, "test")
    try:
        await connection.execute("update alembic_version set version_num = '9998'")  # by a program of tomorrow
        await check_schema(connection)
        assert "works with it" in (await find_newer_schema(connection) or "")
        await migrate(empty_dsn)  # of the version before, in a script that starts it
        assert await connection.fetchval("select version_num from alembic_version") == "9998"
        for statement in ("'works with programs from schema 9998'", "null"):
            await connection.execute(f"comment on table alembic_version is {statement}")
            with pytest.raises(OperatorError, match="does not work with it: upgrade Frontage"):
                await check_schema(connection)
    finally:
        connection.terminate()


async def test_programs_know_of_a_breaking_step_before_it_is_taken(empty_dsn: str, tmp_path: Path) -> None:
    await migrate(empty_dsn)
    await execute_at(empty_dsn, "comment on table alembic_version is ''")
    step = tmp_path / "9000_breaks.sql"
    step.write_text("select 1 / 0")
    with pytest.raises(OperatorError):
        await migrate(empty_dsn, steps=[*find_steps(), Step("9000", step)])
    connection = await open_session(empty_dsn, "test")
    try:
        stated = await connection.fetchval("select obj_description('alembic_version'::regclass)")
        assert stated == f"works with programs from schema {OLDEST_PROGRAM}"
    finally:
        connection.terminate()


async def test_a_schema_from_before_the_first_release_is_refused(empty_dsn: str) -> None:
    await migrate(empty_dsn)
    await execute_at(empty_dsn, "update alembic_version set version_num = '0001'")
    with pytest.raises(OperatorError, match="from before the first release"):
        await migrate(empty_dsn)


def test_a_step_that_breaks_programs_before_it_says_so() -> None:
    """Where it breaks none (a function replaced by one that takes the same, a table that no program reads), its number
    and the reason belong into `harmless`."""
    harmless = {"0101": "a foreign key of a column that earlier programs leave null"}
    breaking = re.compile(
        r"\bdrop (table|column|function|view|type)\b|\brename\b|\bset not null\b|\balter column \S+ (set data )?type\b"
        r"|\badd (constraint|check|unique)\b|\bcreate unique\b|\"unique \w+\"|\brevoke\b",
        re.IGNORECASE,
    )
    found = {
        step.number
        for step in find_steps()[1:]
        if step.number > OLDEST_PROGRAM and breaking.search(step.path.read_text())
    }
    assert found - harmless.keys() == set(), "raise OLDEST_PROGRAM in common/db/schema.py"


async def test_failed_migration_leaves_nothing_and_can_be_repeated(empty_dsn: str) -> None:
    await execute_at(empty_dsn, "create table changes ()")  # in the way of the schema's own
    with pytest.raises(OperatorError, match="already exists"):
        await migrate(empty_dsn)
    connection = await open_session(empty_dsn, "test")
    try:
        assert await connection.fetchval("select to_regclass('applications') is null")
        await connection.execute("drop table changes")
        await migrate(empty_dsn)
        await check_schema(connection)
    finally:
        connection.terminate()


async def test_what_an_api_of_before_adds_is_checked_too(dsn: str) -> None:
    """It knows nothing of the checks' table."""
    connection = await open_session(dsn, "test")
    try:
        await connection.execute(
            """
            insert into applications (id, name, cname_target, client_secret, webhook_secret)
                values ('a', 'a', 'a', '', '');
            insert into monitored_domains (id, application_id, domain, dns_records)
                values ('new', 'a', 'new.test', '[]');
            """
        )
        assert await connection.fetchval("select id from checks where requested_at <= now() and due_at <= now()")
    finally:
        connection.terminate()


async def test_unreachable_database_is_unavailable() -> None:
    with pytest.raises(DatabaseUnavailable):
        await migrate("postgresql://nobody@127.0.0.1:1/nothing")


async def test_too_old_a_postgres_is_refused(dsn: str) -> None:
    with patch("common.db.session.OLDEST_VERSION", 990_000), pytest.raises(OperatorError, match="99 or later"):
        await migrate(dsn)
