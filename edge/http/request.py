"""A request's head: validated, and cut into what is forwarded and what is decided here.

The request line is read by one strict grammar and re-emitted, never copied. llhttp validates the head as a whole,
and our own rules run beside it, because it lets pass much that matters to a proxy: HTTP/0.9 and other versions, no Host
or two, unknown codings. Fields that belong to this hop, that frame the message, or that we state ourselves (the
forwarded ones, forged or not) are cut out; all others go on as the very bytes that came.

Most heads are ordinary: a GET with one Host, and no other field that is cut but perhaps Connection: close or
keep-alive, in any order. One pattern reads them in one go, without llhttp: llhttp judges such heads by the same
grammar (`tests.unit.edge.test_request_head` compares the three).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address
from typing import Final

import httptools

from common.ip_addresses import parse_address
from edge.http import fields, framing
from edge.http.error_responses import (
    BAD_HOST,
    BAD_REQUEST,
    BAD_VERSION,
    EXPECTATION_FAILED,
    HEAD_TOO_LARGE,
    METHOD_NOT_ALLOWED,
    TARGET_TOO_LONG,
    ErrorResponse,
    Rejected,
)
from edge.http.upgrade import protocols


@dataclass(frozen=True, slots=True)
class HeadLimits:
    """What a head may measure (reasons: `common.settings`)."""

    fields: int = 100
    head_bytes: int = 32_768
    target_bytes: int = 8_192


@dataclass(slots=True)
class FieldFacts:
    """What the edge learns from a request's fields, and from the authority in its target.

    It is the same for all requests that share these, and never changed, like `RequestHead`.
    """

    host: Final[str]  # lower case, without port and trailing dot
    host_port: Final[int | None]
    host_as_received: Final[bytes]
    keep_alive: Final[bool]
    body: Final[int] = 0  # bytes, or framing.CHUNKED
    upgrade: Final[bytes] = b""  # protocols offered, b"" for none
    expects_continue: Final[bool] = False
    takes_trailers: Final[bool] = False  # TE: trailers
    forwarded_for: Final[bytes] = b""  # as received; to be believed from trusted proxies only
    forwarded_proto: Final[bytes] = b""
    via: Final[bytes] = b""  # as received
    trailer: Final[bytes] = b""  # as received with a chunked body: the names of its trailers


@dataclass(slots=True)
class RequestHead:
    """One request, as the rest of the edge sees it.

    Never changed: every field is `Final`, for a dataclass that is frozen costs three times as much to make, and a
    tuple's fields ten times as much to read.
    """

    method: Final[bytes]
    target: Final[bytes]  # origin-form, or b"*": what follows the authority, byte for byte
    minor: Final[int]  # HTTP/1.minor; 2: the client speaks HTTP/2, which has all that HTTP/1.1 has
    kept: Final[bytes]  # the fields that go on: \r\nName: value …
    fields: Final[FieldFacts]

    @property
    def path(self) -> bytes:
        """Return the target without its query."""
        return self.target.partition(b"?")[0]


_LINE: Final = rb"(" + fields.TOKEN + rb"+) ([!-~\x80-\xff]+) HTTP/1\.([0-9])"
_REQUEST_LINE: Final = re.compile(_LINE + rb"(?=\r\n)")
_HEAD: Final = re.compile(_LINE + rb"(" + fields.LINES + rb")\r\n\r\n")
_SMALLEST_FIELD_BYTES: Final = 4  # CR LF name colon
_OTHER_VERSION: Final = re.compile(rb"" + fields.TOKEN + rb"+ [!-~]+ HTTP/[0-9](?:\.[0-9])?\r\n")
# Fields by which frameworks and proxies learn the client's address, the scheme, or what was asked for. Origins believe
# them from a proxy, so a client must not state them; the edge states the X-Forwarded- ones itself.
_CLAIMED_NAMES: Final = (
    b"forwarded front[-_]end[-_]https client[-_]ip true[-_]client[-_]ip fastly[-_]client[-_]ip fly[-_]client[-_]ip"
    b" cf[-_]connecting[-_](?:ip|ipv6) cf[-_]pseudo[-_]ipv4 do[-_]connecting[-_]ip"
    b" x[-_](?:forwarded"
    b"(?:[-_](?:host|for|ip|proto|port|server|ssl|scheme|protocol|prefix|path|uri|url|by|client[-_]cert))?"
    b"|real[-_]ip|client[-_]ip|true[-_]client[-_]ip|cluster[-_]client[-_]ip|remote[-_](?:ip|addr)|originating[-_]ip"
    b"|original[-_](?:url|uri|host|forwarded[-_](?:for|host|proto))|rewrite[-_]url|scheme|url[-_]scheme|host"
    b"|envoy[-_]external[-_]address|azure[-_](?:clientip|socketip)|service[-_](?:forwarded[-_]host|auth|signature"
    b"|metadata[-_][!-9;-~]*))"
)
# Hop-by-hop fields, and what we decide by, state ourselves, or never pass on. Underscores: CGI cannot tell them from
# hyphens, nor `Proxy` from its own HTTP_PROXY (CERT VU#797896).
_CUT_NAMES: Final = (
    b"host connection content[-_]length te trailer transfer[-_]encoding upgrade expect keep-alive http2-settings via"
    b" proxy(?:-(?:connection|authorization|authenticate|authentication-info))? " + _CLAIMED_NAMES
)
_CUT: Final = fields.splitter(_CUT_NAMES)
_KEPT_LINES: Final = fields.lines_but(_CUT_NAMES)
_ORDINARY_TARGET: Final = rb"/[!\"$-~]*+"
ORDINARY_TARGET: Final = re.compile(_ORDINARY_TARGET)
_ORDINARY_LINE: Final = rb"(GET|HEAD) (" + _ORDINARY_TARGET + rb") HTTP/1\.1"
ORDINARY_LINE: Final = re.compile(_ORDINARY_LINE)
# Host, or the two harmless forms of Connection. A run of kept lines ends where one of them begins, so that matching
# takes linear time for any input.
_SPECIAL: Final = rb"\r\n(?:(?i:host):[ \t]*+([!-~]*+)|(?i:connection:[ \t]*+(?:keep-alive|(close))))[ \t]*+"
_ORDINARY: Final = re.compile(
    rb"%b(%b)%b(%b)(?:%b(%b))?\r\n\r\n" % (_ORDINARY_LINE, _KEPT_LINES, _SPECIAL, _KEPT_LINES, _SPECIAL, _KEPT_LINES)
)
_ABSOLUTE: Final = re.compile(rb"https?://([^/?#]*+)(.*)", re.IGNORECASE | re.DOTALL)
_HOST: Final = re.compile(rb"([a-z0-9](?:[a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\])\.?(?::([0-9]{0,5}))?", re.IGNORECASE)
# llhttp knows a fixed list of methods; RFC 9110 §9.1 lets there be others.
_LLHTTP_METHODS: Final = frozenset({b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"})
# CONNECT has no meaning here; TRACE would show the client what we add for the origin.
_REFUSED_METHODS: Final = frozenset({b"CONNECT", b"TRACE"})
_NOT_ASCII: Final = bytes(range(0x80, 0x100))
_ENCODED: Final = [*(bytes((octet,)) for octet in range(0x80)), *(b"%%%02X" % octet for octet in range(0x80, 0x100))]
# What Connection may name that is cut in any case. TE is a request's field only.
_HOP_TOKENS: Final = frozenset({b"close", b"keep-alive", b"upgrade", b"te"})


def parse(head: bytes, limits: HeadLimits) -> RequestHead:
    """Read one head, from the request line to the empty line that ends it.

    Raises: `Rejected` with the answer the client gets.
    """
    ordinary = _ORDINARY.fullmatch(head)
    if ordinary is not None and len(head) <= limits.head_bytes:
        method, target, before, host, closing, between, other_host, other_closing, behind = ordinary.groups()
        if host is None:
            host = other_host
        elif other_host is not None:  # two of them: refused below
            host = None
        if host is not None:
            _check_limits(head, target, limits)
            name, port = parse_host(host)
            kept = before + between + behind if behind else before + between
            return RequestHead(method, target, 1, kept, FieldFacts(name, port, host, not (closing or other_closing)))
    return parse_any(head, limits)


def parse_any(head: bytes, limits: HeadLimits) -> RequestHead:
    """Parse a head by the rules alone, without the pattern for ordinary ones."""
    match = _HEAD.fullmatch(head)
    if match is None or len(head) > limits.head_bytes:
        raise Rejected(_what_is_wrong(head, limits))
    method, target, stated_minor, block = match.groups()
    if method in _REFUSED_METHODS:
        raise Rejected(METHOD_NOT_ALLOWED)
    if not target.isascii():
        target = _percent_encoded(target, limits)
    _check_limits(head, target, limits)
    minor = 0 if stated_minor == b"0" else 1  # RFC 9110 §2.5: what is later is taken for the latest one known
    request = _read(method, target, minor, _CUT.split(block))
    if not _llhttp_accepts(method, target, minor, block):  # last: it does not say why
        raise Rejected(BAD_REQUEST)
    return request


def without_cut_fields(block: bytes) -> bytes:
    """Return a block without the fields that are cut out of every head."""
    return b"".join(_CUT.split(block)[::3])


def _percent_encoded(target: bytes, limits: HeadLimits) -> bytes:
    """Return the target as a URI: some clients send UTF-8 as it is (RFC 3986 §2.5).

    Raises: `Rejected` for other octets, and for a target that is too long when it is encoded.
    """
    ascii_bytes = len(target.translate(None, _NOT_ASCII))
    if 3 * len(target) - 2 * ascii_bytes > limits.target_bytes:
        raise Rejected(TARGET_TOO_LONG)
    try:
        target.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Rejected(BAD_REQUEST) from error
    return b"".join([_ENCODED[octet] for octet in target])


def _check_limits(head: bytes, target: bytes, limits: HeadLimits) -> None:
    if len(target) > limits.target_bytes:
        raise Rejected(TARGET_TOO_LONG)
    # The request line and the empty one are no fields.
    if len(head) > _SMALLEST_FIELD_BYTES * limits.fields and head.count(b"\n") - 2 > limits.fields:
        raise Rejected(HEAD_TOO_LARGE)


def _what_is_wrong(head: bytes, limits: HeadLimits) -> ErrorResponse:
    line = _REQUEST_LINE.match(head)
    if line is None:
        return BAD_VERSION if _OTHER_VERSION.match(head) else BAD_REQUEST
    if line[1] in _REFUSED_METHODS:
        return METHOD_NOT_ALLOWED
    if len(line[2]) > limits.target_bytes:
        return TARGET_TOO_LONG
    return HEAD_TOO_LARGE if len(head) > limits.head_bytes else BAD_REQUEST


def _read(method: bytes, target: bytes, minor: int, parts: list[bytes]) -> RequestHead:
    hosts: list[bytes] = []
    cut: dict[bytes, list[bytes]] = {}
    for name, value in zip(parts[1::3], parts[2::3], strict=True):
        if len(name) == 4:
            hosts.append(value.rstrip(b" \t"))
        elif b"_" not in name:
            cut.setdefault(name.lower(), []).append(value.rstrip(b" \t"))
    host_as_received, target = _authority(method, minor, target, hosts)
    host, port = parse_host(host_as_received)
    kept = b"".join(parts[::3])
    connection = fields.tokens(cut[b"connection"]) if b"connection" in cut else []
    if not _HOP_TOKENS.issuperset(connection):  # RFC 9110 §7.6.1: it nominates others
        kept = fields.without(kept, {name for name in connection if name not in _HOP_TOKENS})
    body = framing.request_body(minor, cut.get(b"content-length", ()), cut.get(b"transfer-encoding", ()))
    facts = FieldFacts(
        host,
        port,
        host_as_received,
        keep_alive=b"close" not in connection and (minor == 1 or b"keep-alive" in connection),
        body=body,
        upgrade=_upgrade(minor, body, connection, cut.get(b"upgrade", ())),
        expects_continue=b"expect" in cut and _expects_continue(minor, cut[b"expect"]),
        takes_trailers=b"te" in cut and minor == 1 and b"trailers" in fields.tokens(cut[b"te"]),
        forwarded_for=b", ".join(cut.get(b"x-forwarded-for", ())),
        forwarded_proto=b", ".join(cut.get(b"x-forwarded-proto", ())),
        via=b", ".join(cut.get(b"via", ())),
        trailer=b", ".join(cut.get(b"trailer", ())) if body == framing.CHUNKED else b"",
    )
    return RequestHead(method, target, minor, kept, facts)


def _authority(method: bytes, minor: int, target: bytes, hosts: list[bytes]) -> tuple[bytes, bytes]:
    """Return the authority asked for, and the target in origin-form (RFC 9112 §3.2.1) or as ``*`` (§3.2.4)."""
    if len(hosts) > 1 or (not hosts and minor == 1):
        raise Rejected(BAD_HOST)
    if b"#" in target:
        raise Rejected(BAD_REQUEST)
    if target[:1] == b"/" or (target == b"*" and method == b"OPTIONS"):
        if not hosts:
            raise Rejected(BAD_HOST)
        return hosts[0], target
    absolute = _ABSOLUTE.fullmatch(target)
    if absolute is None:
        raise Rejected(BAD_REQUEST)
    # RFC 9112 §3.2.2: the target's authority counts; the Host received is ignored, but has to be one.
    if hosts:
        parse_host(hosts[0])
    rest = absolute[2]
    if not rest and method == b"OPTIONS":
        return absolute[1], b"*"
    return absolute[1], rest if rest[:1] == b"/" else b"/" + rest


@lru_cache(maxsize=4096)
def parse_host(authority: bytes) -> tuple[str, int | None]:
    """Return a Host as ``(name in lower case without trailing dot, port or None)``.

    Raises: `Rejected` where it is none (RFC 9110 §7.2).
    """
    match = _HOST.fullmatch(authority)
    if match is None or len(match[1]) > 253:
        raise Rejected(BAD_HOST)
    name, port = match[1].decode("ascii").lower(), int(match[2]) if match[2] else None
    if (port is not None and port > 65535) or ".." in name or (name[0] == "[" and not _is_ipv6(name[1:-1])):
        raise Rejected(BAD_HOST)
    return name, port


def _is_ipv6(text: str) -> bool:
    return isinstance(parse_address(text), IPv6Address)


def _upgrade(minor: int, body: int, connection: list[bytes], values: list[bytes] | tuple[()]) -> bytes:
    """Return the protocols offered, if this request may leave HTTP at all (RFC 9110 §7.8)."""
    return b"" if minor == 0 or body != 0 or b"upgrade" not in connection else protocols(values)


def _expects_continue(minor: int, values: list[bytes] | tuple[()]) -> bool:
    """Return whether the request waits for a 100; HTTP/1.0 cannot (RFC 9110 §10.1.1).

    Raises: `Rejected` (417).
    """
    expected = fields.tokens(values)
    if expected and expected != [b"100-continue"]:
        raise Rejected(EXPECTATION_FAILED)
    return minor == 1 and bool(expected)


def _llhttp_accepts(method: bytes, target: bytes, minor: int, block: bytes) -> bool:
    known = method if method in _LLHTTP_METHODS else b"GET"
    head = b"%b %b HTTP/1.%d%b\r\n\r\n" % (known, target, minor, block)
    try:
        httptools.HttpRequestParser(None).feed_data(head)
    except httptools.HttpParserUpgrade:
        return True
    except httptools.HttpParserError:
        return False
    return True
