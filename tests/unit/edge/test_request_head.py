"""What a request's head must be before a byte of it reaches an origin (RFC 9112 §3, §5, §6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.http.error_responses import (
    BAD_HOST,
    BAD_REQUEST,
    BAD_VERSION,
    HEAD_TOO_LARGE,
    METHOD_NOT_ALLOWED,
    TARGET_TOO_LONG,
    UNKNOWN_CODING,
    ErrorResponse,
    Rejected,
)
from edge.http.framing import CHUNKED
from edge.http.request import HeadLimits, RequestHead, parse, parse_any
from tests.unit.edge import messages


def head(*lines: str, start: str = "GET / HTTP/1.1", host: str | None = "shop.example.com") -> bytes:
    fields = [f"Host: {host}"] if host is not None else []
    return "\r\n".join([start, *fields, *lines, "", ""]).encode("latin-1")


def host_at_end(raw: bytes) -> bytes:
    line, host, *others, end, _ = raw.split(b"\r\n")
    return b"\r\n".join((line, *others, host, end, b""))


def read(raw: bytes) -> RequestHead:
    return parse(raw, HeadLimits())


def refusal(raw: bytes) -> ErrorResponse:
    with pytest.raises(Rejected) as caught:
        read(raw)
    return caught.value.response


@pytest.mark.parametrize(
    "raw",
    [
        b"GET /\r\n\r\n",
        b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /  HTTP/1.1\r\nHost: a\r\n\r\n",
        b" GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
        b"GET / http/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n folded: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: b\x00c\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: b\x7f\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX\x80: b\r\n\r\n",
        b"G(T / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /\x80 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /#fragment HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET x HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
)
def test_malformed_heads_are_refused(raw: bytes) -> None:
    assert refusal(raw) == BAD_REQUEST


@pytest.mark.parametrize(
    "fields",
    [
        ["Content-Length: 5", "Transfer-Encoding: chunked"],
        ["Content-Length: 5", "Content-Length: 6"],
        ["Content-Length: 5, 6"],
        ["Content-Length: +5"],
        ["Content-Length: -5"],
        ["Content-Length: 0x5"],
        ["Content-Length: 5 5"],
        ["Content-Length: "],
        ["Content-Length: 99999999999999999999"],
        ["Content-Length: 1_0"],
        ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: chunked, gzip"],
        ["Transfer-Encoding: chunked, chunked"],
    ],
)
def test_ambiguous_framing_is_refused(fields: list[str]) -> None:
    assert refusal(head(*fields, start="POST / HTTP/1.1")) == BAD_REQUEST


@pytest.mark.parametrize("coding", ["gzip", "gzip, chunked", "identity", "xchunked", "chunked;q=1", '"chunked"'])
def test_unknown_transfer_codings_are_not_implemented(coding: str) -> None:
    # llhttp refuses some of them as malformed: either way nothing is forwarded.
    assert refusal(head(f"Transfer-Encoding: {coding}", start="POST / HTTP/1.1")) in (UNKNOWN_CODING, BAD_REQUEST)


def test_transfer_encoding_in_http_1_0_is_refused() -> None:
    assert refusal(head("Transfer-Encoding: chunked", start="POST / HTTP/1.0")) == BAD_REQUEST


def test_equal_content_lengths_are_one() -> None:
    assert read(head("Content-Length: 5", start="POST / HTTP/1.1")).fields.body == 5


def test_chunked_is_understood_in_any_case() -> None:
    assert read(head("transfer-encoding:  ChUnKeD ", start="POST / HTTP/1.1")).fields.body == CHUNKED


@pytest.mark.parametrize("version", ["HTTP/2.0", "HTTP/0.9", "HTTP/3"])
def test_other_versions_are_refused(version: str) -> None:
    assert refusal(head(start=f"GET / {version}")) == BAD_VERSION


def test_a_later_minor_version_is_taken_for_the_latest_known() -> None:
    """RFC 9110 §2.5."""
    assert read(head(start="GET / HTTP/1.2")) == replace(read(head()))
    assert refusal(head("Content-Length: 5", "Transfer-Encoding: chunked", start="POST / HTTP/1.9")) == BAD_REQUEST


@pytest.mark.parametrize("method", ["CONNECT", "TRACE"])
def test_connect_and_trace_are_not_allowed(method: str) -> None:
    assert refusal(head(start=f"{method} / HTTP/1.1")) == METHOD_NOT_ALLOWED


def test_methods_llhttp_does_not_know_pass() -> None:
    assert read(head(start="FROBNICATE / HTTP/1.1")).method == b"FROBNICATE"


@pytest.mark.parametrize(
    "host", ["", "a b", "a/b", "a..b", "user@a", "a:99999", "a:x", "[::1", "[zz]", "caf\xe9", "-a", "a" * 254, "*.a"]
)
def test_bad_hosts_are_refused(host: str) -> None:
    assert refusal(head(host=host)) == BAD_HOST


def test_host_must_be_there_once() -> None:
    assert refusal(head(host=None)) == BAD_HOST
    assert refusal(head("Host: other.example.com")) == BAD_HOST
    assert refusal(head(start="GET / HTTP/1.0", host=None)) == BAD_HOST


def test_host_is_normalised_and_kept_as_received() -> None:
    request = read(head(host="SHOP.Example.COM.:8080"))
    assert (request.fields.host, request.fields.host_port) == ("shop.example.com", 8080)
    assert request.fields.host_as_received == b"SHOP.Example.COM.:8080"


def test_absolute_form_overrides_host() -> None:
    request = read(head(start="GET http://Other.example.com:81/a?b HTTP/1.1"))
    assert (request.fields.host, request.fields.host_port, request.target) == ("other.example.com", 81, b"/a?b")
    assert read(head(start="GET http://other.example.com HTTP/1.1")).target == b"/"
    assert read(head(start="GET http://other.example.com?q HTTP/1.1")).target == b"/?q"
    assert refusal(head(start="GET http://user@other.example.com/ HTTP/1.1")) == BAD_HOST


def test_limits() -> None:
    assert refusal(head(start="GET /" + "a" * 8192 + " HTTP/1.1")) == TARGET_TOO_LONG
    assert refusal(head(*(["X: y"] * 100))) == HEAD_TOO_LARGE
    assert refusal(head("X: " + "y" * 32_768)) == HEAD_TOO_LARGE
    assert read(head(*(["X: y"] * 99))).target == b"/"


def test_what_is_ours_to_state_is_cut_and_the_rest_stays_as_it_came() -> None:
    request = read(
        head(
            "cookie: a=b",
            "X-Forwarded-For: 6.6.6.6",
            "X_Forwarded_Host: evil",
            "x-forwarded_proto: https",
            "X-Service-Auth: forged",
            "X-Service-Metadata-Plan: forged",
            "x_service-metadata_plan: forged",
            "X-Service-Forwarded-Host: evil",
            "Forwarded: for=6.6.6.6",
            "Keep-Alive: 5",
            "TE: trailers",
            "Proxy-Connection: keep-alive",
            "HTTP2-Settings: AAMAAABkAAQAAP__",
            "X-Forwarded-Foo:  stays ",
            "Hostess: stays",
            "X-Service-Metadata: stays",
        )
    )
    assert request.kept == (
        b"\r\ncookie: a=b\r\nX-Forwarded-Foo:  stays \r\nHostess: stays\r\nX-Service-Metadata: stays"
    )


@pytest.mark.parametrize(
    "name",
    [
        "X-Real-IP",
        "X-Client-IP",
        "X-Cluster-Client-IP",
        "True-Client-IP",
        "CF-Connecting-IP",
        "Client-IP",
        "Fastly-Client-IP",
        "X-Remote-Addr",
        "X-Originating-IP",
        "X-Forwarded",
        "X-Forwarded-By",
        "X-Forwarded-Prefix",
        "X-Forwarded-Scheme",
        "X-Forwarded-Server",
        "X-Forwarded-Ssl",
        "X-Forwarded-Client-Cert",
        "X-Original-Forwarded-For",
        "X-Original-Host",
        "X-Original-URL",
        "X-Rewrite-URL",
        "X-Url-Scheme",
        "X-Host",
        "Front-End-Https",
    ],
)
def test_claims_about_client_and_route_are_cut(name: str) -> None:
    for spelling in (name, name.lower(), name.upper(), name.replace("-", "_")):
        assert read(head("X: y", f"{spelling}: 6.6.6.6", "Z: w")).kept == b"\r\nX: y\r\nZ: w"


@pytest.mark.parametrize(
    "name", ["X-HTTP-Method-Override", "X-Requested-With", "X-Real-IPs", "X-Hosts", "X-Forwarded-Foo"]
)
def test_other_fields_with_such_beginnings_are_forwarded(name: str) -> None:
    assert read(head(f"{name}: y")).kept == f"\r\n{name}: y".encode()


def test_utf_8_in_a_target_is_percent_encoded() -> None:
    raw = "GET /caf\u00e9/\u65e5?q=\u20ac%20 HTTP/1.1\r\nHost: a\r\n\r\n".encode()
    assert read(raw).target == b"/caf%C3%A9/%E6%97%A5?q=%E2%82%AC%20"
    assert refusal(raw.replace(b"\xc3\xa9", b"\xe9")) == BAD_REQUEST
    assert refusal(raw.replace(b"\xc3\xa9", b"\xc3\xa9" * 2000)) == TARGET_TOO_LONG


def test_fields_named_in_connection_end_here() -> None:
    request = read(head("Connection: close, X-Secret", "x-secret: 1", "X-Secret-2: 2"))
    assert request.kept == b"\r\nX-Secret-2: 2"
    assert not request.fields.keep_alive


def test_keep_alive_by_version() -> None:
    assert read(head()).fields.keep_alive
    assert not read(head(start="GET / HTTP/1.0")).fields.keep_alive
    assert read(head("Connection: Keep-Alive", start="GET / HTTP/1.0")).fields.keep_alive
    assert not read(head("Connection: keep-alive, Close")).fields.keep_alive


@pytest.mark.parametrize(
    ("lines", "stays"),
    [
        (["Connection: keep-alive"], True),
        (["connection: close"], False),
        (["Connection: CLOSE "], False),
        (["Keep-Alive: close"], True),
        (["Via: close"], True),
        (["Accept: close", "Connection: keep-alive", "Close: close"], True),
    ],
)
def test_connection_alone_says_whether_it_stays(lines: list[str], stays: bool) -> None:
    assert read(head(*lines)).fields.keep_alive is stays
    assert read(head(*lines, host="close")).fields.keep_alive is stays
    assert b"onnection" not in read(head(*lines)).kept


def test_upgrade_is_offered_only_with_connection_and_never_h2c() -> None:
    assert read(head("Upgrade: websocket")).fields.upgrade == b""
    assert read(head("Connection: Upgrade", "Upgrade: websocket")).fields.upgrade == b"websocket"
    assert read(head("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: A")).fields.upgrade == b""
    assert read(head("Connection: upgrade", "Upgrade: h2c, websocket")).fields.upgrade == b"websocket"


def meaning(parse: Callable[[bytes, HeadLimits], RequestHead], raw: bytes) -> RequestHead | ErrorResponse:
    try:
        return replace(parse(raw, HeadLimits()))
    except Rejected as error:
        return error.response


@settings(max_examples=250)
@given(rng=st.randoms(note_method_calls=False))
def test_the_short_way_reads_what_the_rules_and_llhttp_read(rng: Random) -> None:
    for raw in messages.visit(rng):
        end = raw.find(b"\r\n\r\n") + 4
        assert meaning(parse, raw[:end]) == meaning(parse_any, raw[:end])


@pytest.mark.parametrize("octet", [bytes([n]) for n in range(256)])
@pytest.mark.parametrize(
    "pattern",
    [
        b"GET /a%bb HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a%b\r\nX: y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX%b: y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: y%bz\r\nY: z\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nConnection: %bclose\r\nY: z\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nY: z\r\n%bX: y\r\n\r\n",
    ],
)
def test_the_short_way_knows_every_octet_as_the_rules_and_llhttp_do(pattern: bytes, octet: bytes) -> None:
    raw = pattern % octet
    assert meaning(parse, raw) == meaning(parse_any, raw)


def test_an_ordinary_head_is_read_by_one_pattern_wherever_its_host_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = head("Connection: keep-alive", "User-Agent: x", "Accept: */*", start="GET /a?b HTTP/1.1")
    monkeypatch.delattr("edge.http.request.parse_any")
    assert read(raw) == read(host_at_end(raw))
    with pytest.raises(NameError):
        read(head("X-Forwarded-For: 6.6.6.6"))


@pytest.mark.parametrize("host", [0, 1, 2, 3])
@pytest.mark.parametrize("connection", [None, "Connection: close", "connection:keep-alive ", "Connection: Close"])
def test_fields_of_an_ordinary_head_come_in_any_order(host: int, connection: str | None) -> None:
    lines = ["Accept: a", "Cookie: b", "X-Other: c"]
    lines.insert(host, "Host: shop.example.com:8080")
    for place in range(5) if connection else (0,):
        placed = [*lines[:place], connection, *lines[place:]] if connection else lines
        raw = head(*placed, host=None)
        found = read(raw)
        assert found == parse_any(raw, HeadLimits())
        assert found.kept == b"\r\nAccept: a\r\nCookie: b\r\nX-Other: c"
        assert (found.fields.host, found.fields.host_port) == ("shop.example.com", 8080)


@pytest.mark.parametrize(
    "lines",
    [
        ["Host: a.example", "Host: a.example"],
        ["Host: a.example", "X: y", "Host: b.example"],
        ["X: y", "Host: a.example", "Host: b.example"],
        ["Connection: close", "X: y"],
        ["Connection: close", "Connection: close"],
        ["X: y", "Host:"],
        ["X: y", "Host: a b"],
    ],
)
def test_ordinary_head_needs_exactly_one_host_wherever_it_stands(lines: list[str]) -> None:
    assert refusal(head(*lines, host=None)) is BAD_HOST
