"""Passkeys as rows. Owns the SQL of ``passkeys`` and ``answered_challenges``.

Rules
    a passkey belongs to one user and goes with it; a user has at most `MOST_OF_USER`
    an assertion's sign count is above the stored one, unless the authenticator counts nothing (WebAuthn §6.1.1): a
        lower one is the sign of a copied authenticator
    a challenge is accepted once: its hash is stored with what it permitted, in the same transaction

Functions that write need a transaction; the caller opens it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from common.db.session import Connection

MOST_OF_USER = 20


@dataclass(frozen=True, slots=True)
class Passkey:
    """A passkey as shown to its user."""

    credential_id: bytes
    name: str
    created_at: datetime
    used_at: datetime | None

    @property
    def id(self) -> str:
        """Return the credential's id in hexadecimal, for forms and commands."""
        return self.credential_id.hex()


@dataclass(frozen=True, slots=True)
class StoredKey:
    """The stored part of a passkey, with which an assertion is verified. `public_key` is a COSE_Key."""

    user_id: str
    email: str
    name: str
    public_key: bytes


async def add(
    connection: Connection, user_id: str, credential_id: bytes, public_key: bytes, sign_count: int, name: str
) -> bool:
    """Store a passkey, and return False when the user has as many as are allowed or the credential is registered."""
    await connection.execute("select from users where id = $1 for update", user_id)
    status = await connection.execute(
        "insert into passkeys (credential_id, user_id, public_key, sign_count, name)"
        " select $2, $1, $3, $4, $5 where (select count(*) from passkeys where user_id = $1) < $6"
        " on conflict (credential_id) do nothing",
        user_id,
        credential_id,
        public_key,
        sign_count,
        name,
        MOST_OF_USER,
    )
    return status == "INSERT 0 1"


async def list_passkeys(connection: Connection, user_id: str) -> list[Passkey]:
    """Return the user's passkeys, the oldest first."""
    rows = await connection.fetch(
        "select credential_id, name, created_at, used_at from passkeys where user_id = $1"
        " order by created_at, credential_id limit $2",
        user_id,
        MOST_OF_USER,
    )
    return [Passkey(**row) for row in rows]


async def find(connection: Connection, credential_id: bytes) -> StoredKey | None:
    """Return the passkey with this credential id and its user, or None."""
    row = await connection.fetchrow(
        "select user_id, email, name, public_key from passkeys join users on users.id = user_id"
        " where credential_id = $1",
        credential_id,
    )
    return StoredKey(**row) if row else None


async def note_use(connection: Connection, credential_id: bytes, sign_count: int) -> bool:
    """Note a use, and return False when the sign count is not above the stored one or the passkey was removed."""
    status = await connection.execute(
        "update passkeys set sign_count = $2, used_at = now()"
        " where credential_id = $1 and (sign_count < $2 or (sign_count = 0 and $2 = 0))",
        credential_id,
        sign_count,
    )
    return status == "UPDATE 1"


async def remove(connection: Connection, user_id: str, credential_id: bytes) -> str | None:
    """Remove the user's passkey, and return the name that it had; None when the user has no such passkey."""
    name: str | None = await connection.fetchval(
        "delete from passkeys where user_id = $1 and credential_id = $2 returning name", user_id, credential_id
    )
    return name


async def use_challenge(connection: Connection, challenge_hash: bytes) -> bool:
    """Mark the challenge as used, and return False when it was used before.

    A second use waits until the transaction of the first one ends.
    """
    status = await connection.execute(
        "insert into answered_challenges (challenge_hash) values ($1) on conflict do nothing", challenge_hash
    )
    return status == "INSERT 0 1"
