"""What most of the monitor's tests begin with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bench.following_edge import following_edge
from common.db.pool import Database
from common.secrets import Keyring

from . import parts


@pytest.fixture
async def shop(database: Database) -> AsyncIterator[Database]:
    """A database with two applications, and an edge."""
    await parts.add_application(database)
    await parts.add_application(database, parts.OTHER_APPLICATION)
    async with following_edge(database):
        yield database


@pytest.fixture
def issuer(tmp_path: Path) -> parts.LimitedIssuer:
    return parts.LimitedIssuer(tmp_path)


@pytest.fixture
def keys(tmp_path: Path) -> Keyring:
    return parts.keyring(tmp_path)
