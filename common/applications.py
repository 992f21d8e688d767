"""What an application is given: its id, its secrets, and tokens made with them. Pure: stores nothing, asks nobody.

Secrets are shown once, by whoever mints them; after that they exist only sealed (`common.secrets`), each under
the identity of its row and purpose (`common.db.applications`).
"""

from __future__ import annotations

import base64
import secrets
from datetime import datetime, timedelta
from urllib.parse import urlsplit

import jwt

TOKEN_LIFETIME = timedelta(minutes=60)
PREVIOUS_SECRET_LIFETIME = timedelta(hours=24)
WEBHOOK_SECRET_PREFIX = "whsec_"  # noqa: S105 - Standard Webhooks' form: the prefix, then base64


def mint_id() -> str:
    return secrets.token_hex(8)


def mint_client_secret() -> str:
    return secrets.token_hex(32)  # in hex, so that it never looks like an option on a command line


def mint_webhook_secret() -> str:
    return WEBHOOK_SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def mint_service_auth() -> str:
    """The value of X-Service-Auth."""
    return secrets.token_hex(32)


def mint_token(application_id: str, client_secret: str, now: datetime) -> str:
    """A JWT that opens the API for `TOKEN_LIFETIME`, signed with HS256 as a partner would sign it."""
    claims = {"applicationId": application_id, "iat": now, "exp": now + TOKEN_LIFETIME}
    return jwt.encode(claims, client_secret, algorithm="HS256")


def parse_web_address(text: str) -> str:
    """`text` when it is an http or https URL with a host and no userinfo, query or fragment.

    Raises: ValueError that says what is wrong. Whether the address may be dialled is asked where it is dialled.
    """
    url = urlsplit(text)
    if url.scheme not in ("http", "https"):
        raise ValueError("expected a URL that begins with http:// or https://")
    if not url.hostname:
        raise ValueError("expected a URL with a host")
    if url.username is not None or url.password is not None:
        raise ValueError("a URL must not carry a user name or password")
    if "?" in text or "#" in text:
        raise ValueError("a URL must not carry a query or fragment")
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("a URL has only printable ASCII characters; percent-encode the others")
    _ = url.port  # raises ValueError when it is no port
    return text
