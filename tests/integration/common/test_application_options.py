"""What an application can choose, as rows and as entries of the change feed."""

from __future__ import annotations

from datetime import timedelta

import orjson

from common.db.application_secrets import set_signature_key
from common.db.applications import create_application, get_application, update_application
from common.db.error_pages import error_page_sizes, put_error_page, remove_error_page
from common.db.feed import FeedEntry, open_snapshot
from common.db.pool import Database
from tests.integration.common.test_application_rows import create, new


async def test_options_are_read_as_they_were_set_and_reach_the_feed(database: Database) -> None:
    await create(database, new("one"))

    async with database.transaction() as connection:
        one = await get_application(connection, "one")
        assert one is not None
        assert (one.send_host, one.origin_server_name, one.origin_verify, one.maintenance) == (
            "origin", None, True, False,
        )  # fmt: skip
        assert one.buffer_uploads_bytes is None
        assert one.http2
        stored = await update_application(
            connection,
            "one",
            send_host="customer",
            origin_server_name="o.test",
            origin_verify=False,
            maintenance=True,
            buffer_uploads_bytes=5,
            http2=False,
            minimum_tls="1.3",
        )
        assert stored is not None
        one = stored.application
        assert (one.send_host, one.origin_server_name, one.origin_verify, one.maintenance) == (
            "customer", "o.test", False, True,
        )  # fmt: skip
        assert one.buffer_uploads_bytes == 5
        assert not one.http2

    [content] = [entry.content for entry in await changed(database) if entry.kind == "application"]
    record = orjson.loads(content or "")
    assert record.items() >= {
        "send_host": "customer", "origin_server_name": "o.test", "origin_verify": False, "maintenance": True,
        "buffer_uploads_bytes": 5, "http2": False, "minimum_tls": "1.3",
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
