"""Passwords: hashing with argon2id (RFC 9106) and the rule that a new one must meet. Holds no password.

A hash takes some 50 ms and 46 MiB on purpose (OWASP's parameters): run these in a thread, and bound how many run at
once.
"""

from __future__ import annotations

import argon2

from common.errors import FrontageError

FEWEST_CHARACTERS = 12
MOST_BYTES = 1024

_HASHER = argon2.PasswordHasher(time_cost=1, memory_cost=46 * 1024, parallelism=1)


class PasswordRefused(FrontageError):
    """A new password that is too easily guessed, or too long; in words for its owner."""


def hash_password(password: str) -> str:
    """Hash a new password into the PHC string to store.

    Raises: `PasswordRefused`.
    """
    if len(password) < FEWEST_CHARACTERS:
        raise PasswordRefused(f"a password has at least {FEWEST_CHARACTERS} characters")
    if len(password.encode()) > MOST_BYTES:
        raise PasswordRefused(f"a password has at most {MOST_BYTES} bytes")
    if len(set(password)) < 5:
        raise PasswordRefused("a password has at least five different characters")
    return _HASHER.hash(password)


def verify_password(password: str, stored: str | None) -> bool:
    """Return whether `stored` was made from `password`.

    It takes as long where there is no hash, so that the time does not disclose which users exist.
    """
    if len(password.encode()) > MOST_BYTES:
        return False
    try:
        return _HASHER.verify(stored or _NO_HASH, password) and stored is not None
    except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError):
        return False


_NO_HASH = (  # of a random password that was thrown away; with the parameters above
    "$argon2id$v=19$m=47104,t=1,p=1$STdTAPdQwng9qXmnggxcyw$ZOU+6Ej8OifRM3MuhQM8LBRldHrlrbwMnXXK0fkZNqY"
)
