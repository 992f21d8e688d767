"""Trailer fields: which of those behind a chunked body go on (RFC 9110 §6.5.1).

A recipient may take trailers for part of the head. So nothing is forwarded that frames, routes, authenticates or
controls a message, nor what the edge would cut out of a head or state itself.
"""

from __future__ import annotations

import re
from typing import Final

from edge.http import fields
from edge.http.error_responses import HEAD_TOO_LARGE, Rejected
from edge.http.request import without_cut_fields

_NEVER: Final = frozenset(
    b"age authorization cache-control connection content-encoding content-length content-range content-type cookie date"
    b" expect expires host keep-alive location max-forwards proxy-authenticate proxy-authorization proxy-connection"
    b" retry-after set-cookie te trailer transfer-encoding upgrade vary via www-authenticate".split()
)
_NEVER_OF_A_REQUEST: Final = _NEVER | frozenset(
    b"http2-settings if-match if-modified-since if-none-match if-range if-unmodified-since origin pragma range"
    b" referer x-request-id".split()
)
_MOST_OF_A_REQUEST: Final = 100  # as many as a head may have by default
_NAME: Final = re.compile(fields.TOKEN + rb"+")


def for_client(block: bytes) -> bytes:
    """Return the trailers of a response that go on."""
    return fields.without(block, _NEVER)


def for_origin(block: bytes) -> bytes:
    """Return the trailers of a request that go on.

    Raises: `Rejected` where there are more than a head may have.
    """
    if not block:
        return b""
    if block.count(b"\r\n") > _MOST_OF_A_REQUEST:
        raise Rejected(HEAD_TOO_LARGE)
    return b"".join(b"\r\n" + line for line in without_cut_fields(block).split(b"\r\n")[1:] if _may_go_on(line))


def announced(names: bytes) -> bytes:
    """Return the value of a request's Trailer field as the origin gets it, b"" for none of its names."""
    listed = [name for part in names.split(b",") if _NAME.fullmatch(name := part.strip(b" \t"))]
    return b", ".join(name for name in listed[:_MOST_OF_A_REQUEST] if for_origin(b"\r\n%b:" % name))


def _may_go_on(line: bytes) -> bool:
    """Return whether a field may be forwarded; CGI cannot tell underscores from hyphens."""
    return line.partition(b":")[0].lower().replace(b"_", b"-") not in _NEVER_OF_A_REQUEST
