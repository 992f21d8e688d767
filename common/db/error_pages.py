"""Applications' own error pages as rows. Owns the SQL of ``error_pages``.

They are kept apart from `common.db.applications`: a page is large, and asked for by few.
"""

from __future__ import annotations

from asyncpg import Connection, Record

MAX_PAGE_BYTES = 65_536


async def put_error_page(connection: Connection[Record], application_id: str, html: str) -> None:
    """Store the application's error page in place of the one before.

    `html` is at most `MAX_PAGE_BYTES` in UTF-8, without NUL; the application is there.
    """
    await connection.execute(
        "insert into error_pages (application_id, html) values ($1, $2)"
        " on conflict (application_id) do update set html = excluded.html",
        application_id,
        html,
    )


async def remove_error_page(connection: Connection[Record], application_id: str) -> bool:
    """Remove the page, and return whether there was one."""
    status = await connection.execute("delete from error_pages where application_id = $1", application_id)
    return bool(status == "DELETE 1")


async def get_error_page(connection: Connection[Record], application_id: str) -> str | None:
    """Return the application's error page in HTML, or None if it has none."""
    html: str | None = await connection.fetchval(
        "select html from error_pages where application_id = $1", application_id
    )
    return html


async def error_page_sizes(connection: Connection[Record]) -> dict[str, int]:
    """Return the size of each error page in bytes, by application."""
    rows = await connection.fetch("select application_id, octet_length(html) as size from error_pages")
    return {row["application_id"]: row["size"] for row in rows}
