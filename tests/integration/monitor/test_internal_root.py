"""The internal authority's root: one for all monitors of an installation, whichever state directory they have."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from common.clock import SystemClock
from common.db import envelopes
from common.db.pool import Database
from common.errors import OperatorError
from common.secrets import Keyring, load_keyring
from monitor.certificates.internal import SharedIssuer, open_internal, root_path


@pytest.fixture
def keys(tmp_path: Path) -> Keyring:
    return load_keyring(tmp_path / "master.key", create=True)


def shared(database: Database, state_dir: Path, keys: Keyring) -> SharedIssuer:
    return SharedIssuer(database, state_dir, keys, SystemClock())


def root_of(state_dir: Path) -> bytes:
    return root_path(state_dir).read_bytes()


async def test_monitors_that_start_at_once_sign_with_one_root(
    database: Database, tmp_path: Path, keys: Keyring
) -> None:
    places = [tmp_path / name for name in "abc"]
    issuers = await asyncio.gather(*(shared(database, place, keys).open() for place in places))
    assert len({each.root_fingerprint for each in issuers}) == len({root_of(place) for place in places}) == 1
    later = await shared(database, tmp_path / "later", keys).open()
    assert later.root_fingerprint == issuers[0].root_fingerprint


async def test_a_root_that_is_there_becomes_all_monitors_and_takes_the_place_of_others(
    database: Database, tmp_path: Path, keys: Keyring
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    ours = open_internal(first, keys, SystemClock()).root_fingerprint
    assert open_internal(second, keys, SystemClock()).root_fingerprint != ours
    for place in (first, second):
        assert (await shared(database, place, keys).open()).root_fingerprint == ours
    assert root_of(first) == root_of(second)
    assert (second / "ca" / "root.key").stat().st_mode & 0o777 == 0o600
    again = open_internal(second, keys, SystemClock())
    assert again.root_fingerprint == ours, "what lies there is whole"


async def test_a_copy_that_is_damaged_or_sealed_by_an_older_key_is_placed_anew(
    database: Database, tmp_path: Path, keys: Keyring
) -> None:
    ours = (await shared(database, tmp_path, keys).open()).root_fingerprint
    key = tmp_path / "ca" / "root.key"
    for content in (b"", load_keyring(tmp_path / "older.key", create=True).seal(b"x", "ca/root-key")):
        key.write_bytes(content)
        assert (await shared(database, tmp_path, keys).open()).root_fingerprint == ours
    key.unlink()
    assert (await shared(database, tmp_path, keys).open()).root_fingerprint == ours


async def test_its_key_lies_sealed_in_a_row_and_no_other_key_opens_it(
    database: Database, tmp_path: Path, keys: Keyring
) -> None:
    await shared(database, tmp_path, keys).open()
    async with database.connection() as connection:
        row = await connection.fetchrow("select certificate, private_key from internal_root")
    assert row is not None
    assert row["certificate"].encode() == root_of(tmp_path)
    [place] = [each for each in envelopes.SEALED_COLUMNS if each.table == "internal_root"]
    assert b"PRIVATE KEY" in keys.open(row["private_key"], place.identity(row["certificate"]))
    with pytest.raises(OperatorError, match="cannot open the key of the certificate authority"):
        await shared(database, tmp_path / "b", load_keyring(tmp_path / "another.key", create=True)).open()
