"""The canary: a wrong master key fails at start."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from common.db.pool import Database
from common.db.secrets_canary import ensure_canary
from common.errors import OperatorError
from common.secrets import Keyring, create_key_file, load_keyring, read_key_file


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


@pytest.mark.parametrize("is_used", [True, False])
async def test_an_edges_key_file_is_no_wrong_one(database: Database, tmp_path: Path, is_used: bool) -> None:
    whole = keyring(tmp_path / "whole")
    create_key_file(tmp_path / "edge", [key.of_edge() for key in read_key_file(tmp_path / "whole")])
    async with database.connection() as connection:
        if is_used:
            await ensure_canary(connection, whole)
        with pytest.raises(OperatorError, match=r"is an edge's.* the API and the monitors use"):
            await ensure_canary(connection, load_keyring(tmp_path / "edge"))
        await ensure_canary(connection, whole)


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
