"""Rights that users are given: memberships, and the rights of operators. Owns the SQL that writes either.

Rules
    a gain of rights ends, in its transaction, all that signed the user in before: sessions, links, API keys, passkeys
        and the password. The owner of one organisation can have made each of them, and none may open another
        organisation's applications, or the installation. The caller makes a new link (`common.db.sessions`)
    a gain is a membership; a higher role, for a user that belongs to other organisations too; an operator's rights
    a higher role in the user's only organisation is none: its own owner gives it, and could have made all that signs
        the user in
    an operator gains nothing: it may do everything already

Functions that write need a transaction; the caller opens it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from common.accounts import PERMISSIONS, Role
from common.db.session import Connection
from common.db.users import User, list_memberships, refuse_full

Ended: TypeAlias = Mapping[str, int]
"""What a gain ended, by kind, such as ``sessions``: those of which there were any."""


async def give_role(connection: Connection, user: User, organisation_id: str, role: Role) -> Ended | None:
    """Make the user a member, or change the member's role; return, for a gain, what it ended.

    Raises: `TooManyMembers`.
    """
    is_operator = await _lock(connection, user)
    roles = {each.organisation.id: each.role for each in await list_memberships(connection, user.id)}
    if organisation_id not in roles:
        await refuse_full(connection, organisation_id)
    await connection.execute(
        "insert into memberships (user_id, organisation_id, role) values ($1, $2, $3)"
        " on conflict (user_id, organisation_id) do update set role = excluded.role",
        user.id,
        organisation_id,
        role,
    )
    is_gain = not is_operator and is_gain_of(roles, organisation_id, role)
    return await _end_credentials(connection, user) if is_gain else None


def is_gain_of(roles: dict[str, Role], organisation_id: str, role: Role) -> bool:
    """Return whether `role` is a gain for a user with these roles, by organisation."""
    before = roles.get(organisation_id)
    if before is None:
        return True
    return len(roles) > 1 and PERMISSIONS[role] > PERMISSIONS[before]


async def set_operator(connection: Connection, user: User, *, is_operator: bool) -> Ended | None:
    """Give the user an operator's rights, or end them; return, for a gain, what it ended."""
    was_operator = await _lock(connection, user)
    await connection.execute("update users set is_operator = $2 where id = $1", user.id, is_operator)
    is_gain = is_operator and not was_operator
    return await _end_credentials(connection, user) if is_gain else None


async def _lock(connection: Connection, user: User) -> bool:
    """Lock the user, so that it cannot sign in or make a key meanwhile, and return whether it is an operator."""
    is_operator: bool = await connection.fetchval("select is_operator from users where id = $1 for update", user.id)
    return is_operator


async def _end_credentials(connection: Connection, user: User) -> Ended:
    """End all that signed the user in, and return how much there was, by kind.

    Sessions keep their rows until they expire, so that the dashboard can say in their browsers why they ended. For a
    program that does not know ``has_ended`` they were idle for too long.
    """
    row = await connection.fetchrow(
        """
        with links as (delete from sign_in_links where user_id = $1 returning 1),
            ended as (
                update sessions set has_ended = true, seen_at = '-infinity' where user_id = $1 and not has_ended
                returning 1),
            keys as (delete from user_keys where user_id = $1 returning 1),
            removed as (delete from passkeys where user_id = $1 returning 1)
        select (select count(*) from ended) as sessions, (select count(*) from keys) as keys,
            (select count(*) from removed) as passkeys, (select count(*) from links) as links,
            (select password_hash is not null from users where id = $1) as password
        """,
        user.id,
    )
    await connection.execute(
        "update users set password_hash = null, credentials_ended_at = clock_timestamp() where id = $1", user.id
    )
    return {what: count for what, count in (row or {}).items() if count}
