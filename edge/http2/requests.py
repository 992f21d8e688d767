"""A request of HTTP/2 as a head of HTTP/1.1 with the same meaning (RFC 9113 §8): one parser reads all requests.

What HTTP/2 alone forbids is checked here: invalid pseudo-header fields, connection-specific fields, upper case in
names, control characters. All else is checked by the parser of HTTP/1.1 (`edge.http.request`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from edge.http.head_pattern import VALUE
from edge.http.request import ORDINARY_TARGET, without_cut_fields
from edge.http2.errors import ErrorCode, StreamFailed
from edge.http2.fields import (
    AUTHORITY,
    CONTENT_LENGTH,
    COOKIE,
    HOST,
    METHOD,
    PATH,
    PRIORITY,
    REGULAR,
    SCHEME,
    Field,
)

_METHOD: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_PATH: Final = re.compile(rb"/[!-~\x80-\xff]*")
_AUTHORITY: Final = re.compile(rb"[!-~]*")
_SCHEMES: Final = (b"https", b"http")
_KIND_OF: Final = itemgetter(0)

Varying: TypeAlias = "tuple[int, bytes]"
"""The place of a value that differs, and its line's start where that is not the field's own."""

# Never changed: an idle connection has no use for its own, each of which would take 72 octets or more.
_NONE: Final[list[Any]] = []
_NO_STARTS: Final[Mapping[int, bytes]] = MappingProxyType({})

_PSEUDO_FIELDS: Final = 4
_PSEUDO_KINDS: Final = [METHOD, SCHEME, AUTHORITY, PATH]  # ascending


class HeadComposer:
    """Makes a connection's heads of HTTP/1.1, and remembers the last request.

    A client sends the same fields in the same order again and again, with other values. `vary` reads a request like
    that by comparison with the last one: first where earlier ones differed from one another, then everywhere.
    """

    __slots__ = ("_fields", "_lines", "_other_bytes", "_path_at", "_priority_at", "_starts", "_varying")

    def __init__(self) -> None:
        self._fields: list[Field] = _NONE  # the last request's; empty: none is remembered
        self._path_at = 0
        self._priority_at = 0  # the last one's; 0: there is none
        self._lines: list[bytes] = _NONE  # of the fields that go on, b"" for the others
        self._starts: Mapping[int, bytes] = _NO_STARTS  # of lines of cookies behind the first
        self._varying: list[tuple[int, int, bytes, bytes]] = _NONE  # place, kind, name, start
        self._other_bytes = 0  # of the head, but for the path and these

    @property
    def kept(self) -> bytes:
        """Return the fields of the last request that go on, as HTTP/1.1 has them, so far as it is known here."""
        return b"".join(self._lines)

    def compose(self, fields: list[Field], *, is_complete: bool) -> tuple[bytes, bytes]:
        """Return what `request_head` does, and remember the request. Raises: `StreamFailed`."""
        self._fields = _NONE
        composed = request_head(fields, is_complete=is_complete)
        if is_complete:
            self._remember(fields, composed[0])
        return composed

    def _remember(self, fields: list[Field], head: bytes) -> None:
        kinds = [*map(_KIND_OF, fields)]
        cookies = _several(COOKIE, kinds)
        if sorted(kinds[:_PSEUDO_FIELDS]) != _PSEUDO_KINDS or cookies is None or HOST in kinds:
            return
        self._fields, self._path_at, self._varying = fields.copy(), kinds.index(PATH), []
        self._priority_at = max((at for at, kind in enumerate(kinds) if kind == PRIORITY), default=0)
        self._starts = dict.fromkeys(range(len(fields))[cookies][1:], b"; ")
        lines = [self._starts[at] + field[3] if at in self._starts else field[1] for at, field in enumerate(fields)]
        lines[:_PSEUDO_FIELDS] = [b""] * _PSEUDO_FIELDS
        kept = b"".join(lines)
        if without_cut_fields(kept) != kept:
            lines = [line if without_cut_fields(line) else b"" for line in lines]
            kept = b"".join(lines)
        self._lines = lines
        self._other_bytes = len(head) - len(kept) - len(fields[self._path_at][3])

    def vary(self, fields: list[Field]) -> tuple[bytes, bytes, int, bytes] | None:
        """Return how a complete request varies the last one, and remember it; None for one that differs in more.

        They differ in the path, and in values of fields that go on to the origin. Returned are the path, an ordinary
        one (`edge.http.request`); all fields that go on, as HTTP/1.1 has them; the length of the whole head; and the
        value of Priority.
        """
        last, path_at = self._fields, self._path_at
        if len(fields) != len(last) or not last:
            return None
        alike, lines, values = last.copy(), self._lines.copy(), []
        alike[path_at] = fields[path_at]
        for at, kind, name, start in self._varying:
            alike[at] = field = fields[at]
            if field[0] != kind or field[2] != name:
                return None
            value = field[3]
            lines[at] = start + value if start else field[1]
            values.append(value)
        if alike != fields:
            return self.vary(fields) if self._has_learnt(fields, alike) else None
        kind, _, _, path = fields[path_at]
        content = b"".join(values)
        if kind != PATH or ORDINARY_TARGET.fullmatch(path) is None or content.translate(VALUE) != content:
            return None
        kept = b"".join(lines)
        self._fields, self._lines = alike, lines
        priority = fields[self._priority_at][3] if self._priority_at else b""
        return path, kept, self._other_bytes + len(path) + len(kept), priority

    def varying_at(self, fields: list[Field], places: list[int]) -> list[Varying] | None:
        """Return what `replace` takes for requests that differ from the last one at these places, and in the path.

        `fields` are the last one's. None is returned where requests must not differ, or none is remembered.
        """
        if not self._fields:
            return None
        known = [at for at, _, _, _ in self._varying]
        varying = []
        for at in places:
            if at == self._path_at:
                continue
            if not self._lines[at] or at == self._priority_at:
                return None
            kind, _, name, _ = fields[at]
            start = self._starts.get(at, b"")
            if at not in known:
                self._varying.append((at, kind, name, start))
            varying.append((at, start))
        return varying

    def replace(self, fields: list[Field], path: bytes, varying: list[Varying]) -> tuple[bytes, int] | None:
        """Return what `vary` does, but for the path and Priority, for a request that has other values in `fields`.

        They are of the same kinds. None is returned where one is invalid.
        """
        lines = self._lines
        for at, start in varying:
            _, line, _, value = fields[at]
            if value.translate(VALUE) != value:
                return None
            lines[at] = start + value if start else line
        kept = b"".join(lines)
        return kept, self._other_bytes + len(path) + len(kept)

    def _has_learnt(self, fields: list[Field], alike: list[Field]) -> bool:
        """Learn where fields vary; return False where they may not."""
        for at, (field, like) in enumerate(zip(fields, alike, strict=True)):
            if field != like:
                kind, _, name, _ = field
                if not self._lines[at] or name != like[2] or kind != like[0]:
                    return False
                self._varying.append((at, kind, name, self._starts.get(at, b"")))
        return True


def _several(kind: int, kinds: list[int]) -> slice | None:
    """Return where several of the kind stand, `slice(0)` without them; None where others stand between them."""
    count = kinds.count(kind)
    if count <= 1:
        return slice(0)
    first = kinds.index(kind)
    return slice(first, first + count) if kinds[first : first + count].count(kind) == count else None


def request_head(fields: list[Field], *, is_complete: bool) -> tuple[bytes, bytes]:
    """Return the head of HTTP/1.1, and the value of Priority. `is_complete`: no content follows.

    Raises: `StreamFailed` for a malformed request (§8.1.1).
    """
    method = scheme = authority = path = host = None
    priority = b""
    lines: list[bytes] = []
    cookies: list[bytes] = []
    cookies_at = 0
    is_length_known = is_complete
    for kind, line, _, value in fields:
        if kind == REGULAR:
            lines.append(line)
        elif kind == COOKIE:
            if not cookies:
                cookies_at = len(lines)
                lines.append(line)
            cookies.append(value)
        elif kind == HOST and host is None:
            host = value
            lines.append(b"")  # no pseudo-header field may follow
        elif kind == PRIORITY:
            priority = value
            lines.append(line)
        elif kind == CONTENT_LENGTH:
            is_length_known = True
            lines.append(line)
        elif kind == METHOD and method is None and not lines:
            method = value
        elif kind == SCHEME and scheme is None and not lines:
            scheme = value
        elif kind == AUTHORITY and authority is None and not lines:
            authority = value
        elif kind == PATH and path is None and not lines:
            path = value
        else:
            raise _malformed("a field that is forbidden, repeated, or out of place")
    if len(cookies) > 1:  # §8.2.3
        lines[cookies_at] = b"\r\ncookie: " + b"; ".join(cookies)
    if authority is None:
        authority = host
    elif host is not None and host.lower() != authority.lower():  # §8.3.1
        raise _malformed(":authority and Host differ")
    start = _request_line(method, scheme, authority, path)
    if authority is not None:
        start += b"\r\nHost: " + authority
    if not is_length_known:
        lines.append(b"\r\nTransfer-Encoding: chunked")
    return start + b"".join(lines) + b"\r\n\r\n", priority


def _request_line(method: bytes | None, scheme: bytes | None, authority: bytes | None, path: bytes | None) -> bytes:
    """Return the request line (§8.3.1, §8.5)."""
    if method is None or _METHOD.fullmatch(method) is None:
        raise _malformed("no valid :method")
    if authority is not None and _AUTHORITY.fullmatch(authority) is None:
        raise _malformed("no valid :authority")
    if method == b"CONNECT":
        if scheme is not None or path is not None or not authority:
            raise _malformed("CONNECT takes an :authority alone")
        return b"CONNECT %b HTTP/1.1" % authority
    if scheme not in _SCHEMES:
        raise _malformed("no :scheme of HTTP")
    if path is None or not (_PATH.fullmatch(path) or (path == b"*" and method == b"OPTIONS")):
        raise _malformed("no valid :path")
    return b"%b %b HTTP/1.1" % (method, path)


def request_trailers(fields: list[Field]) -> bytes:
    """Return the block of trailer fields, as HTTP/1.1 has them.

    Raises: `StreamFailed` where one is malformed (§8.1).
    """
    if any(field[0] >= METHOD for field in fields):
        raise _malformed("a trailer field that is forbidden")
    return b"".join(field[1] for field in fields)


def _malformed(reason: str) -> StreamFailed:
    return StreamFailed(ErrorCode.PROTOCOL_ERROR, reason)
