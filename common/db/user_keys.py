"""API keys of users as rows. Owns the SQL of ``user_keys``.

Rules
    only the hash of a key is stored (`common.accounts.hash_token`); the key itself is in the answer that made it
    a key belongs to one user and goes with it; a user has at most `MOST_OF_USER`
    every key expires, after at most `LONGEST_DAYS`, and is listed for another `SHOWN_DAYS`
    what a key opens is decided by its user's memberships at the time of the request: none is copied here
    a key of one application (`application_id`) opens that application alone, and is deleted with it
    with a key end the links that were made with it, and the sessions that those opened (`common.db.sessions`); when it
        is revoked, its flows, sharing links and registered configurations too

Functions that write need a transaction; the caller opens it.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime

from asyncpg import Record

from common.accounts import Permission
from common.db import key_products
from common.db.key_products import RemovedConfiguration
from common.db.session import UNAWAITED, Connection
from common.db.users import User

MOST_OF_USER = 20
LONGEST_DAYS = 365
DEFAULT_DAYS = 90
SHOWN_DAYS = 30

_COLUMNS = (
    "user_keys.id, user_keys.name, user_keys.permission, user_keys.created_at, user_keys.expires_at, user_keys.used_at,"
    " user_keys.application_id"
)
_USED_EVERY = "1 minute"


@dataclass(frozen=True, slots=True)
class UserKey:
    """An API key as shown to its owner. `permission`: what it opens at most. `used_at` is right to the minute."""

    id: str
    name: str
    permission: Permission
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None
    application_id: str | None = None
    """The only application that it opens; None for all that its user sees."""


@dataclass(frozen=True, slots=True)
class FoundKey:
    """An API key as sent with a request, and its user."""

    key: UserKey
    user: User
    is_expired: bool


async def add(
    connection: Connection,
    user: User,
    token_hash: bytes,
    name: str,
    permission: Permission,
    days: int,
    application_id: str | None = None,
) -> UserKey | None:
    """Store an API key that lasts `days` (1 to `LONGEST_DAYS`); None when the user has as many as are allowed."""
    await connection.execute("select from users where id = $1 for update", user.id)
    row = await connection.fetchrow(
        "insert into user_keys (id, token_hash, user_id, name, permission, expires_at, application_id)"  # noqa: S608
        " select $1, $2, $3, $4, $5, now() + make_interval(days => $6), $8"
        f" where (select count(*) from user_keys where user_id = $3) < $7 returning {_COLUMNS}",
        f"key_{secrets.token_hex(8)}",
        token_hash,
        user.id,
        name,
        permission.value,
        days,
        MOST_OF_USER,
        application_id,
    )
    if row is None:
        return None
    return _key(row)


async def find(connection: Connection, token_hash: bytes) -> FoundKey | None:
    """Return the key, expired or not, with its user, and note that it was used."""
    row = await connection.fetchrow(
        f"""
        with used as (
            update user_keys set used_at = now()
            where token_hash = $1 and expires_at > now()
                and coalesce(used_at, '-infinity') < now() - interval '{_USED_EVERY}'
            returning {UNAWAITED}
        )
        select {_COLUMNS}, expires_at <= now() as is_expired, users.id as user_id, email, is_operator,
            password_hash is not null as has_password, users.created_at as user_created_at, last_sign_in_at,
            credentials_ended_at
        from user_keys join users on users.id = user_id where token_hash = $1
        """,  # noqa: S608 - constants of this module
        token_hash,
    )
    if row is None:
        return None
    user = User(
        row["user_id"],
        row["email"],
        row["is_operator"],
        row["has_password"],
        row["user_created_at"],
        row["last_sign_in_at"],
        row["credentials_ended_at"],
    )
    return FoundKey(_key(row), user, row["is_expired"])


async def hold(connection: Connection, key_id: str) -> str | None:
    """Return the id of the user that has the key, and keep it until the transaction ends; None when it is gone."""
    user_id: str | None = await connection.fetchval("select user_id from user_keys where id = $1 for key share", key_id)
    return user_id


async def list_keys(connection: Connection, user_id: str) -> list[UserKey]:
    """Return the user's API keys, the oldest first."""
    rows = await connection.fetch(
        f"select {_COLUMNS} from user_keys where user_id = $1 order by created_at, id limit $2",  # noqa: S608
        user_id,
        MOST_OF_USER,
    )
    return [_key(row) for row in rows]


async def revoke(connection: Connection, user: User, key_id: str) -> tuple[str, list[RemovedConfiguration]] | None:
    """Revoke the key, with what it made (`common.db.key_products`), and return the name that it had.

    Beside the name stand the configurations that ended with the key. None when the user has no such key.
    """
    name: str | None = await connection.fetchval(
        "delete from user_keys where user_id = $1 and id = $2 returning name", user.id, key_id
    )
    return None if name is None else (name, await key_products.end_of_key(connection, key_id))


def _key(row: Record) -> UserKey:
    return UserKey(
        row["id"],
        row["name"],
        Permission(row["permission"]),
        row["created_at"],
        row["expires_at"],
        row["used_at"],
        row["application_id"],
    )
