"""Trailers of requests: forwarded, without what a head may not forward and what decides about a message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.http import trailers
from edge.http.error_responses import Rejected
from edge.http.framing import CHUNKED
from edge.http.request import HeadLimits, parse_any, without_cut_fields
from edge.http.request_body import RequestBody
from edge.routing.request_rewriting import Surroundings
from tests.unit.edge.test_mapping import ROUTE

FORBIDDEN = [
    *("transfer-encoding", "content-length", "Content_Length", "host", "trailer", "te", "connection", "keep-alive"),
    *("upgrade", "proxy-connection", "proxy", "http2-settings", "expect", "via", "cache-control", "pragma", "range"),
    *("authorization", "proxy-authorization", "cookie", "set-cookie", "www-authenticate", "origin", "referer"),
    *("x-forwarded-for", "X_Forwarded_Proto", "x-forwarded-host", "x-real-ip", "forwarded", "client-ip"),
    *("x-service-auth", "x_service_auth", "x-service-signature", "x-service-forwarded-host", "x-request-id"),
    *("if-match", "If_None_Match", "if-modified-since", "if-unmodified-since", "if-range", "max-forwards"),
    *("content-type", "content-encoding", "content-range"),
]


@pytest.mark.parametrize("name", FORBIDDEN)
def test_fields_that_decide_are_dropped(name: str) -> None:
    for spelling in (name, name.upper(), name.replace("-", "_")):
        block = b"\r\nX-Sum: 1\r\n%b: x\r\nDigest: 2" % spelling.encode()
        assert trailers.for_origin(block) == b"\r\nX-Sum: 1\r\nDigest: 2"
        assert trailers.announced(b"X-Sum, %b ,Digest" % spelling.encode()) == b"X-Sum, Digest"


def test_trailers_are_framed_behind_the_last_chunk() -> None:
    body = RequestBody(CHUNKED, 100)
    assert body.frame(b"2\r\nok\r\n0\r\nX-Sum:  1 \r\nHost: evil\r\nDigest:\r\n\r\nGET /") == (
        b"2\r\nok\r\n0\r\nX-Sum:  1 \r\nDigest:\r\n\r\n"
    )
    assert (body.is_complete, body.rest, body.trailers) == (True, b"GET /", b"\r\nX-Sum:  1 \r\nDigest:")


def test_as_many_as_a_head_may_have_are_forwarded() -> None:
    block = b"\r\nX: 1" * 100
    assert trailers.for_origin(block) == block
    with pytest.raises(Rejected):
        trailers.for_origin(block + b"\r\nX: 1")
    assert trailers.announced(b"X," * 4000).count(b"X") == 100


@pytest.mark.parametrize("line", [b"X Y: 1", b": 1", b"X : 1", b" X: 1", b"X", b"X: \x00", b"X: 1\rY: 2", b"X: \x7f"])
def test_trailers_are_read_as_strictly_as_heads(line: bytes) -> None:
    with pytest.raises(Rejected):
        RequestBody(CHUNKED, 100).frame(b"0\r\n" + line + b"\r\n\r\n")
    with pytest.raises(Rejected):
        parse_any(b"POST / HTTP/1.1\r\nHost: a.test\r\n" + line + b"\r\n\r\n", HeadLimits())


_NAMES = st.sampled_from([name.encode() for name in FORBIDDEN] + [b"X-Sum", b"digest", b"x-forwarded", b"X_Sum"])
_BLOCKS = st.lists(st.tuples(_NAMES, st.sampled_from([b"", b" 1", b" a:b"])), max_size=8)


@given(_BLOCKS)
def test_nothing_comes_behind_the_body_that_could_not_stand_in_a_head(lines: list[tuple[bytes, bytes]]) -> None:
    block = b"".join(b"\r\n%b:%b" % line for line in lines)
    forwarded = trailers.for_origin(block)
    assert without_cut_fields(forwarded) == forwarded
    may = (b"x-sum", b"digest", b"x_sum")
    assert forwarded == b"".join(b"\r\n%b:%b" % line for line in lines if line[0].lower() in may)


def test_the_head_announces_what_goes_on() -> None:
    raw = b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n"
    raw += b"Trailer: X-Sum, Host\r\ntrailer: b@d, D\r\n\r\n"
    head = parse_any(raw, HeadLimits())
    assert Surroundings(ROUTE, head).after.endswith(b"\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum, D\r\n\r\n")
    sized = parse_any(raw.replace(b"Transfer-Encoding: chunked", b"Content-Length: 0"), HeadLimits())
    assert b"Trailer" not in Surroundings(ROUTE, sized).after
