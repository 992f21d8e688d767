"""Responses read by comparison with earlier ones become what parsing and rewriting would make of them."""

from __future__ import annotations

import gc
import re
import tracemalloc
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.http import response
from edge.http.error_responses import Rejected
from edge.http.request import HeadLimits, RequestHead
from edge.http.request import parse as parse_request
from edge.http.response import ResponseHead
from edge.routing.response_rewriting import rewrite
from edge.routing.response_template import ResponseTemplate
from edge.routing.route import Route
from edge.upstream.response_memory import MAX_REMEMBERED_BYTES, OriginResponses, ResponseMemories, shape_of
from tests.unit.edge.test_mapping import PLAIN, ROUTE


def head(*lines: str, status: str = "200 OK") -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status}", *lines, "", "")).encode("latin-1")


def without_end(raw: bytes) -> bytes:
    return raw.removesuffix(b"\r\n\r\n")


def request(method: str = "GET", host: str = "shop.example.com", target: str = "/shop") -> RequestHead:
    return parse_request(f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode(), HeadLimits())


def date_field() -> bytes:
    return b"\r\nDate: now"


def parsed(
    raw: bytes, asked: RequestHead, route: Route, *, keep_alive: bool = True
) -> tuple[ResponseHead, bytes] | None:
    """Return what the full parser and the rewriting make of a head; None for one that is refused."""
    try:
        answer = response.parse(raw, asked.method)
    except Rejected:
        return None
    return answer, rewrite(answer, asked, route, b"https", date_field, keep_alive=keep_alive).head


def facts(found: tuple[ResponseHead, bytes]) -> tuple[object, ...]:
    """Return what the relay uses of a response: `kept` and `stated_length` are in the rewritten head."""
    answer, rewritten = found
    return answer.status, answer.body, answer.keep_alive, answer.upgrade, rewritten


def learnt(before: bytes, raw: bytes, asked: RequestHead) -> ResponseTemplate | None:
    answer = response.parse(raw, asked.method)
    return ResponseTemplate.learn(without_end(before), without_end(raw), answer, asked, frozenset())


def check(template: ResponseTemplate, raw: bytes, asked: RequestHead, route: Route = ROUTE) -> bool:
    """Return whether the template reads the head; if so, as the parser does."""
    is_read = False
    for keep_alive in (True, False):
        found = template.rewrite(without_end(raw), asked, route, b"https", date_field, keep_alive)
        if found is not None:
            is_read = True
            expected = parsed(raw, asked, route, keep_alive=keep_alive)
            assert expected is not None
            assert facts(found) == facts(expected)
    return is_read


def read_by_any(memory: OriginResponses, raw: bytes, asked: RequestHead, route: Route) -> bool:
    """Return whether a template that is remembered for such heads reads this one; if so, as the parser does."""
    shape = shape_of(without_end(raw), is_for_head=asked.method == b"HEAD")
    return sum(check(template, raw, asked, route) for template in memory.find(shape, ())) > 0


BASE = ("Server: x", "Date: a", "Content-Type: text/html", "Content-Length: 5")


@pytest.mark.parametrize("route", [ROUTE, PLAIN])
@pytest.mark.parametrize(
    ("before", "first", "raw"),
    [
        (head(*BASE), head(*BASE), head("Server: x", "Date: b", *BASE[2:])),
        (head(*BASE, "ETag: a"), head(*BASE, "ETag: b"), head(*BASE, 'ETag: W/"%b"')),
        (head("Content-Length: 5", "X: 1"), head("Content-Length: 70", "X: 1"), head("Content-Length: 0", "X: 1")),
        (head("X: 100%", "Transfer-Encoding: chunked"),) * 3,
        (head("X: 1", "Connection: close", status="404"),) * 3,
        (head("X: a"), head("X: b"), head("X: c")),  # until the connection's end, undated
        (
            head("Set-Cookie: a=1; Path=/app/x; Domain=origin.test", "Set-Cookie: b=2", "Content-Length: 1"),
            head("Set-Cookie: a=2; Path=/app/x; Domain=origin.test", "Set-Cookie: b=2", "Content-Length: 2"),
            head(
                "Set-Cookie: a=3; Path=/app; HttpOnly", "Set-Cookie:  c=3; Domain=.origin.test ", "Content-Length: 22"
            ),
        ),
        (
            head("Location: /app/a", "Content-Length: 0", status="302 Found"),
            head("Location: /app/b", "Content-Length: 0", status="302 Found"),
            head("Location: http://origin.test:8000/app/?%b", "Content-Length: 0", status="302 Found"),
        ),
        (
            head("ETag: 1", status="304 Not Modified"),
            head("ETag: 2", status="304 Not Modified"),
            head("ETag: 3", status="304 Not Modified"),
        ),
    ],
)
def test_head_with_other_values_becomes_what_the_parser_makes_of_it(
    before: bytes, first: bytes, raw: bytes, route: Route
) -> None:
    asked = request()
    template = learnt(before, first, asked)
    assert template is not None
    assert check(template, raw, asked, route)
    assert check(template, first, asked, route)


