"""Domains enrolled in bulk leave the change feed as its own triggers would have."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.enrolment import EnrolledDomain, enrol
from common.db import applications, domains
from common.db.feed import Head, digest, read_head
from common.db.pool import Database
from common.domain_settings import DomainSettings
from common.secrets import Keyring, load_keyring

APPLICATION = "ab12"


@pytest.fixture
async def keyring(tmp_path: Path, database: Database) -> Keyring:
    """And the application everything belongs to."""
    async with database.transaction() as connection:
        await applications.create_application(
            connection,
            applications.NewApplication(
                id=APPLICATION, name="A", cname_target="a.example", client_secret=b"s", webhook_secret=b"s"
            ),
        )
    return load_keyring(tmp_path / "master.key", create=True)


def some(count: int, prefix: str = "d") -> list[EnrolledDomain]:
    return [
        EnrolledDomain(f"{prefix}{number}.example", APPLICATION, "https://origin.example/", "chain", "key")
        for number in range(count)
    ]


async def head_and_checksum(database: Database) -> tuple[Head, int]:
    """What the feed says of itself, and what its tables come to."""
    async with database.connection() as connection:
        total = 0
        for row in await connection.fetch("select kind, key, content::text as content from feed_entries"):
            total ^= digest(row["kind"], row["key"], row["content"])
        return await read_head(connection), total


async def test_version_and_checksum_are_those_of_the_tables(dsn: str, database: Database, keyring: Keyring) -> None:
    before, _ = await head_and_checksum(database)
    enrolled = await enrol(dsn, keyring, some(50))
    head, total = await head_and_checksum(database)
    assert enrolled.domains == 50
    assert head.version == enrolled.version == before.version + 100
    assert head.checksum == total
    async with database.connection() as connection:
        assert await connection.fetchval("select count(distinct (shard, version)) from changes") == head.version


async def test_the_triggers_go_on_where_it_ended(dsn: str, database: Database, keyring: Keyring) -> None:
    await enrol(dsn, keyring, some(3))
    enrolled = await enrol(dsn, keyring, some(3, prefix="e"))
    async with database.transaction() as connection:
        assert await domains.update(
            connection, "d1.example", "power", APPLICATION, DomainSettings("https://other.example/")
        )
    head, total = await head_and_checksum(database)
    assert head.version == enrolled.version + 1
    assert head.checksum == total


async def test_the_key_opens_under_its_domain(dsn: str, database: Database, keyring: Keyring) -> None:
    await enrol(dsn, keyring, some(1))
    async with database.connection() as connection:
        sealed = await connection.fetchval("select private_key from certificates")
    assert keyring.open(sealed, "certificate/d0.example/private-key") == b"key"
