"""Max-Forwards (RFC 9110 §7.6.2): how many more hops an OPTIONS request may take. TRACE is refused anyhow."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from edge.http import fields
from edge.http.error_responses import BAD_REQUEST, Rejected
from edge.http.request import RequestHead

_NAME: Final = b"max-forwards"
_FIELD: Final = re.compile(rb"\r\nmax-forwards:([^\r\n]*)", re.IGNORECASE)
_MAX_DIGITS: Final = 9
_OUR_MOST: Final = 256  # "the recipient's maximum supported value", and one for this hop


def count_down(head: RequestHead) -> RequestHead | None:
    """Return the request as it may go one hop on; None when it has come as far as it may, and is ours to answer.

    Raises: `Rejected` where the number is none, or said twice.
    """
    values = [value.strip(b" \t") for value in _FIELD.findall(head.kept)]
    if not values:
        return head
    if len(values) > 1 or not values[0].isdigit():
        raise Rejected(BAD_REQUEST)
    left = min(int(values[0]), _OUR_MOST) if len(values[0]) <= _MAX_DIGITS else _OUR_MOST
    if not left:
        return None
    return replace(head, kept=fields.without(head.kept, {_NAME}) + b"\r\nMax-Forwards: %d" % (left - 1))
