"""Users, organisations and memberships as rows: who may sign in to the dashboard, and what they may see there.

Owns the SQL of ``users``, ``organisations`` and ``memberships``; rights are given by `common.db.grants`. What a role
permits is decided by `common.accounts`.
Functions that write need a transaction; the caller opens it.
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import asyncpg
from asyncpg import Record

from common.accounts import Role
from common.db.session import Connection
from common.errors import FrontageError


class AlreadyExists(FrontageError):
    """A user with this address, or an organisation with this name, is there already."""


class LastOwner(FrontageError):
    """The organisation would be without an owner."""


class TooManyMembers(FrontageError):
    """The organisation has as many members as it may have."""


@dataclass(frozen=True, slots=True)
class User:
    """A user. `email` is in lower case. `has_password`: else only a link signs in.

    `credentials_ended_at`: when the user last gained rights, and all that signed it in before ended.
    """

    id: str
    email: str
    is_operator: bool
    has_password: bool
    created_at: datetime
    last_sign_in_at: datetime | None
    credentials_ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Organisation:
    """An organisation, which owns applications and has users as members."""

    id: str
    name: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Membership:
    """An organisation that a user belongs to, and the user's role there."""

    organisation: Organisation
    role: Role


@dataclass(frozen=True, slots=True)
class Member:
    """A user that belongs to an organisation, and the user's role there."""

    user: User
    role: Role


MOST_MEMBERS = 500
"""The most members of one organisation."""

USER_COLUMNS = (
    "users.id, email, is_operator, password_hash is not null as has_password, users.created_at, last_sign_in_at,"
    " credentials_ended_at"
)


async def create_user(connection: Connection, email: str, *, is_operator: bool = False) -> User:
    """Create a user without a password; `email` as `common.accounts.parse_email` returns it.

    Raises: `AlreadyExists`.
    """
    row = await connection.fetchrow(
        "insert into users (id, email, is_operator) values ($1, $2, $3)"
        f" on conflict (email) do nothing returning {USER_COLUMNS}",
        f"usr_{secrets.token_hex(8)}",
        email,
        is_operator,
    )
    if row is None:
        raise AlreadyExists(f"there is a user {email} already")
    return User(**row)


async def find_user(connection: Connection, email: str) -> User | None:
    """Return the user with this address, or None."""
    row = await connection.fetchrow(f"select {USER_COLUMNS} from users where email = $1", email)
    return User(**row) if row else None


async def get_user(connection: Connection, user_id: str) -> User | None:
    """Return the user with this id, or None."""
    row = await connection.fetchrow(f"select {USER_COLUMNS} from users where id = $1", user_id)
    return User(**row) if row else None


async def get_password_hash(connection: Connection, user_id: str) -> str | None:
    """Return the hash of the user's password; None without a password or a user."""
    stored: str | None = await connection.fetchval("select password_hash from users where id = $1", user_id)
    return stored


async def set_password_hash(connection: Connection, user_id: str, password_hash: str) -> None:
    """Replace the hash of the user's password."""
    await connection.execute("update users set password_hash = $2 where id = $1", user_id, password_hash)


async def delete_user(connection: Connection, user: User) -> None:
    """Delete the user, with memberships, sessions and links.

    Raises: `LastOwner`.
    """
    for membership in await list_memberships(connection, user.id):
        await refuse_last_owner(connection, membership.organisation.id, Member(user, membership.role))
    await connection.execute("delete from users where id = $1", user.id)


async def list_users(connection: Connection, *, after: str = "", most: int) -> list[User]:
    """Return a page of the users, by address: those after `after`."""
    rows = await connection.fetch(
        f"select {USER_COLUMNS} from users where email > $1 order by email limit $2",
        after,
        most,
    )
    return [User(**row) for row in rows]


async def create_organisation(connection: Connection, name: str) -> Organisation:
    """Create an organisation.

    Raises: `AlreadyExists`.
    """
    try:
        async with connection.transaction():
            row = await connection.fetchrow(
                "insert into organisations (id, name) values ($1, $2) returning id, name, created_at",
                f"org_{secrets.token_hex(8)}",
                name,
            )
    except asyncpg.UniqueViolationError as error:
        raise AlreadyExists(f"there is an organisation {name} already") from error
    assert row is not None, "an insert returns its row"
    return Organisation(**row)


