"""What users may do, and the tokens that their sessions, links and API keys are made of.

Rules
    a viewer sees the applications of the organisation, never a secret
    a developer also changes domains, settings and secrets, and has webhooks sent again
    an owner also creates and deletes applications and decides who is a member
    an operator may do all of it with every application, and sees the installation itself
    an API key permits what its user may do at the time of the request, up to the permission that the key was made with
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

from common.errors import FrontageError

Role: TypeAlias = Literal["owner", "developer", "viewer"]
ROLES: tuple[Role, ...] = get_args(Role)

_EMAIL = re.compile(r"[^@\s\x00-\x1f<>\"]{1,64}@[^@\s\x00-\x1f<>\"]{1,189}")


class Permission(StrEnum):
    """Something that a role or an API key may permit."""

    VIEW = "view"
    CHANGE = "change"
    OWN = "own"


DECIDE_MEMBERS: Final = Permission.OWN
"""What it takes to decide who is a member: to add one, give a role, remove another, make a link. All may leave."""

PERMISSIONS: Mapping[Role, frozenset[Permission]] = MappingProxyType(
    {
        "viewer": frozenset({Permission.VIEW}),
        "developer": frozenset({Permission.VIEW, Permission.CHANGE}),
        "owner": frozenset(Permission),
    }
)


KEY_PERMISSIONS: Mapping[Permission, frozenset[Permission]] = MappingProxyType(
    {
        Permission.VIEW: PERMISSIONS["viewer"],
        Permission.CHANGE: PERMISSIONS["developer"],
        Permission.OWN: PERMISSIONS["owner"],
    }
)
"""What a key permits at most, by the permission that it was made with."""

KEY_PREFIX = "fkey_"
"""The prefix of every API key, so that scanners for leaked secrets recognise one."""


class InvalidEmail(FrontageError):
    """Text that is no address of a user."""


def parse_email(text: str) -> str:
    """Return an e-mail address in lower case, without blanks around it.

    Raises: `InvalidEmail`.
    """
    email = text.strip().lower()
    if not _EMAIL.fullmatch(email):
        raise InvalidEmail(f"{text[:100]!r} is no e-mail address")
    return email


def mint_random_token() -> str:
    """Make the secret of a session's cookie or of a link that signs in once, with 256 random bits."""
    return secrets.token_urlsafe(32)


def mint_key() -> str:
    """Make an API key with 256 random bits."""
    return KEY_PREFIX + secrets.token_urlsafe(32)


def hash_token(token: str) -> bytes:
    """Return the digest under which a token is stored.

    A plain digest is enough, because the token itself has enough entropy.
    """
    return hashlib.sha256(token.encode()).digest()


def sign_in_url(base_url: str, token: str) -> str:
    """Return the address at which a token signs its user in, once."""
    return f"{base_url}/dashboard/link/{token}"
