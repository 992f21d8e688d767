"""Organisations, their members, and the user's own account and keys."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from typing_extensions import TypedDict

from common.accounts import Permission, Role
from common.db import users
from common.db.user_keys import UserKey


class Organisation(TypedDict):
    """An organisation."""

    id: str
    name: str
    role: Role | None
    """Of the user; null for an operator that is no member."""
    createdAt: datetime


class Member(TypedDict):
    """A member of an organisation."""

    id: str
    email: str
    role: Role
    lastSignInAt: datetime | None


class MemberLink(TypedDict):
    """A member that was saved."""

    message: str
    signInOnce: str | None
    """For a user that is new: signs in once, within a day; shown here alone."""


class SignInLink(TypedDict):
    """A link that signs a member in."""

    message: str
    signInOnce: str
    """Signs in once, within a day; shown here alone."""


class Key(TypedDict):
    """An API key of a user, without its secret."""

    id: str
    name: str
    permission: Permission
    """What it permits at most: to look, to change, or all that its user may do."""
    applicationId: str | None
    """The only application that it opens; null for all that its user sees."""
    isExpired: bool
    createdAt: datetime
    expiresAt: datetime
    usedAt: datetime | None
    """Right to the minute."""


class Account(TypedDict):
    """The user of the request."""

    id: str
    email: str
    operator: bool
    organisations: list[Organisation]
    key: Key
    """The one that opened this request."""


def organisation(found: users.Organisation, role: Role | None = None) -> Organisation:
    """Render an organisation, with the role that the user has there."""
    return {"id": found.id, "name": found.name, "role": role, "createdAt": found.created_at}


def member(found: users.Member) -> Member:
    """Render a member of an organisation."""
    return {
        "id": found.user.id,
        "email": found.user.email,
        "role": found.role,
        "lastSignInAt": found.user.last_sign_in_at,
    }


def account(user: users.User, memberships: Iterable[users.Membership], by: UserKey, now: datetime) -> Account:
    """Render the user of a request and the API key that opened it."""
    return {
        "id": user.id,
        "email": user.email,
        "operator": user.is_operator,
        "organisations": [organisation(each.organisation, each.role) for each in memberships],
        "key": key(by, now),
    }


def key(found: UserKey, now: datetime) -> Key:
    """Render an API key: never its secret, of which only the hash is stored."""
    return {
        "id": found.id,
        "name": found.name,
        "permission": found.permission,
        "applicationId": found.application_id,
        "isExpired": found.expires_at <= now,
        "createdAt": found.created_at,
        "expiresAt": found.expires_at,
        "usedAt": found.used_at,
    }
