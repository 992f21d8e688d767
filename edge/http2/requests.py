"""A request of HTTP/2 as the head of HTTP/1.1 that means the same (RFC 9113 §8): there is one reading of requests.

What HTTP/2 alone forbids is judged here: pseudo-header fields, forbidden ones, upper case, controls. Everything else is
judged where the head is read, as if it had come that way (`edge.http.request`).
"""

from __future__ import annotations

import re
from operator import itemgetter
from typing import Final

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
_LINE_OF: Final = itemgetter(1)
_VALUE_OF: Final = itemgetter(3)
_PSEUDO_FIELDS: Final = 4
_PSEUDO_KINDS: Final = [METHOD, SCHEME, AUTHORITY, PATH]  # ascending


class HeadComposer:
    """Makes a connection's heads of HTTP/1.1, and remembers how the last one was made.

    A client sends the same kinds of fields in the same order again and again, with other values. Where all kinds are
    those of the last request, and method, scheme and authority too, only the path is judged again: every other field is
    copied as it stands (`edge.http2.fields` has judged it), and cookies are joined. Often the path alone is new.
    """

    __slots__ = (
        "_before_path",
        "_behind_path",
        "_cookies",
        "_fields",
        "_kinds",
        "_path_at",
        "_priority",
        "_priority_at",
        "_pseudo",
        "_pseudo_of",
    )

    def __init__(self) -> None:
        self._fields: list[Field] = []  # the last request's
        self._kinds: tuple[int, ...] | None = None  # nothing is remembered
        self._path_at = 0
        self._priority_at = 0  # the last one's; 0: there is none
        self._pseudo_of = itemgetter(0, 0)  # method, scheme and authority, of a request's fields
        self._pseudo: tuple[Field, ...] = ()
        self._cookies = slice(0)  # where there are several, one behind the other
        self._before_path = self._behind_path = self._priority = b""

    def compose(self, fields: list[Field], *, is_complete: bool) -> tuple[bytes, bytes]:
        """Return what `request_head` does. Raises: `StreamFailed`."""
        if not is_complete or not fields:
            return request_head(fields, is_complete=is_complete)
        at, last = self._path_at, self._fields
        if len(fields) == len(last):
            last[at] = fields[at]
            if last == fields and last[at][0] == PATH and _PATH.fullmatch(last[at][3]):
                return self._before_path + last[at][3] + self._behind_path, self._priority
        return self._compose(fields)

    def _compose(self, fields: list[Field]) -> tuple[bytes, bytes]:
        kinds = (*map(_KIND_OF, fields),)
        is_known = kinds == self._kinds and self._pseudo_of(fields) == self._pseudo
        path = fields[self._path_at][3] if is_known else b""
        if not _PATH.fullmatch(path):
            self._fields, self._kinds = [], None
            head, priority = request_head(fields, is_complete=True)
            cookies = _several(COOKIE, kinds)
            if sorted(kinds[:_PSEUDO_FIELDS]) != _PSEUDO_KINDS or cookies is None or HOST in kinds:
                return head, priority
            self._kinds, self._path_at, self._cookies = kinds, kinds.index(PATH), cookies
            self._pseudo_of = itemgetter(*map(kinds.index, (METHOD, SCHEME, AUTHORITY)))
            self._pseudo = self._pseudo_of(fields)
            self._before_path = self._pseudo[0][3] + b" "
            path = fields[self._path_at][3]
            self._priority_at = max((at for at, kind in enumerate(kinds) if kind == PRIORITY), default=0)
        self._fields = fields.copy()
        lines = [*map(_LINE_OF, fields)]
        cookies = self._cookies
        if cookies.stop:
            lines[cookies] = (b"\r\ncookie: " + b"; ".join(map(_VALUE_OF, fields[cookies])),)
        lines[:_PSEUDO_FIELDS] = (b" HTTP/1.1\r\nHost: ", self._pseudo[2][3])
        lines.append(b"\r\n\r\n")
        self._behind_path = b"".join(lines)
        self._priority = fields[self._priority_at][3] if self._priority_at else b""
        return self._before_path + path + self._behind_path, self._priority


def _several(kind: int, kinds: tuple[int, ...]) -> slice | None:
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
