"""A response's head from an origin: validated, its framing decided, the fields of that hop cut out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from edge.http import fields, framing
from edge.http.error_responses import ORIGIN_INVALID, Rejected
from edge.http.upgrade import protocols


@dataclass(slots=True)
class ResponseHead:
    """One response, as the relay sees it."""

    status: Final[int]
    status_line: Final[bytes]  # re-stated as HTTP/1.1
    body: Final[int]  # bytes, framing.CHUNKED or framing.UNTIL_CLOSE
    stated_length: Final[bytes]  # the length a HEAD or 304 answer states for the body it does not carry, else b""
    keep_alive: Final[bool]  # and no body can follow that must not
    upgrade: Final[bytes]
    kept: Final[bytes]  # \r\nName: value …
    idle_seconds: Final[int] = 0  # for which the origin states that it keeps an idle connection; 0: it states none


MAX_FIELDS: Final = 1_000
"""Of an origin's response; reading this many takes a fraction of a millisecond."""
_LEAST_FIELD_BYTES: Final = len(b"a:\r\n")
_HEAD: Final = re.compile(
    rb"HTTP/1\.([0-9]) ([1-9][0-9]{2})(?: ([\t \x21-\x7e\x80-\xff]*))?(" + fields.LINES + rb")\r\n\r\n"
)
# Hop-by-hop fields, and the framing, which we state ourselves.
_CUT: Final = fields.splitter(
    b"connection content-length te trailer transfer-encoding upgrade keep-alive"
    b" proxy-(?:connection|authenticate|authentication-info)"
)
_HOP_TOKENS: Final = frozenset({b"close", b"keep-alive", b"upgrade"})
_TIMEOUT: Final = re.compile(rb"(?i:timeout)=([0-9]{1,5})(?![0-9])")


def parse(head: bytes, method: bytes) -> ResponseHead:
    """Read the head of an answer to `method`.

    Raises: `Rejected` (`ORIGIN_INVALID`) where it is no valid HTTP/1.x, its framing is ambiguous, or it has more than
    `MAX_FIELDS` fields.
    """
    if len(head) > MAX_FIELDS * _LEAST_FIELD_BYTES and head.count(b"\n") > MAX_FIELDS + 2:
        raise Rejected(ORIGIN_INVALID, f"the head of the origin's response has more than {MAX_FIELDS} fields")
    match = _HEAD.fullmatch(head)
    if match is None:
        raise Rejected(ORIGIN_INVALID)
    version, code, reason, block = match.groups()
    minor, status = 0 if version == b"0" else 1, int(code)  # RFC 9110 §2.5: what is later is taken for HTTP/1.1
    cut: dict[bytes, list[bytes]] = {}
    parts = _CUT.split(block)
    for name, value in zip(parts[1::3], parts[2::3], strict=True):
        cut.setdefault(name.lower(), []).append(value.rstrip(b" \t"))
    lengths = cut.get(b"content-length", ())
    codings = cut.get(b"transfer-encoding", ())
    try:
        body = framing.response_body(status, method, minor, lengths, codings)
        is_told = method == b"HEAD" or status == 304  # … and not of a 204 (RFC 9110 §8.6), to whatever it answers
        stated = framing.content_length(lengths) if lengths and is_told and status != 204 else None
    except Rejected as error:
        raise Rejected(ORIGIN_INVALID) from error
    connection = fields.tokens(cut[b"connection"]) if b"connection" in cut else []
    kept = b"".join(parts[::3])
    if not _HOP_TOKENS.issuperset(connection):  # RFC 9110 §7.6.1: it nominates others
        kept = fields.without(kept, {name for name in connection if name not in _HOP_TOKENS})
    keep_alive = body != framing.UNTIL_CLOSE and b"close" not in connection
    return ResponseHead(
        status,
        b"HTTP/1.1 %b %b" % (code, reason or b""),
        body,
        b"" if stated is None else b"%d" % stated,
        keep_alive
        and (minor == 1 or b"keep-alive" in connection)
        and not (body == 0 and _may_send_body(method, lengths, codings)),
        protocols(cut.get(b"upgrade", ())) if b"upgrade" in connection else b"",
        kept,
        _idle_seconds(cut[b"keep-alive"]) if b"keep-alive" in cut else 0,
    )


def _idle_seconds(values: Sequence[bytes]) -> int:
    """Return the seconds of ``Keep-Alive: timeout=5, max=100``, as Node and Apache send it (RFC 2068 §19.7.1.1)."""
    match = _TIMEOUT.match(values[0]) if len(values) == 1 else None
    return int(match[1]) if match else 0


def _may_send_body(method: bytes, lengths: Sequence[bytes], codings: Sequence[bytes]) -> bool:
    """Return whether a broken origin may send the body that is described behind a head that has none.

    It would be read as the response to the next request. That is so for HEAD, unless the length is 0, and for a 204 or
    304 that describes a body.
    """
    return bool(codings) or (framing.content_length(lengths) > 0 if lengths else method == b"HEAD")
