"""The edge probe: how the API learns that requests for a domain arrive at our edge, through whatever CDN.

The API asks ``http://<domain>/.well-known/frontage-probe/<nonce>`` with a random nonce; the edge answers with an
HMAC over both, which only a process with the master key can make. The answer proves that the request reached an
edge under that host name, and nothing else: it is no proof of the domain's ownership.
"""

from __future__ import annotations

import hmac
import re
import secrets

from common.secrets import Keyring

PROBE_PATH = "/.well-known/frontage-probe/"
CHALLENGE_PROBE_PATH = "/.well-known/acme-challenge/frontage-probe-"
"""Where a monitor asks, so that the probe takes the very way of a CA's request for an HTTP-01 challenge."""
_NONCE = re.compile(r"[A-Za-z0-9_-]{16,64}")


def new_nonce() -> str:
    """Make a random nonce for one probe."""
    return secrets.token_urlsafe(24)


def probe_answer(keyring: Keyring, domain: str, nonce: str) -> bytes | None:
    """Return the body that answers a probe for `domain` (canonical form), or None for a nonce that is not ours."""
    if not _NONCE.fullmatch(nonce):
        return None
    message = f"{nonce}.{domain}".encode()
    return hmac.new(keyring.derive("edge-probe"), message, "sha256").hexdigest().encode()
