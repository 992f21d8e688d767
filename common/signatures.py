"""The request signature: how an origin knows that a request came through us, and for what it was meant.

The field is ``X-Service-Signature: t=<unix seconds>,v1=<hex>``, with a second ``v1`` while keys are being rotated.
Each ``v1`` is the HMAC-SHA256, under one key, of four lines joined by ``\\n``:

    the time, as after ``t=``
    the method
    the customer's domain, as in ``x-service-forwarded-host``
    the request target, path and query, byte for byte as the origin receives it

None of them can hold a line feed, so no two requests spell the same text. The key is the text that was printed when
it was made, as ASCII. Bodies are not covered. The handbook has verifiers.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from datetime import timedelta

PREVIOUS_KEY_LIFETIME = timedelta(hours=24)


def mint_key() -> str:
    """Make a random signature key, as text."""
    return secrets.token_hex(32)


def sign(keys: Iterable[bytes], *, at: int, method: bytes, domain: bytes, target: bytes) -> bytes:
    """Return the field's value, with a signature for each key; `at` is in unix seconds."""
    text = b"%d\n%b\n%b\n%b" % (at, method, domain, target)
    return b"t=%d" % at + b"".join(b",v1=" + hmac.digest(key, text, "sha256").hex().encode() for key in keys)