@pytest.mark.parametrize("target", ["/", "/?a=1"])
def test_redirect_of_the_root_is_parsed(target: str) -> None:
    heads = [head(f"Location: /{number}", "Content-Length: 0", status="302 Found") for number in range(3)]
    template = learnt(heads[0], heads[1], request())
    assert template is not None
    assert not check(template, heads[2], request(target=target))
    assert check(template, heads[2], request())


def test_cookies_are_mapped_for_the_route_and_the_domain_that_ask() -> None:
    asked = [request(), request(host="blog.example.com")]
    template = learnt(head("Set-Cookie: a=1; Path=/a"), head("Set-Cookie: a=2; Path=/b"), asked[0])
    assert template is not None
    routes = [
        ROUTE,
        PLAIN,
        replace(PLAIN, root_paths=(b"/app/y",)),
        replace(ROUTE, origin=ROUTE.origin._replace(host="other.test")),
    ]
    random = Random(29)
    for _ in range(400):
        attributes = random.choice(
            ("Path=/app/x", "Path=/app/y/z", "domain=origin.test; Path=/app", "DOMAIN=other.test")
        )
        raw = head(f"Set-Cookie: a={random.random()}; {attributes}")
        assert check(template, raw, random.choice(asked), random.choice(routes))


@pytest.mark.parametrize(
    "raw",
    [
        head("Content-Length: 5", "X: 1", status="201 Created"),
        head("Content-Length: 05", "X: 1"),
        head("Content-Length: 5, 5", "X: 1"),
        head("Content-Length: -5", "X: 1"),
        head("Content-Length: +5", "X: 1"),
        head("Content-Length: ", "X: 1"),
        head("Content-Length: 5 ", "X: 1"),
        head("Content-Length: " + "9" * 19, "X: 1"),
        head("Content-Length: ٥".encode().decode("latin-1"), "X: 1"),
        head("Content-Length: 5", "x: 1"),
        head("Content-Length: 5", "X: 1", "Content-Length: 6"),
        head("Content-Length: 5", "X: 1\nSet-Cookie: a=1"),
        head("Content-Length: 5", "X: 1\r"),
        head("Content-Length: 5", "X: a\x00b"),
        head("Content-Length: 5", "X: a\x7fb"),
        head("Content-Length: 5"),
        head("Transfer-Encoding: chunked", "X: 1"),
        head("X: 1", "Content-Length: 5"),
        head("Content-Length: 5", "X: 1")[:-2],
        head("Content-Length: 5", "X: 1") + b"x",
        b"",
    ],
    ids=repr,
)
def test_head_that_differs_in_more_must_be_parsed(raw: bytes) -> None:
    asked = request()
    template = learnt(head("Content-Length: 7", "X: 3"), head("Content-Length: 8", "X: 4"), asked)
    assert template is not None
    shortest = head("Content-Length: 5", "X: ")
    valid = head("Content-Length: 5", "X: " + "1" * (len(raw) - len(shortest)))
    assert check(template, valid, asked)  # from then on it is known where heads as long have values
    assert template.rewrite(without_end(raw), asked, ROUTE, b"https", date_field, True) is None


