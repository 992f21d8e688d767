"""A request of HTTP/2 as the head of HTTP/1.1 that means the same (RFC 9113 §8): there is one reading of requests.

What HTTP/2 alone forbids is judged here: pseudo-header fields, forbidden ones, upper case, controls. Everything else is
judged where the head is read, as if it had come that way (`edge.http.request`).
"""

from __future__ import annotations

import re
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
_MAX_REMEMBERED_BYTES: Final = 4096
_SCHEMES: Final = (b"https", b"http")


class HeadComposer:
    """Makes a connection's heads of HTTP/1.1, and remembers the last.

    Most requests of a client that loads a page have the very fields of the one before, but for the path.
    """

    __slots__ = ("_after", "_before", "_fields", "_is_complete", "_path_at", "_priority")

    def __init__(self) -> None:
        self._fields: list[Field] = []
        self._is_complete = False
        self._path_at = 0
        self._before = self._after = self._priority = b""  # what stands before the path and behind it

    def compose(self, fields: list[Field], *, is_complete: bool) -> tuple[bytes, bytes]:
        """Return what `request_head` does. Raises: `StreamFailed`."""
        last, at = self._fields, self._path_at
        if len(last) == len(fields) and is_complete is self._is_complete:
            kind, _, _, path = fields[at]
            if (
                kind == PATH
                and fields[:at] == last[:at]
                and fields[at + 1 :] == last[at + 1 :]
                and _PATH.fullmatch(path)
            ):
                return self._before + path + self._after, self._priority
        head, priority = request_head(fields, is_complete=is_complete)
        self._remember(fields, head, priority, is_complete=is_complete)
        return head, priority

    def _remember(self, fields: list[Field], head: bytes, priority: bytes, *, is_complete: bool) -> None:
        paths = [(at, field[3]) for at, field in enumerate(fields) if field[0] == PATH]
        if len(head) > _MAX_REMEMBERED_BYTES or not paths or paths[0][1][:1] != b"/":
            self._fields = []
            return
        self._path_at, path = paths[0]
        self._fields, self._is_complete, self._priority = fields, is_complete, priority
        start = head.index(b" ") + 1
        self._before, self._after = head[:start], head[start + len(path) :]


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
