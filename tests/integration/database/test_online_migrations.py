"""Steps of the schema are taken while the roles work: no writer waits long for any of them."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import pytest

from bench.migrations import measure
from tests.conftest import execute_at, in_database

ROWS = 5_000
LOCK_SECONDS = 4.0
"""A step that works on every application, or on every row, takes longer than this; one that does not takes a small part
of it on a slow machine too."""


@pytest.fixture
async def empty_dsn(server_dsn: str) -> AsyncIterator[str]:
    name = f"empty_{secrets.token_hex(6)}"
    await execute_at(server_dsn, f"create database {name}")
    yield in_database(server_dsn, name)
    await execute_at(server_dsn, f"drop database {name} with (force)")


async def test_no_writer_waits_long_for_a_step(empty_dsn: str) -> None:
    stalls = await measure(empty_dsn, ROWS, lock_seconds=LOCK_SECONDS)
    assert stalls.given_up == 0, stalls.waited_for
    assert stalls.writes > 0