def test_heads_of_one_length_are_read_wherever_their_values_stand() -> None:
    asked, random = request(), Random(41)
    template = learnt(head("X: a", "Y: b", "Z: c"), head("X: d", "Y: e", "Z: f"), asked)
    assert template is not None
    for _ in range(400):
        first, second = sorted(random.choices(range(8), k=2))
        text = "".join(random.choices("ab \xe9%:", k=8))
        values = [value.strip() for value in (text[:first], text[first:second], text[second:])]
        assert check(template, head(*(f"{name}: {value}" for name, value in zip("XYZ", values, strict=True))), asked)


@pytest.mark.parametrize(
    ("before", "first", "asked"),
    [
        (head("A: 1"), head("A: 1", "B: 1"), request()),
        (head("A: 1"), head("A: 1", status="404 Not Found"), request()),
        (head("Connection: close"), head("Connection: keep-alive"), request()),
        (head("Transfer-Encoding: chunked"), head("Transfer-Encoding: Chunked"), request()),
        (head("Content-Length: 5"), head("Content-Length: 6"), request("HEAD")),
        (head("Content-Length: 5", status="304 X"), head("Content-Length: 6", status="304 X"), request()),
        (head("Content-Length: 5", "Content-Length: 5"), head("Content-Length: 6", "Content-Length: 6"), request()),
        (head("Connection: x-hop", "X-Hop: 1"), head("Connection: x-hop", "X-Hop: 2"), request()),
        (head("Location:/a"), head("Location:/a"), request()),
        (head("Connection: upgrade", "Upgrade: a", status="426 X"),) * 2 + (request(),),
        (head(*(f"X-{n}: a" for n in range(17))), head(*(f"X-{n}: b" for n in range(17))), request()),
    ],
    ids=repr,
)
def test_what_decides_may_not_vary(before: bytes, first: bytes, asked: RequestHead) -> None:
    assert learnt(before, first, asked) is None


_NAMES = (
    "Date",
    "ETag",
    "Set-Cookie",
    "Content-Length",
    "Location",
    "X-100%",
    "Connection",
    "Refresh",
    "Transfer-Encoding",
)
_COMMON = ("", " ", "0", "1", "17", "007", "1, 1", "chunked", "close", "keep-alive", "x-100%", "etag", "/app/x", "/y")
_ADDRESSES = ("http://origin.test:8000/app/z", "a=1; Path=/app; Domain=origin.test", "a=%b; path=/", "0; url=/app/q")
_VALUES = st.one_of(st.sampled_from((*_COMMON, *_ADDRESSES)), st.text("ab ;=%,/\t\x80\xe9\n\r\x00\x7f:", max_size=6))
_LINES = st.lists(st.tuples(st.sampled_from(_NAMES), st.sampled_from((": ", ":", ":  ", " :"))), max_size=6)


@settings(max_examples=500, deadline=None)
@given(
    data=st.data(), lines=_LINES, status=st.sampled_from(("200 OK", "304 Not Modified", "204 X", "302 Found", "404"))
)
def test_no_sequence_of_heads_is_read_otherwise_than_parsed(
    data: st.DataObject, lines: list[tuple[str, str]], status: str
) -> None:
    asked = request(data.draw(st.sampled_from(("GET", "HEAD"))))
    same = [data.draw(_VALUES) for _ in lines]
    memory = OriginResponses()
    for _ in range(20):
        values = [data.draw(_VALUES) if data.draw(st.integers(0, 3)) == 0 else value for value in same]
        raw = head(*(name + colon + value for (name, colon), value in zip(lines, values, strict=True)), status=status)
        if read_by_any(memory, raw, asked, data.draw(st.sampled_from((ROUTE, PLAIN)))):
            continue
        if (expected := parsed(raw, asked, ROUTE)) is not None:
            memory.add(without_end(raw), expected[0], asked)


