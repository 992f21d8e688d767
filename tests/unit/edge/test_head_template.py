"""Heads read by comparison with the one before: whatever is read so means what parsing it would say."""

from __future__ import annotations

import pytest

from edge.http.head_template import HeadTemplate, is_comparable
from edge.http.request import HeadLimits, RequestHead, parse_any
from tests.unit.edge.test_request_head import head, host_at_end, read


def compared(before: bytes, first: bytes, raw: bytes) -> RequestHead | None:
    """What is made of `raw` after those two."""
    known = read(first)
    assert is_comparable(first, known)
    template = HeadTemplate.learn(before, first, known)
    assert template is not None
    found = template.read(raw)
    return (
        None
        if found is None
        else RequestHead(found[0], found[1], 1, template.forwarded % template.select(found), known.fields)
    )


def test_head_with_another_target_and_other_forwarded_values() -> None:
    cut = ("TE: trailers", "X-Forwarded-For: 192.0.2.1", "Connection: te, x-mine", "X-Mine: 1")
    for move in (bytes, host_at_end):
        before, first = (move(head(f"Cookie: {at}", *cut, "X-100%: y", f"Accept: {at}")) for at in "ab")
        for start, cookie, accept in (("HEAD /b?c HTTP/1.1", "", " é"), ("GET /d HTTP/1.1", "x" * 99, "\t=;, %b")):
            raw = move(head(f"Cookie:{cookie}", *cut, "X-100%: y", f"Accept:{accept}", start=start))
            assert compared(before, first, raw) == read(raw) == parse_any(raw, HeadLimits())


def test_number_of_fields_that_are_cut_does_not_matter() -> None:
    before, first, raw = (head(f"Cookie: {value}", *("X: 5%", "Via: 1.1 z") * 20) for value in ("a", "b", "100%b"))
    assert compared(before, first, raw) == read(raw)


@pytest.mark.parametrize(
    "start",
    [
        "GET /a#b HTTP/1.1",
        "GET http://other.example/ HTTP/1.1",
        "POST / HTTP/1.1",
        "GET / HTTP/1.0",
        "GET  / HTTP/1.1",
        "GET /\rx HTTP/1.1",
        "",
        "x",
    ],
)
def test_only_an_ordinary_request_line_is_read(start: str) -> None:
    assert compared(head("X: y"), head("X: z"), head("X: y", start=start)) is None


@pytest.mark.parametrize(
    "raw",
    [
        head("Cookie: a", "Content-Length: 1"),
        head("Cookie: a", "X-Service-Auth: forged"),
        head("Content-Length: 1"),
        head("X-Service-Auth: forged"),
        head("X_Forwarded_For: 192.0.2.1"),
        head("Cookie : a"),
        head("cookie: a"),
        head(" Cookie: a"),
        head("Cookie: a\r\n b"),
        head("Cookie: a\r\n"),
        head("Cookie: a\rb"),
        head("Cookie: a\nContent-Length: 1"),
        head("Cookie: a\x00"),
        head("Cookie: a\x7f"),
        head("Cookie"),
        head("Cookie: a", host="other.example"),
        head("Cookie: a", host="other.example", start="GET /b HTTP/1.1"),
        head("Cookie: a", host=None),
        host_at_end(head("Cookie: a")),
        head("Cookie: a") + b"x",
        head("Cookie: a") * 2,
        head("Cookie: a")[:-2],
        b"",
        b"\r\n",
    ],
    ids=repr,
)
def test_head_that_differs_in_more_must_be_parsed(raw: bytes) -> None:
    assert compared(head("Cookie: b"), head("Cookie: c"), raw) is None


@pytest.mark.parametrize(
    ("before", "first"),
    [
        (head("Cookie: a", "X: y"), head("Cookie: a")),
        (head("Cookie: a"), head("cookie: a")),
        (head("Content-Length: 0"), head("Content-Length: 00")),
        (head("X-Forwarded-For: 192.0.2.1"), head("X-Forwarded-For: 192.0.2.2")),
        (head("Via: 1.1 a"), head("Via: 1.1 b")),
        (head("Connection: close"), head("Connection: keep-alive")),
        (head("Connection: x-mine", "X-Mine: 1"), head("Connection: x-mine", "X-Mine: 2")),
        (head(*(f"X-{n}: a" for n in range(13))), head(*(f"X-{n}: b" for n in range(13)))),
    ],
    ids=repr,
)
def test_only_values_of_forwarded_fields_may_vary(before: bytes, first: bytes) -> None:
    assert HeadTemplate.learn(before, first, read(first)) is None


@pytest.mark.parametrize(
    "raw",
    [
        head(start="GET http://other.example/ HTTP/1.1"),
        head(start="GET / HTTP/1.0"),
        head(start="OPTIONS * HTTP/1.1"),
        head("Content-Length: 0", start="POST / HTTP/1.1"),
        head("Content-Length: 1", start="DELETE / HTTP/1.1"),
        head("Content-Length: 1", "Expect: 100-continue", start="POST / HTTP/1.1"),
        head("Content-Length: 1"),
        head("Connection: upgrade", "Upgrade: websocket"),
    ],
    ids=repr,
)
def test_what_other_heads_are_not_compared_with(raw: bytes) -> None:
    assert not is_comparable(raw, read(raw))


def test_host_and_the_length_of_an_upload_are_read_but_not_forwarded() -> None:
    before, first, raw = (
        head(f"Content-Length: {length}", f"X: {length}", host=host, start="POST /a HTTP/1.1")
        for length, host in ((1, "a.example"), (22, "b.example"), (333, "c.example"))
    )
    template = HeadTemplate.learn(before, first, read(first))
    assert template is not None
    groups = template.read(raw)
    assert groups is not None
    assert (groups[template.host_at], groups[template.length_at]) == (b" c.example", b" 333")
    assert template.forwarded % template.select(groups) == read(raw).kept
    assert template.read(raw.replace(b"POST", b"GET")) is None
