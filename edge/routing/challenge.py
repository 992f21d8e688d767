"""HTTP-01 challenges, answered without a stored token (RFC 8555 §8.3).

A CA validates a domain by requesting ``TOKEN.THUMBPRINT`` at the token's path. The thumbprint belongs to the one
account key of this installation and is public: only the holder of that key gains by the answer. So an edge stores no
tokens and answers any well-formed one; `edge.routing.certificates` decides which requests the edge answers itself.
"""

from __future__ import annotations

import re
from typing import Final

from edge.http.request import RequestHead

PREFIX: Final = b"/.well-known/acme-challenge/"
_MAY_CLIMB: Final = re.compile(rb"(?:[.]|%2e){2}", re.IGNORECASE)  # ".." leads elsewhere
_TOKEN: Final = re.compile(rb"[A-Za-z0-9_-]{1,256}")  # base64url without padding


def is_challenge(head: RequestHead) -> bool:
    """Return whether this is a challenge request.

    Challenges are never redirected to HTTPS: the certificate may be missing.
    """
    return head.target.startswith(PREFIX) and _MAY_CLIMB.search(head.path, len(PREFIX)) is None


def key_authorization(head: RequestHead, thumbprint: bytes) -> bytes | None:
    """Return the body that answers; None when what is asked for is no token."""
    token = head.path[len(PREFIX) :]
    if head.method not in (b"GET", b"HEAD") or not _TOKEN.fullmatch(token):
        return None
    return token + b"." + thumbprint
