"""Sessions of the dashboard, and links that sign in once, as rows. Owns the SQL of ``sessions`` and ``sign_in_links``.

Rules
    only hashes of tokens are stored (`common.accounts.hash_token`)
    a session ends `LIFETIME` after sign-in, or `IDLE_HOURS` after the last request; some are started for less
    a link works once, within its time; another one takes its place
    a link that was made with an API key, and the session that it opens, end with that key, and neither can make what
        would outlast it (`api.rights`)
    a gain of rights ends sessions and links (`common.db.grants`)
    a session is confirmed for `CONFIRMED_MINUTES` after sign-in, and after each further proof of its user
    a change of password ends the user's other sessions and links in the same transaction
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from common.db import user_keys
from common.db.session import UNAWAITED, Connection
from common.db.users import USER_COLUMNS, User

LIFETIME = timedelta(days=7)
IDLE_HOURS = 12
LINK_LIFETIME = timedelta(hours=24)
CONFIRMED_MINUTES = 10
"""What can lock a user out, or let another one in for good, needs a confirmed session."""
MOST_SESSIONS = 50
"""The most sessions of one user; a further sign-in ends the oldest."""

_SEEN_EVERY = "1 minute"
_VALID = f"not has_ended and sessions.expires_at > now() and seen_at > now() - interval '{IDLE_HOURS} hours'"


@dataclass(frozen=True, slots=True)
class Session:
    """A session as shown to its user. `id` is the beginning of the stored hash, which opens nothing."""

    id: str
    address: str
    user_agent: str
    created_at: datetime
    seen_at: datetime
    is_current: bool


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session that has not ended. `by_key`: the API key that its link was made with."""

    user: User
    by_key: str | None


@dataclass(frozen=True, slots=True)
class UsedLink:
    """A link that was used up. `by_key`: the API key that it was made with."""

    user_id: str
    by_key: str | None


async def start(
    connection: Connection,
    token_hash: bytes,
    user: User,
    address: str,
    user_agent: str,
    *,
    lifetime: timedelta = LIFETIME,
    by_key: str | None = None,
) -> bool:
    """Sign the user in for `lifetime` at most, and return whether that was allowed. Needs a transaction.

    It is not, when the user has gained rights since `user` was read, or the key has gone: what proved the user has
    ended.
    """
    signed_in = await connection.execute(
        "update users set last_sign_in_at = now() where id = $1 and credentials_ended_at is not distinct from $2",
        user.id,
        user.credentials_ended_at,
    )
    if signed_in == "UPDATE 0" or (by_key is not None and await user_keys.hold(connection, by_key) is None):
        return False
    await connection.execute(
        "insert into sessions (token_hash, user_id, address, user_agent, by_key, expires_at)"
        " values ($1, $2, $3, $4, $5, least(now() + $6, (select expires_at from user_keys where id = $5)))",
        token_hash,
        user.id,
        address[:64],
        user_agent[:200],
        by_key,
        lifetime,
    )
    await connection.execute(
        "delete from sessions where token_hash in ("
        " select token_hash from sessions where user_id = $1 order by created_at desc, token_hash offset $2)",
        user.id,
        MOST_SESSIONS,
    )
    return True


async def find(connection: Connection, token_hash: bytes) -> OpenSession | None:
    """Return the session with this token, or None when it has ended; note that it was used."""
    row = await connection.fetchrow(
        f"""
        with seen as (
            update sessions set seen_at = now()
            where token_hash = $1 and {_VALID} and seen_at < now() - interval '{_SEEN_EVERY}'
            returning {UNAWAITED}
        )
        select {USER_COLUMNS}, by_key from sessions join users on users.id = user_id where token_hash = $1 and {_VALID}
        """,
        token_hash,
    )
    if row is None:
        return None
    values = dict(row)
    by_key = values.pop("by_key")
    return OpenSession(User(**values), by_key)


async def has_ended_by_gain(connection: Connection, token_hash: bytes) -> bool:
    """Return whether a gain of rights ended the session, not its time."""
    found: bool | None = await connection.fetchval("select has_ended from sessions where token_hash = $1", token_hash)
    return bool(found)


