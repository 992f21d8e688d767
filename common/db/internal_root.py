"""The root of the internal authority as a row, so that the monitors of an installation all sign with one.

Owns the SQL of ``internal_root``. The key arrives and stays sealed.
"""

from __future__ import annotations

from dataclasses import dataclass

from common.db.session import Connection

KEY_IDENTITY = "ca/root-key"


@dataclass(frozen=True, slots=True)
class SealedRoot:
    """The root: `certificate` in PEM, `private_key` an envelope."""

    certificate: str
    private_key: bytes


async def find(connection: Connection) -> SealedRoot | None:
    """Return the root, or None before any monitor has needed one."""
    row = await connection.fetchrow("select certificate, private_key from internal_root")
    return None if row is None else SealedRoot(row["certificate"], row["private_key"])


async def keep(connection: Connection, root: SealedRoot) -> SealedRoot:
    """Store the root unless there is one, and return the one that is there.

    Of several monitors that start at once, the first one's is kept: the others wait for the end of its transaction.
    """
    await connection.execute(
        "insert into internal_root (certificate, private_key) values ($1, $2) on conflict do nothing",
        root.certificate,
        root.private_key,
    )
    kept = await find(connection)
    assert kept is not None, "there is one from here on"
    return kept
