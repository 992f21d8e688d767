"""A database to migrate."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import pytest

from tests.conftest import execute_at, in_database


@pytest.fixture
async def empty_dsn(server_dsn: str) -> AsyncIterator[str]:
    """A database without tables, gone after the test."""
    name = f"empty_{secrets.token_hex(6)}"
    await execute_at(server_dsn, f"create database {name}")
    yield in_database(server_dsn, name)
    await execute_at(server_dsn, f"drop database {name} with (force)")
