"""What most of the monitor's tests begin with."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.db.pool import Database
from common.secrets import Keyring

from . import parts


@pytest.fixture
async def shop(database: Database) -> Database:
    """A database with two applications."""
    await parts.add_application(database)
    await parts.add_application(database, parts.OTHER_APPLICATION)
    return database


@pytest.fixture
def keys(tmp_path: Path) -> Keyring:
    return parts.keyring(tmp_path)
