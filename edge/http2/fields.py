"""Fields of header blocks, judged once each (RFC 9113 §8.2, §8.3): a field in a table of HPACK is not judged again.

A field is a tuple ``(kind, line, name, value)``, where `line` is the field as it stands in a head of HTTP/1.1. The kind
says what `edge.http2.requests` must do about it.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from edge.http.fields import TOKEN

Field: TypeAlias = "tuple[int, bytes, bytes, bytes]"

REGULAR: Final = 0
COOKIE: Final = 1
HOST: Final = 2
PRIORITY: Final = 3
CONTENT_LENGTH: Final = 4
METHOD: Final = 5
SCHEME: Final = 6
AUTHORITY: Final = 7
PATH: Final = 8
MALFORMED: Final = 9
_TE: Final = -1  # REGULAR or MALFORMED

FIELD_OVERHEAD_BYTES: Final = 32  # RFC 7541 §4.1
LINE_OVERHEAD_BYTES: Final = 4  # CR LF colon blank

_KINDS: Final = {
    b"cookie": COOKIE,
    b"host": HOST,
    b":method": METHOD,
    b":scheme": SCHEME,
    b":authority": AUTHORITY,
    b":path": PATH,
    b"priority": PRIORITY,
    b"content-length": CONTENT_LENGTH,
    b"te": _TE,
    # §8.2.2: fields of a connection of HTTP/1.1
    b"connection": MALFORMED,
    b"proxy-connection": MALFORMED,
    b"keep-alive": MALFORMED,
    b"transfer-encoding": MALFORMED,
    b"upgrade": MALFORMED,
    **dict.fromkeys(
        b"accept accept-encoding accept-language user-agent referer cache-control content-type origin"
        b" sec-fetch-dest sec-fetch-mode sec-fetch-site sec-ch-ua sec-ch-ua-mobile sec-ch-ua-platform"
        b" upgrade-insecure-requests if-none-match if-modified-since range authorization pragma via".split(),
        REGULAR,
    ),
}
_NAME: Final = re.compile(TOKEN.replace(b"A-Z", b"") + rb"+")  # §8.2.1: no upper case
_BLANKS: Final = b" \t"
_NUL, _LF, _CR = 0, 10, 13  # to look for a number costs a tenth of what looking for octets does


def _start_of(name: bytes, kind: int) -> tuple[int, bytes]:
    return kind, b"\r\n%b: " % name


_KNOWN_NAMES: Final = {name: _start_of(name, kind) for name, kind in _KINDS.items()}


def make_field(name: bytes, value: bytes) -> Field:
    """Return the field with its kind. Values of pseudo-header fields are judged where they are used."""
    known = _KNOWN_NAMES.get(name)
    if known is None:
        known = _start_of(name, REGULAR if _NAME.fullmatch(name) else MALFORMED)
    kind, start = known
    if kind < METHOD and (_LF in value or _CR in value or _NUL in value or value.strip(_BLANKS) != value):  # §8.2.1
        kind = MALFORMED
    if kind == _TE:  # §8.2.2
        kind = REGULAR if value.lower() == b"trailers" else MALFORMED
    return kind, start + value, name, value


def size_of(field: Field) -> int:
    """Return the size of a field as HPACK's tables and MAX_HEADER_LIST_SIZE count it (RFC 7541 §4.1)."""
    return len(field[1]) + (FIELD_OVERHEAD_BYTES - LINE_OVERHEAD_BYTES)
