"""HTTP-01 challenges, answered without knowing any (RFC 8555 §8.3).

Whoever orders a certificate proves that it has the domain by having ``TOKEN.THUMBPRINT`` found at the token's path. The
thumbprint is that of our one account key and public: only its holder gains by the answer. So an edge needs no tokens,
and answers for any; which requests are ours to answer is `edge.replica.challenges`' to say. Pure.
"""

from __future__ import annotations

import re
from typing import Final

from edge.http.request import RequestHead

PREFIX: Final = b"/.well-known/acme-challenge/"
_TOKEN: Final = re.compile(rb"[A-Za-z0-9_-]{1,256}")  # base64url without padding


def is_challenge(head: RequestHead) -> bool:
    """Whether somebody looks for an answer. Challenges are never sent on to HTTPS: the certificate may be missing."""
    return head.target.startswith(PREFIX)


def key_authorization(head: RequestHead, thumbprint: bytes) -> bytes | None:
    """The body that answers; None when what is asked for is no token."""
    token = head.path[len(PREFIX) :]
    if head.method not in (b"GET", b"HEAD") or not _TOKEN.fullmatch(token):
        return None
    return token + b"." + thumbprint