async def find_organisation(connection: Connection, text: str) -> Organisation | None:
    """Return the organisation with this id or this name, or None."""
    row = await connection.fetchrow("select id, name, created_at from organisations where id = $1 or name = $1", text)
    return Organisation(**row) if row else None


async def get_organisation(connection: Connection, organisation_id: str) -> Organisation | None:
    """Return the organisation with this id, or None."""
    row = await connection.fetchrow("select id, name, created_at from organisations where id = $1", organisation_id)
    return Organisation(**row) if row else None


async def list_organisations(
    connection: Connection, *, after: str = "", most: int, organisation_ids: Sequence[str] | None = None
) -> list[Organisation]:
    """Return a page of the organisations, by name: those after `after`, of the given ones or all."""
    ours = "$3::text[] is null" if organisation_ids is None else "id = any($3::text[])"
    rows = await connection.fetch(
        f"select id, name, created_at from organisations where name > $1 and {ours} order by name limit $2",
        after,
        most,
        organisation_ids,
    )
    return [Organisation(**row) for row in rows]


async def list_memberships(connection: Connection, user_id: str) -> list[Membership]:
    """Return the user's memberships, by the organisation's name."""
    rows = await connection.fetch(
        "select organisations.id, name, organisations.created_at, role from memberships"
        " join organisations on organisations.id = organisation_id where user_id = $1 order by name",
        user_id,
    )
    return [Membership(Organisation(row["id"], row["name"], row["created_at"]), row["role"]) for row in rows]


async def list_members(
    connection: Connection, organisation_id: str, *, after: str = "", most: int = MOST_MEMBERS
) -> list[Member]:
    """Return a page of the organisation's members, by address: those after `after`."""
    rows = await connection.fetch(
        f"select {USER_COLUMNS}, role from memberships join users on users.id = user_id"
        " where organisation_id = $1 and email > $2 order by email limit $3",
        organisation_id,
        after,
        most,
    )
    return [_member(row) for row in rows]


async def refuse_full(connection: Connection, organisation_id: str) -> None:
    """Refuse one more member than an organisation may have.

    The organisation is locked until the transaction ends, so that two requests do not add the last one.

    Raises: `TooManyMembers`.
    """
    name = await _lock_organisation(connection, organisation_id)
    count: int = await connection.fetchval(
        "select count(*) from memberships where organisation_id = $1", organisation_id
    )
    if count >= MOST_MEMBERS:
        raise TooManyMembers(f"{name} has {MOST_MEMBERS} members, which is most")


async def get_member(connection: Connection, organisation_id: str, user_id: str) -> Member | None:
    """Return the user as a member of the organisation, or None if it is none."""
    row = await connection.fetchrow(
        f"select {USER_COLUMNS}, role from memberships join users on users.id = user_id"
        " where organisation_id = $1 and user_id = $2",
        organisation_id,
        user_id,
    )
    return _member(row) if row else None


async def remove_membership(connection: Connection, user_id: str, organisation_id: str) -> bool:
    """End the user's membership, and return whether there was one."""
    status = await connection.execute(
        "delete from memberships where user_id = $1 and organisation_id = $2", user_id, organisation_id
    )
    return status == "DELETE 1"


async def refuse_last_owner(connection: Connection, organisation_id: str, member: Member) -> None:
    """Refuse to let the organisation's only owner go, or have a lower role.

    The organisation is locked until the transaction ends, so that two owners do not leave at the same time.

    Raises: `LastOwner`.
    """
    name = await _lock_organisation(connection, organisation_id)
    owners: list[str] = await connection.fetchval(
        "select coalesce(array_agg(user_id), '{}') from memberships where organisation_id = $1 and role = 'owner'",
        organisation_id,
    )
    if owners == [member.user.id]:
        raise LastOwner(f"{member.user.email} is the only owner of {name}: make another member an owner first")


async def _lock_organisation(connection: Connection, organisation_id: str) -> str | None:
    """Lock the organisation until the transaction ends, and return its name."""
    name: str | None = await connection.fetchval(
        "select name from organisations where id = $1 for update", organisation_id
    )
    return name


def _member(row: Record) -> Member:
    values = dict(row)
    role = values.pop("role")
    return Member(User(**values), role)