async def hold(connection: Connection, token_hash: bytes) -> bool:
    """Return whether the session is open; it stays so, and its user gains no rights, until the transaction ends."""
    await connection.execute(
        "select from users where id = (select user_id from sessions where token_hash = $1) for update", token_hash
    )
    found: bool = await connection.fetchval(
        f"select exists (select from sessions where token_hash = $1 and {_VALID})", token_hash
    )
    return found


async def hold_confirmed(connection: Connection, token_hash: bytes) -> bool:
    """Return whether the session is open and confirmed; it stays open until the transaction ends, as by `hold`."""
    return await hold(connection, token_hash) and await is_confirmed(connection, token_hash)


async def is_confirmed(connection: Connection, token_hash: bytes) -> bool:
    """Return whether the user proved to be there within the last `CONFIRMED_MINUTES`."""
    found: bool | None = await connection.fetchval(
        "select coalesce(confirmed_at, created_at) > now() - make_interval(mins => $2)"
        " from sessions where token_hash = $1",
        token_hash,
        CONFIRMED_MINUTES,
    )
    return bool(found)


async def confirm(connection: Connection, token_hash: bytes) -> None:
    """Note that the user of the session has just proved to be there."""
    await connection.execute("update sessions set confirmed_at = now() where token_hash = $1", token_hash)


async def end(connection: Connection, token_hash: bytes) -> None:
    """End the session with this token."""
    await connection.execute("delete from sessions where token_hash = $1", token_hash)


async def end_one(connection: Connection, user_id: str, session_id: str) -> bool:
    """End the user's session with this `Session.id`, and return whether there was one."""
    status = await connection.execute(
        "delete from sessions where user_id = $1 and left(encode(token_hash, 'hex'), 16) = $2", user_id, session_id
    )
    return status != "DELETE 0"


async def end_all(connection: Connection, user_id: str, *, but: bytes | None = None) -> int:
    """End the user's sessions, except the one with the hash `but`, and the user's links; return how many sessions."""
    await connection.execute("delete from sign_in_links where user_id = $1", user_id)
    status = await connection.execute(
        "delete from sessions where user_id = $1 and token_hash is distinct from $2", user_id, but
    )
    return int(status.removeprefix("DELETE "))


async def list_sessions(connection: Connection, user_id: str, current: bytes) -> list[Session]:
    """Return the user's sessions that have not ended, the latest first."""
    rows = await connection.fetch(
        "select left(encode(token_hash, 'hex'), 16) as id, address, user_agent, created_at, seen_at,"
        f" token_hash = $2 as is_current from sessions where user_id = $1 and {_VALID}"
        " order by created_at desc, token_hash limit $3",
        user_id,
        current,
        MOST_SESSIONS,
    )
    return [Session(**row) for row in rows]


async def create_link(
    connection: Connection, token_hash: bytes, user_id: str, lifetime: timedelta, *, by_key: str | None = None
) -> None:
    """Create a sign-in link, and revoke the user's earlier ones.

    `by_key`: the API key that it is made with, and ends with.
    """
    await connection.execute("delete from sign_in_links where user_id = $1", user_id)
    await connection.execute(
        "insert into sign_in_links (token_hash, user_id, by_key, expires_at)"
        " values ($1, $2, $3, least(now() + $4, (select expires_at from user_keys where id = $3)))",
        token_hash,
        user_id,
        by_key,
        lifetime,
    )


async def find_link(connection: Connection, token_hash: bytes) -> str | None:
    """Return the address of the user that the link would sign in, or None if it does not work."""
    email: str | None = await connection.fetchval(
        "select email from sign_in_links join users on users.id = user_id"
        " where token_hash = $1 and sign_in_links.expires_at > now()",
        token_hash,
    )
    return email


async def use_link(connection: Connection, token_hash: bytes) -> UsedLink | None:
    """Use the link up, and return which user it signs in; None if it does not work."""
    row = await connection.fetchrow(
        "delete from sign_in_links where token_hash = $1 and expires_at > now() returning user_id, by_key", token_hash
    )
    return UsedLink(**row) if row else None
