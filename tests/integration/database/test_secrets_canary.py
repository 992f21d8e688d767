"""The canary: a wrong master key fails at start."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from common.db.pool import Database
from common.db.secrets_canary import ensure_canary
from common.errors import OperatorError
from common.secrets import Keyring, load_keyring


def keyring(path: Path, *lines: str) -> Keyring:
    if lines:
        path.write_text("\n".join(lines))
    return load_keyring(path, create=True)


async def test_right_key_opens_and_wrong_key_is_for_the_operator(database: Database, tmp_path: Path) -> None:
    right, wrong = keyring(tmp_path / "right"), keyring(tmp_path / "wrong")
    async with database.connection() as connection:
        await ensure_canary(connection, right)
        await ensure_canary(connection, right)
        with pytest.raises(OperatorError, match="FRONTAGE_MASTER_KEY_FILE"):
            await ensure_canary(connection, wrong)
        await ensure_canary(connection, right)


async def test_rotation_keeps_old_keys_needed(database: Database, tmp_path: Path) -> None:
    old = keyring(tmp_path / "old")
    keyring(tmp_path / "new")
    lines = [(tmp_path / name).read_text().strip() for name in ("new", "old")]
    async with database.connection() as connection:
        await ensure_canary(connection, old)
        await ensure_canary(connection, keyring(tmp_path / "both", *lines))
        for forgotten in ("new", "old"):
            with pytest.raises(OperatorError):
                await ensure_canary(connection, keyring(tmp_path / forgotten))


async def test_first_starts_at_once_agree_on_one_key(database: Database, tmp_path: Path) -> None:
    async def start(name: str) -> None:
        async with database.connection() as connection:
            await ensure_canary(connection, keyring(tmp_path / name))

    results = await asyncio.gather(*(start(name) for name in "abcd"), return_exceptions=True)
    assert results.count(None) == 1
    assert sum(isinstance(result, OperatorError) for result in results) == 3