@pytest.mark.parametrize(
    "kinds",
    [
        (("X: a", "ETag: {}"), ("Y: a", "ETag: {}")),  # other names, as many
        (("X: a", "ETag: {}"), ("X: b", "ETag: {}")),  # another value of a field that may vary
        (("Connection: close", "ETag: {}"), ("Connection: Close", "ETag: {}")),  # and of one that may not
    ],
)
def test_kinds_of_responses_that_alternate_are_read_beside_each_other(kinds: tuple[tuple[str, ...], ...]) -> None:
    memory, asked = OriginResponses(), request()
    parsed_count = 0
    for number in range(200):
        raw = head(*(line.format(number) for line in kinds[number // 4 % 2]))
        if not read_by_any(memory, raw, asked, PLAIN):
            parsed_count += 1
            memory.add(without_end(raw), response.parse(raw, b"GET"), asked)
    assert parsed_count <= 16


def learn(memory: OriginResponses, *heads: bytes) -> None:
    """Have the memory learn the kind of each head, from as many like it as that takes."""
    for raw in heads:
        for _ in range(4):
            memory.add(without_end(raw), response.parse(raw, b"GET"), request())


def learnt_count(memory: OriginResponses, lines: int) -> int:
    """Return how many kinds of heads of up to so many lines the memory has templates for."""
    return sum(len(memory.find((b"200", number, False), ())) for number in range(lines + 1))


def test_what_is_remembered_of_origins_is_bounded() -> None:
    memories = ResponseMemories()
    kinds = memories.of(PLAIN.origin)
    learn(kinds, *(head(*(f"X-{at}: 1" for at in range(number))) for number in range(40)))
    assert learnt_count(kinds, 40) == 32
    few = OriginResponses()
    learn(few, *(head(f"X-{number}: 1") for number in range(9)))
    assert learnt_count(few, 1) == 4
    for number in range(1000, 2024):
        memories.of(PLAIN.origin._replace(port=number))
    assert memories.of(PLAIN.origin) is not kinds
    assert MAX_REMEMBERED_BYTES <= 4096


def test_origins_that_learnt_longest_ago_forget_where_all_templates_take_too_much() -> None:
    memories = ResponseMemories()
    origins = [memories.of(PLAIN.origin._replace(port=number)) for number in range(300)]
    heads = [head(*(f"X-{number}-{at}: {'1' * 400}" for at in range(9))) for number in range(4)]
    for origin in origins:
        learn(origin, *heads)
    known = [learnt_count(origin, 9) for origin in origins]
    assert known[:30] == [0] * 30
    assert known[-100:] == [4] * 100
    assert memories.remembered.total <= 18_000_000
    learn(origins[0], heads[-1])
    assert learnt_count(origins[0], 9) == 1


@pytest.mark.parametrize(
    "lines",
    [
        ("Server: nginx", "Date: {n}", "Content-Length: {n}", *(f"X-{at}: stays the same" for at in range(8))),
        tuple(f"X-{at}: {{n}}{'x' * 50}" if at % 8 == 0 else f"X-{at}: {'x' * 50}" for at in range(60)),
        (*(f"X{at}:" for at in range(400)), "ETag: {n}"),
        ("Set-Cookie: a={n}; Path=/{n}" + "x" * 300, "Set-Cookie: a={n}; Domain=origin.test; Path=/{n}" + "y" * 300),
        ("Set-Cookie: a={n}; Path=/{n}" + "x" * 3000, "Set-Cookie: a={n}; Domain=origin.test; Path=/{n}" + "y" * 3000),
        ("Set-Cookie: a={n}; Path=/{n}",),
    ],
    ids=["usual", "long", "names", "long cookies", "longest cookies", "cookies"],
)
def test_templates_take_up_no_more_memory_than_is_counted(lines: tuple[str, ...]) -> None:
    def meet(memories: ResponseMemories, count: int) -> None:
        for number in range(count):
            memory = memories.of(PLAIN.origin._replace(port=number + 1))
            kind = (f"K-{number}: 1", *lines)
            learn(memory, *(head(*(line.format(n=n) for line in kind)) for n in range(4)))
            for n in range(40):
                assert read_by_any(memory, head(*(line.format(n=n) for line in kind)), request(), PLAIN)

    meet(ResponseMemories(), 2)  # what is made once
    memories = ResponseMemories()
    gc.collect()
    tracemalloc.start()
    try:
        meet(memories, 12)
        re.purge()
        gc.collect()
        taken_bytes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert taken_bytes < memories.remembered.total
