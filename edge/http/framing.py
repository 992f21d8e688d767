"""Where a message's body ends (RFC 9112 §6.3). Decided here, once, and re-stated by us on the other side.

A body is a number of bytes, or one of two ways of not knowing it yet. Anything two readers could understand
differently is refused: it is how requests are smuggled (RFC 9112 §11.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from edge.http.error_responses import BAD_REQUEST, UNKNOWN_CODING, Rejected

CHUNKED: Final = -1
UNTIL_CLOSE: Final = -2

_NO_BODY_STATUSES: Final = frozenset({204, 304})
_MAX_LENGTH_DIGITS: Final = 18  # below 2**63 whatever the digits


def request_body(minor: int, lengths: Sequence[bytes], codings: Sequence[bytes]) -> int:
    """Return the bytes of a request's body, or `CHUNKED`; 0 where nothing announces one.

    `lengths` and `codings` are the values of all Content-Length and Transfer-Encoding fields, in order.
    Raises: `Rejected` (400, 501 for a coding we do not know).
    """
    if not codings:
        return content_length(lengths) if lengths else 0
    if lengths or minor == 0:
        # RFC 9112 §6.1: both together, or a coding in HTTP/1.0, "ought to be handled as an error".
        raise Rejected(BAD_REQUEST)
    return transfer_coding(codings)


def response_body(status: int, method: bytes, minor: int, lengths: Sequence[bytes], codings: Sequence[bytes]) -> int:
    """Return the bytes of a response's body, `CHUNKED` or `UNTIL_CLOSE` (RFC 9112 §6.3, in its order).

    Raises: `Rejected` for what no two readers agree upon, even where no body follows.
    """
    body = UNTIL_CLOSE
    if codings:
        if lengths or minor == 0:
            raise Rejected(BAD_REQUEST)
        body = transfer_coding(codings)
    elif lengths:
        body = content_length(lengths)
    return 0 if status < 200 or status in _NO_BODY_STATUSES or method == b"HEAD" else body


def content_length(values: Sequence[bytes]) -> int:
    """Return the one length that all `values` state.

    Repeated equal ones are one (RFC 9110 §8.6). Raises: `Rejected` for others.
    """
    if len(values) == 1 and values[0].isdigit() and len(values[0]) <= _MAX_LENGTH_DIGITS:
        return int(values[0])
    stated = {part.strip(b" \t") for value in values for part in value.split(b",")}
    length = stated.pop()
    if stated or not length.isdigit() or len(length) > _MAX_LENGTH_DIGITS:
        raise Rejected(BAD_REQUEST)
    return int(length)


def transfer_coding(values: Sequence[bytes]) -> int:
    """Return `CHUNKED`, if that is all there is: said once, in one field, and nothing around it.

    Raises: `Rejected` for anything else.
    """
    if len(values) == 1 and values[0].lower() == b"chunked":
        return CHUNKED
    codings = [coding.strip(b" \t").lower() for value in values for coding in value.split(b",")]
    if len(values) > 1 or b"chunked" in codings[:-1]:
        raise Rejected(BAD_REQUEST)
    raise Rejected(UNKNOWN_CODING)
