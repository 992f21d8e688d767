"""Accounts of an OpenID Connect provider, bound to users. Owns the SQL of ``oidc_subjects``."""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from common.db.session import Connection
from common.db.users import USER_COLUMNS, User


async def find_user(connection: Connection, issuer: str, subject: str) -> User | None:
    """Return the user that the account is bound to, locked until the transaction ends, or None."""
    row = await connection.fetchrow(
        f"select {USER_COLUMNS} from users join oidc_subjects on users.id = user_id"
        " where issuer = $1 and subject = $2 for update of users",
        issuer,
        subject,
    )
    return User(**row) if row else None


async def bind(connection: Connection, issuer: str, subject: str, user_id: str) -> bool:
    """Bind the account to the user, and return whether both were free for it."""
    status = await connection.execute(
        "insert into oidc_subjects (issuer, subject, user_id) values ($1, $2, $3) on conflict do nothing",
        issuer,
        subject,
        user_id,
    )
    return status == "INSERT 0 1"


async def unbind(connection: Connection, user_id: str) -> int:
    """End the user's bindings, and return how many there were."""
    status = await connection.execute("delete from oidc_subjects where user_id = $1", user_id)
    return int(status.removeprefix("DELETE "))
