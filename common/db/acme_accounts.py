"""ACME accounts as rows: the one key they share, and where each CA keeps the account.

Owns the SQL of ``acme_key`` and ``acme_accounts``. The key arrives and stays sealed; edges hear of its thumbprint,
which is public, through the change feed.
"""

from __future__ import annotations

from dataclasses import dataclass

from common.db.session import Connection

KEY_IDENTITY = "acme/account-key"


@dataclass(frozen=True, slots=True)
class SealedKey:
    """`private_key` is an envelope, `thumbprint` as RFC 7638 §3 makes it, base64url."""

    private_key: bytes
    thumbprint: str


async def find_key(connection: Connection) -> SealedKey | None:
    row = await connection.fetchrow("select private_key, thumbprint from acme_key")
    return None if row is None else SealedKey(row["private_key"], row["thumbprint"])


async def keep_key(connection: Connection, key: SealedKey) -> None:
    """Make it the one key, unless there is one already: of several monitors that start at once the first decides."""
    await connection.execute(
        "insert into acme_key (private_key, thumbprint) values ($1, $2) on conflict do nothing",
        key.private_key,
        key.thumbprint,
    )


async def find_account(connection: Connection, directory: str) -> str | None:
    url: str | None = await connection.fetchval("select url from acme_accounts where directory = $1", directory)
    return url


async def keep_account(connection: Connection, directory: str, url: str) -> None:
    await connection.execute(
        "insert into acme_accounts (directory, url) values ($1, $2)"
        " on conflict (directory) do update set url = excluded.url, created_at = now()",
        directory,
        url,
    )
