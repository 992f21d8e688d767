"""ACME accounts as rows: the one key they share, and where each CA keeps the account.

Owns the SQL of ``acme_key`` and ``acme_accounts``. The key arrives and stays sealed; edges get its thumbprint,
which is public, by the change feed.
"""

from __future__ import annotations

from dataclasses import dataclass

from common.db.session import Connection

KEY_IDENTITY = "acme/account-key"


@dataclass(frozen=True, slots=True)
class SealedKey:
    """The ACME account key: `private_key` is an envelope, `thumbprint` as RFC 7638 §3 makes it, base64url."""

    private_key: bytes
    thumbprint: str


async def find_key(connection: Connection) -> SealedKey | None:
    """Return the account key, or None before any monitor has made one."""
    row = await connection.fetchrow("select private_key, thumbprint from acme_key")
    return None if row is None else SealedKey(row["private_key"], row["thumbprint"])


async def keep_key(connection: Connection, key: SealedKey) -> None:
    """Store the key unless there is one already; of several monitors that start at once, the first one's is kept."""
    await connection.execute(
        "insert into acme_key (private_key, thumbprint) values ($1, $2) on conflict do nothing",
        key.private_key,
        key.thumbprint,
    )


@dataclass(frozen=True, slots=True)
class Identity:
    """The values of CAA records that name a CA and our account there (RFC 8657), as the CA last stated them."""

    names: tuple[str, ...]
    account_url: str


async def find_identity(connection: Connection, directory: str) -> Identity | None:
    """Return what the CA at this directory URL last stated for our current key, or None if it stated nothing yet."""
    row = await connection.fetchrow(
        "select url, caa_identities from acme_accounts join acme_key using (thumbprint) where directory = $1",
        directory,
    )
    return None if row is None else Identity(tuple(row["caa_identities"]), row["url"])


async def keep_identity(connection: Connection, directory: str, thumbprint: str, identity: Identity) -> None:
    """Store what a CA states of the account whose key has this thumbprint, in place of what it stated before."""
    await connection.execute(
        "insert into acme_accounts (directory, thumbprint, url, caa_identities) values ($1, $2, $3, $4)"
        " on conflict (directory, thumbprint) do update"
        " set url = excluded.url, caa_identities = excluded.caa_identities",
        directory,
        thumbprint,
        identity.account_url,
        identity.names,
    )
