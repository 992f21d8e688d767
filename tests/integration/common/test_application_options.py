"""What an application can choose, as rows and as entries of the change feed."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from datetime import timedelta

import orjson
import pytest

from common.db import migrate as migration
from common.db.applications import create_application, get_application, set_signature_key, update_application
from common.db.error_pages import error_page_sizes, put_error_page, remove_error_page
from common.db.feed import FeedEntry, digest, open_snapshot
from common.db.pool import Database
from common.db.session import open_session
from tests.conftest import execute_at, in_database
from tests.integration.common.test_application_rows import create, new


@pytest.fixture
async def empty_dsn(server_dsn: str) -> AsyncIterator[str]:
    """A database without a schema."""
    name = f"test_{secrets.token_hex(6)}"
    await execute_at(server_dsn, f"create database {name} template template0")
    yield in_database(server_dsn, name)
    await execute_at(server_dsn, f"drop database {name} with (force)")


async def test_the_feed_still_equals_its_tables_after_an_upgrade(
    empty_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(migration, "REVISION", "0001")
        await migration.migrate(empty_dsn)
    await execute_at(
        empty_dsn,
        "insert into applications (id, name, cname_target, client_secret, webhook_secret)"
        " values ('a', '', 'a', '', '')",
        "insert into domains (domain, product, application_id) values ('shop.test', 'power', 'a')",
    )
    await migration.migrate(empty_dsn)

    connection = await open_session(empty_dsn, "frontage tests")
    try:
        async with open_snapshot(connection) as snapshot:
            entries = [entry async for batch in snapshot.everything() for entry in batch]
            changes = [entry async for batch in snapshot.changes((2,)) for entry in batch]
            assert checksum(entries) == snapshot.head.checksum
            assert [(entry.kind, entry.key) for entry in changes] == [("application", "a")]
    finally:
        connection.terminate()


def checksum(entries: list[FeedEntry]) -> int:
    total = 0
    for kind, key, content, _ in entries:
        assert content is not None
        total ^= digest(kind, key, content)
    return total


async def test_options_are_read_as_they_were_set_and_reach_the_feed(database: Database) -> None:
    await create(database, new("one"))

    async with database.transaction() as connection:
        one = await get_application(connection, "one")
        assert one is not None
        assert (one.send_host, one.origin_server_name, one.origin_verify, one.maintenance) == (
            "origin", None, True, False,
        )  # fmt: skip
        assert one.buffer_uploads_bytes is None
        one = await update_application(
            connection,
            "one",
            send_host="customer",
            origin_server_name="o.test",
            origin_verify=False,
            maintenance=True,
            buffer_uploads_bytes=5,
        )
        assert one is not None
        assert (one.send_host, one.origin_server_name, one.origin_verify, one.maintenance) == (
            "customer", "o.test", False, True,
        )  # fmt: skip
        assert one.buffer_uploads_bytes == 5

    [content] = [entry.content for entry in await changed(database) if entry.kind == "application"]
    record = orjson.loads(content or "")
    assert record.items() >= {
        "send_host": "customer", "origin_server_name": "o.test", "origin_verify": False, "maintenance": True,
        "buffer_uploads_bytes": 5,
    }.items()  # fmt: skip


async def changed(database: Database) -> list[FeedEntry]:
    async with database.connection() as connection, open_snapshot(connection) as snapshot:
        return [entry async for batch in snapshot.changes(()) for entry in batch]


async def test_a_rotated_signature_key_leaves_its_predecessor_signing_for_a_while(database: Database) -> None:
    await create(database, new("one"))

    async def signs_with(sealed: bytes | None, keep: timedelta) -> tuple[bytes | None, bool]:
        async with database.transaction() as connection:
            assert await set_signature_key(connection, "one", sealed, keep)
        async with database.connection() as connection:
            one = await get_application(connection, "one")
        assert one is not None
        return one.signature_key, one.previous_signature_until is not None

    day = timedelta(days=1)
    assert await signs_with(b"first", day) == (b"first", False)
    assert await signs_with(b"second", day) == (b"second", True)
    assert await signs_with(b"third", timedelta(0)) == (b"third", False)
    assert await signs_with(None, day) == (None, False)
    assert await signs_with(b"fourth", day) == (b"fourth", False)
    async with database.transaction() as connection:
        assert not await set_signature_key(connection, "nobody", b"x", day)


async def test_an_error_page_is_an_entry_of_its_own_and_goes_with_its_application(database: Database) -> None:
    async with database.transaction() as connection:
        await create_application(connection, new("one"))
        await put_error_page(connection, "one", "<p>ä")
        await put_error_page(connection, "one", "<p>ü!")
        assert await error_page_sizes(connection) == {"one": 6}
    entries = {(entry.kind, entry.key): entry.content for entry in await changed(database)}
    assert orjson.loads(entries["error_page", "one"] or "") == {"application_id": "one", "html": "<p>ü!"}

    async with database.transaction() as connection:
        await remove_error_page(connection, "one")
    assert ("error_page", "one", None) in [entry[:3] for entry in await changed(database)]

    async with database.transaction() as connection:
        await put_error_page(connection, "one", "<p>")
    async with database.transaction() as connection:
        await connection.execute("delete from applications")
    assert [entry.content for entry in await changed(database)] == [None, None]
