"""The list of RDAP servers as fetched. Owns the SQL of ``rdap_bootstrap``, a table of one row."""

from __future__ import annotations

from common.db.session import Connection

FETCHED_EVERY_HOURS = 24
_TRIED_EVERY_MINUTES = 60


async def find(connection: Connection, source: str) -> bytes | None:
    """Return the file as fetched from this URL; None if it was not fetched yet."""
    content: bytes | None = await connection.fetchval("select content from rdap_bootstrap where source = $1", source)
    return content


async def claim(connection: Connection, source: str) -> bool:
    """Return whether this monitor is to fetch the file now, and note that it tries.

    It is to, where the file that is kept is another URL's, which is dropped; or it is a day old, and no monitor has
    tried within the hour.
    """
    claimed = await connection.fetchval(
        "update rdap_bootstrap set attempted_at = now(), source = $1,"
        " content = case when source = $1 then content end, fetched_at = case when source = $1 then fetched_at end"
        " where source <> $1"
        " or ((fetched_at is null or fetched_at < now() - make_interval(hours => $2))"
        " and (attempted_at is null or attempted_at < now() - make_interval(mins => $3)))"
        " returning true",
        source,
        FETCHED_EVERY_HOURS,
        _TRIED_EVERY_MINUTES,
    )
    return bool(claimed)


async def keep(connection: Connection, source: str, content: bytes) -> None:
    """Store the file as fetched from this URL."""
    await connection.execute("update rdap_bootstrap set source = $1, content = $2, fetched_at = now()", source, content)
