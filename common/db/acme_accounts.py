"""ACME accounts as rows: the one key they share, and where each CA keeps the account.

Owns the SQL of ``acme_key``, ``acme_key_rollover`` and ``acme_accounts``. The key arrives and stays sealed; edges get
its thumbprint, which is public, by the change feed.
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


async def has_key(connection: Connection) -> bool:
    """Return whether any monitor has made the account key yet."""
    found: bool = await connection.fetchval("select exists (select thumbprint from acme_key)")
    return found


async def keep_key(connection: Connection, key: SealedKey) -> None:
    """Store the key unless there is one already; of several monitors that start at once, the first one's is kept."""
    await connection.execute(
        "insert into acme_key (private_key, thumbprint) values ($1, $2) on conflict do nothing",
        key.private_key,
        key.thumbprint,
    )


@dataclass(frozen=True, slots=True)
class Rollover:
    """A requested change of the account key.

    `key` is the next one, once a monitor has made it, `made_seconds` ago.
    """

    key: SealedKey | None
    made_seconds: float
    last_error: str | None


async def request_rollover(connection: Connection) -> None:
    """Request another account key; a request that stands stays."""
    await connection.execute("insert into acme_key_rollover default values on conflict do nothing")


async def cancel_rollover(connection: Connection) -> bool:
    """Remove a request that no CA was asked for yet, and return whether there was one."""
    removed = await connection.execute("delete from acme_key_rollover where thumbprint is null")
    return bool(removed != "DELETE 0")


async def find_rollover_error(connection: Connection) -> tuple[bool, str | None]:
    """Return whether a change of the key is requested, and what has kept it from going on."""
    row = await connection.fetchrow("select last_error from acme_key_rollover")
    return row is not None, None if row is None else row["last_error"]


async def find_rollover(connection: Connection) -> Rollover | None:
    """Return the requested change of the key, or None."""
    row = await connection.fetchrow(
        "select private_key, thumbprint, last_error, extract(epoch from clock_timestamp() - made_at)::float8 as made"
        " from acme_key_rollover"
    )
    if row is None:
        return None
    key = None if row["thumbprint"] is None else SealedKey(row["private_key"], row["thumbprint"])
    return Rollover(key, row["made"] or 0.0, row["last_error"])


async def keep_next_key(connection: Connection, key: SealedKey) -> None:
    """Store the key that CAs are to be asked to take; of several monitors, the first one's is kept."""
    await connection.execute(
        "update acme_key_rollover set private_key = $1, thumbprint = $2, made_at = clock_timestamp(), last_error = null"
        " where thumbprint is null",
        key.private_key,
        key.thumbprint,
    )


async def record_rollover_error(connection: Connection, words: str) -> None:
    """Store what keeps the change of the key from going on."""
    await connection.execute("update acme_key_rollover set last_error = $1", words)


async def finish_rollover(connection: Connection, thumbprint: str) -> None:
    """Put the next key, which has this thumbprint and every CA has taken, in place of the one so far.

    The accounts go with it, so that none is registered again.
    """
    await connection.execute(
        "update acme_accounts set thumbprint = $1 from acme_key_rollover next, acme_key key"
        " where next.thumbprint = $1 and acme_accounts.thumbprint = key.thumbprint",
        thumbprint,
    )
    await connection.execute(
        "update acme_key set private_key = next.private_key, thumbprint = next.thumbprint, created_at = now()"
        " from acme_key_rollover next where next.thumbprint = $1",
        thumbprint,
    )
    await connection.execute("delete from acme_key_rollover where thumbprint = $1", thumbprint)


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
