"""Tokens."""

from __future__ import annotations

from typing_extensions import TypedDict


class Token(TypedDict):
    """A token."""

    auth_token: str
    """A JWT, for the `Authorization` header, as `Bearer <JWT>`."""
