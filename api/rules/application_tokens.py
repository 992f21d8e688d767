"""Creates the identifiers, secrets and tokens of an application. No storage, no network.

The code that creates a secret shows it once; after that it exists only sealed (`common.secrets`), each under
the identity of its row and purpose (`common.db.applications`).
"""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

import jwt

SecretChange: TypeAlias = Literal["on", "off", "rotate"]
"""``rotate`` makes a new secret; ``on`` does where there is none."""

ServiceAuthChange: TypeAlias = Literal["on", "off", "rotate", "finish", "cancel"]
"""``on`` has the value sent at once, where none is. ``rotate`` makes the next value, which edges do not send yet, in
place of a next one before it; where none is sent, it is ``on``. ``finish`` has the next value sent in place of the one
so far, ``cancel`` forgets it, ``off`` forgets both."""

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
TOKEN_LIFETIME = timedelta(minutes=60)
PREVIOUS_SECRET_LIFETIME = timedelta(hours=24)
WEBHOOK_SECRET_PREFIX = "whsec_"  # noqa: S105 - Standard Webhooks' form: the prefix, then base64


def is_id(text: str) -> bool:
    """Return whether a text can be an application's id."""
    return _ID.fullmatch(text) is not None


def mint_id() -> str:
    """Make a random id for an application."""
    return secrets.token_hex(8)


def mint_client_secret() -> str:
    """Make the secret that an application signs its tokens with."""
    return secrets.token_hex(32)  # in hex, so that it never looks like an option on a command line


def mint_webhook_secret() -> str:
    """Make the secret that webhooks are signed with, in Standard Webhooks' form."""
    return WEBHOOK_SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def mint_service_auth() -> str:
    """Make a value of X-Service-Auth."""
    return secrets.token_hex(32)


def mint_api_token(
    application_id: str,
    client_secret: str,
    now: datetime,
    *,
    lifetime: timedelta = TOKEN_LIFETIME,
    claims: Mapping[str, str] | None = None,
) -> str:
    """Make a JWT that opens the API for `lifetime`, signed with HS256 as a partner would sign it.

    `claims`: what restricts it, such as ``scope``.
    """
    given = {"applicationId": application_id, "iat": now, "exp": now + lifetime} | dict(claims or {})
    return jwt.encode(given, client_secret, algorithm="HS256")
