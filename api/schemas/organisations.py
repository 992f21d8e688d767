"""Organisations, their members, and the user's own account and keys: bodies and answers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from api.rights import KeyHolder
from api.schemas.bodies import Strict
from common.accounts import Role
from common.db.user_keys import UserKey
from common.db.users import Member, Organisation


class OrganisationCreation(Strict):
    name: str


class MemberChange(Strict):
    """A user that is missing is made."""

    email: str
    role: Role


def organisation(found: Organisation, role: Role | None = None) -> dict[str, Any]:
    return {"id": found.id, "name": found.name, "role": role, "createdAt": found.created_at}


def member(found: Member) -> dict[str, Any]:
    return {
        "id": found.user.id,
        "email": found.user.email,
        "role": found.role,
        "lastSignInAt": found.user.last_sign_in_at,
    }


def account(holder: KeyHolder, now: datetime) -> dict[str, Any]:
    return {
        "id": holder.user.id,
        "email": holder.user.email,
        "operator": holder.user.is_operator,
        "organisations": [organisation(each.organisation, each.role) for each in holder.rights.memberships],
        "key": key(holder.key, now),
    }


def keys(found: Sequence[UserKey], now: datetime) -> dict[str, Any]:
    return {"items": [key(each, now) for each in found]}


def key(found: UserKey, now: datetime) -> dict[str, Any]:
    """Never the key itself: only its hash is stored."""
    return {
        "id": found.id,
        "name": found.name,
        "permission": found.permission.value,
        "isExpired": found.expires_at <= now,
        "createdAt": found.created_at,
        "expiresAt": found.expires_at,
        "usedAt": found.used_at,
    }
