"""HTTP/2 through a real edge to a real origin, on both loops: what reaches the origin, and what comes back."""

from __future__ import annotations

import asyncio
import re
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest
from hpack import NeverIndexedHeaderTuple

from common.traffic import HTTP2
from edge.http.error_responses import CLIENT_DISCONNECTED
from edge.http2 import frames
from edge.http2.errors import ErrorCode
from edge.http2.open_streams import STREAM_WINDOW
from edge.proxy.exchange_states import FINISHED
from edge.proxy.http2_connection import FAIR_EXCHANGES, Http2ClientConnection
from tests.component.http2_peers import HOST, Fields, get, http2_client, post
from tests.component.peers import Wire, answer_each, edge, enrol, origin, served
from tests.unit.edge.http2.machine import split
from tests.unit.edge.http2.oracles import damage, some_fields
from tests.unit.edge.oracle import AskingOrigin, check_spelling, read_requests
from tests.waiting import until

NO_ERROR = ErrorCode.NO_ERROR


class Recorder:
    """An origin that keeps what it received, and answers each request with its body."""

    def __init__(self) -> None:
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []

    async def __call__(self, wire: Wire) -> None:
        while True:
            head = await wire.head()
            self.heads.append(head)
            body = b""
            if length := re.search(rb"\r\ncontent-length: ([0-9]+)", head, re.IGNORECASE):
                body = await wire.exactly(int(length[1]))
            elif b"\r\nTransfer-Encoding: chunked" in head:
                body = await wire.chunks()
            self.bodies.append(body)
            await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


def as_http1(fields: Fields, body: bytes | None) -> bytes:
    """Return the request of HTTP/1.1 that means the same."""
    pseudo = {name: value for name, value in fields if name[:1] == b":"}
    lines = [b"%b: %b" % field for field in fields if field[0][:1] != b":"]
    if body is not None and not any(name == b"content-length" for name, _ in fields):
        lines.append(b"Transfer-Encoding: chunked")
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    start = b"%b %b HTTP/1.1\r\nHost: %b\r\n" % (pseudo[b":method"], pseudo[b":path"], pseudo[b":authority"])
    return start + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + (body or b"")


def normal(head: bytes) -> bytes:
    """Return a head without what may differ: the version in Via, and the case of names."""
    head = head.replace(b"2.0 frontage", b"1.1 frontage")
    return re.sub(rb"\r\n([^:\r\n]+):", lambda name: name[0].lower(), head)


BROWSER = [
    (b"user-agent", b"Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"),
    (b"accept", b"text/html,*/*;q=0.8"),
    (b"accept-language", b"en-US,en;q=0.5"),
    (b"cookie", b"session=abc"),
    (b"te", b"trailers"),
]
TWINS: dict[str, tuple[Fields, bytes | None]] = {
    "a plain one": (get(b"/a?b=c"), None),
    "a browser's": (get(b"/x", *BROWSER), None),
    "forged fields": (
        get(
            b"/", (b"x-forwarded-for", b"6.6.6.6"), (b"x-service-auth", b"x"), (b"via", b"1.0 a"), (b"x_real_ip", b"1")
        ),
        None,
    ),
    "a port": (get(authority=b"shop.example.com:444"), None),
    "upper case and a dot": (get(authority=b"SHOP.example.com."), None),
    "a length": (post(b"/up", (b"content-length", b"5")), b"hello"),
    "no length": (post(b"/up"), b"hello"),
    "a form": (post(b"/f", (b"content-type", b"application/x-www-form-urlencoded"), (b"content-length", b"3")), b"a=b"),
    "DELETE": (get(b"/d", method=b"DELETE"), None),
    "a method of its own": (get(b"/d", method=b"PURGE"), None),
    "percent": (get(b"/a%20b/%e4?x=%2f#"[:-1]), None),
    "UTF-8": (get("/grüße".encode()), None),
    "dots": (get(b"/a/../b"), None),
    "obs-text": (get(b"/", (b"x-name", b"caf\xe9")), None),
    "trailer": (post(b"/", (b"trailer", b"x-sum")), b"hello"),
    "priority": (get(b"/", (b"priority", b"u=1, i")), None),
    "max-forwards": (get(b"/", (b"max-forwards", b"3"), method=b"OPTIONS"), None),
}
REFUSED: dict[str, tuple[Fields, bytes | None]] = {
    "another domain": (get(authority=b"none.example.com"), None),
    "no host name": (get(authority=b"a_b..c"), None),
    "userinfo": (get(authority=b"user@shop.example.com"), None),
    "a climbing path": (get(b"/%2e%2e/x"), None),
    "a fragment": (get(b"/a#b"), None),
    "invalid UTF-8": (get(b"/\xff"), None),
    "a control in a value": (get(b"/", (b"x", b"a\x01b")), None),
    "a long target": (get(b"/" + b"a" * 9000), None),
    "many fields": (get(b"/", *((b"x-%d" % n, b"1") for n in range(150))), None),
    "a large head": (get(b"/", *((b"x-%d" % n, b"v" * 3000) for n in range(12))), None),
    "TRACE": (get(method=b"TRACE"), None),
    "an expectation": (post(b"/", (b"expect", b"more"), (b"content-length", b"2")), b"ok"),
    "two lengths": (post(b"/", (b"content-length", b"2"), (b"content-length", b"3")), b"ok"),
    "a length that is none": (post(b"/", (b"content-length", b"2x")), b"ok"),
    "OPTIONS of the last hop": (get(b"/", (b"max-forwards", b"0"), method=b"OPTIONS"), None),
}


async def test_request_reaches_the_origin_as_its_twin_of_http_1_1(tmp_path: Path) -> None:
    recorder = Recorder()
    async with origin(recorder) as there, edge(tmp_path) as proxy, http2_client(proxy) as client:
        proxy.replica.enrol("shop.example.com", there.url + "/base")
        proxy.change()
        for name, (fields, body) in TWINS.items():
            plain = await proxy.connect()
            await plain.send(as_http1(fields, body))
            await plain.response()
            for _ in range(7):  # parsed, then by templates
                response = await client.exchange(fields, body)
                assert (response.status, response.content) == (200, body or b""), name
                assert normal(recorder.heads[-1]) == normal(recorder.heads[0]), name
                assert recorder.bodies[-1] == recorder.bodies[0], name
            assert b"\r\nVia: " in recorder.heads[-1]
            assert b"2.0 frontage\r\n" in recorder.heads[-1]
            recorder.heads.clear()
            recorder.bodies.clear()


async def test_request_is_refused_as_its_twin_of_http_1_1(tmp_path: Path) -> None:
    recorder = Recorder()
    async with served(recorder, tmp_path) as (_, proxy):
        async with http2_client(proxy) as client:
            for name, (fields, body) in REFUSED.items():
                plain = await proxy.connect()
                await plain.send(as_http1(fields, body))
                head, content = await plain.response()
                response = await client.exchange(fields, body)
                assert b" %d " % response.status in head.split(b"\r\n")[0], name
                assert response.ended, name
                if content and response.status != 200:
                    assert orjson.loads(response.content)["code"] == orjson.loads(content)["code"], name
            assert (await client.exchange(get())).status == 200
        assert len(recorder.heads) == 1


async def test_varied_requests_are_read_by_templates_alike(tmp_path: Path) -> None:
    recorder = Recorder()
    async with served(recorder, tmp_path) as (_, proxy), http2_client(proxy) as client:
        for number in range(40):
            await client.exchange(
                get(b"/%d" % number, (b"cookie", b"n=%d" % number), (b"cookie", b"b=2"), *BROWSER[:3])
            )
        assert [re.search(rb"cookie: ([^\r]*)", head)[1] for head in recorder.heads] == [  # type: ignore[index]
            b"n=%d; b=2" % number for number in range(40)
        ]
        assert [head.split(b" ")[1] for head in recorder.heads] == [b"/%d" % number for number in range(40)]


async def test_requests_that_differ_in_their_path_alone_are_forwarded_and_refused_alike(tmp_path: Path) -> None:
    recorder = Recorder()
    expected = {b"/1?a": 200, b"/%2e%2e/x": 400, b"/2": 200, b"/a#b": 400, b"/3": 200, b"/\xff": 400, b"/": 200}
    async with origin(recorder) as there, edge(tmp_path) as proxy, http2_client(proxy) as client:
        proxy.replica.enrol("shop.example.com", there.url + "/base")
        proxy.change()
        for _ in range(3):
            for path, status in expected.items():
                fields = get(path, *BROWSER)
                plain = await proxy.connect()
                await plain.send(as_http1(fields, None))
                await plain.response()
                fields[2] = NeverIndexedHeaderTuple(*fields[2])
                assert (await client.exchange(fields)).status == status
        assert len(recorder.heads) == 2 * 3 * 4
        for of_http1, of_http2 in zip(recorder.heads[::2], recorder.heads[1::2], strict=True):
            assert normal(of_http1) == normal(of_http2)


async def test_path_alone_is_not_enough_behind_another_request_or_a_change(tmp_path: Path) -> None:
    recorder = Recorder()
    async with origin(recorder) as there, edge(tmp_path) as proxy, http2_client(proxy) as client:
        proxy.replica.enrol("shop.example.com", there.url + "/base")
        proxy.change()

        async def ask(path: bytes, authority: bytes = HOST) -> int:
            fields = get(path, *BROWSER, authority=authority)
            fields[2] = NeverIndexedHeaderTuple(*fields[2])
            return (await client.exchange(fields)).status

        for _ in range(3):
            assert await ask(b"/1") == 200
            assert await ask(b"/2", b"none.example.com") == 404
            assert await ask(b"/3", b"none.example.com") == 404
        assert await ask(b"/4") == 200
        proxy.replica.enrol("shop.example.com", there.url + "/other")
        proxy.change()
        assert await ask(b"/5") == 200
        assert recorder.heads[-1].startswith(b"GET /other/5 HTTP/1.1\r\n")


@pytest.mark.parametrize("policy", [None, {"nosniff": True, "fields": {"X-Own": "a; b"}}], ids=["plain", "policy"])
async def test_varied_responses_are_written_by_templates_alike(tmp_path: Path, policy: dict[str, Any] | None) -> None:
    count = 0

    async def script(wire: Wire) -> None:
        nonlocal count
        while True:
            await wire.head()
            cookie = b"n=%d; path=/; domain=127.0.0.1" % count
            fields = b"\r\n".join((b"ETag: %d" % count, b"Set-Cookie: " + cookie, b"X-Padded: \t %d  " % count))
            await wire.send(b"HTTP/1.1 200 OK\r\n%b\r\nContent-Length: 2\r\n\r\nok" % fields)
            count += 1

    async with origin(script) as there, edge(tmp_path) as proxy, http2_client(proxy) as client:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.replica.records["application", "app"] |= {"response_policy": policy}
        proxy.change()
        added = [(b"x-content-type-options", b"nosniff"), (b"x-own", b"a; b")] if policy else []
        for number in range(12):  # parsed, then by a template
            response = await client.exchange(get())
            fields = [field for field in response.fields if field[0] not in (b"date", b"via")]
            assert sorted(fields) == sorted(
                [
                    (b":status", b"200"),
                    (b"etag", b"%d" % number),
                    (b"set-cookie", b"n=%d; path=/; domain=shop.example.com" % number),
                    (b"x-padded", b"%d" % number),
                    (b"content-length", b"2"),
                    *added,
                ]
            )
            assert response.content == b"ok"


# Smuggling --------------------------------------------------------------------------------------------------

SMUGGLING: list[Fields] = [
    get(b"/", (b"x", b"a\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: shop.example.com")),
    get(b"/", (b"x\r\nhost: evil\r\ny", b"1")),
    get(b"/ HTTP/1.1\r\nHost: evil.example\r\nX: "),
    get(method=b"GET /smuggled HTTP/1.1\r\nX: y\r\n\r\nGET"),
    get(authority=b"shop.example.com\r\nX: y"),
    get(authority=b"shop.example.com/path"),
    get(authority=b"shop.example.com?x"),
    get(b"http://evil.example/"),
    get(b"//evil.example/")[:0] + get(b"/", (b"host", b"evil.example")),
    post(b"/", (b"transfer-encoding", b"chunked")),
    post(b"/", (b"transfer-encoding", b"chunked"), (b"content-length", b"3")),
    post(b"/", (b"Transfer-Encoding", b"chunked")),
    post(b"/", (b"transfer-encoding ", b"chunked")),
    post(b"/", (b"transfer_encoding", b"chunked")),
    post(b"/", (b"transfer-encoding", b"\x0bchunked")),
    post(b"/", (b"content-length", b"0")),
    post(b"/", (b"content-length", b"+3")),
    post(b"/", (b"content-length", b"3, 3")),
    post(b"/", (b"content-length", b"3"), (b"content-length", b"4")),
    post(b"/", (b"content-length", b"50")),
    post(b"/", (b"content-length", b"1")),
    get(b"/", (b"connection", b"transfer-encoding")),
    get(b"/", (b"connection", b"upgrade"), (b"upgrade", b"h2c"), (b"http2-settings", b"AAMAAABk")),
    get(b"/", (b"upgrade", b"websocket")),
    get(b"/", (b"proxy-connection", b"keep-alive")),
    get(b"/", (b"x", b"a\nb: c")),
    get(b"/", (b"x", b"a\0b")),
    get(b"/", (b":path", b"/smuggled")),
    [*get(b"/")[:3], (b"host", b"a\r\nb: c")],
    [(b":method", b"CONNECT"), (b":authority", b"shop.example.com:443")],
    [(b":method", b"CONNECT"), (b":protocol", b"websocket"), *get(b"/")[1:]],
]


async def test_nothing_is_smuggled_through_http_2(tmp_path: Path) -> None:
    """Generated requests, too. What an origin gets is whole requests, no more of them than were forwarded."""
    machines: list[AskingOrigin] = []

    async def script(wire: Wire) -> None:
        machines.append(machine := AskingOrigin(len(machines)))
        while data := await wire.reader.read(65536):
            for answer in machine.receive(data):
                assert isinstance(answer, bytes)
                await wire.send(answer)

    rng = Random(30)
    attempts: list[Fields] = [*SMUGGLING] * 2
    for _ in range(300):
        attempt = [*rng.choice(SMUGGLING), *some_fields(rng)]
        at = rng.randrange(len(attempt))
        attempt[at] = (damage(rng, attempt[at][0]), damage(rng, attempt[at][1]))
        attempts.append(attempt)

    def arrived() -> int:
        return sum(machine._served for machine in machines)

    answered = 0
    async with served(script, tmp_path) as (_, proxy):
        for fields in attempts:
            async with http2_client(proxy) as client:
                for _ in range(rng.randrange(3)):  # what is remembered of them must not be taken for this one
                    await client.exchange(get())
                before = arrived()
                content = rng.choice((None, b"", b"abc", b"0\r\n\r\nGET /smuggled HTTP/1.1\r\n"))
                response = client.responses[client.request(fields, content)]
                await until(lambda: response.is_over or client.is_closed)  # noqa: B023 - awaited here
                is_answered = any(name == b"x-origin" for name, _ in response.fields)
                assert is_answered <= arrived() - before <= 1, fields
                answered += is_answered
    assert answered > 10
    for machine in machines:
        requests, _, problem = read_requests(machine.received)
        assert not problem
        for request in requests:
            check_spelling(request)
            assert b"smuggled" not in request.target


# Bodies of requests -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("has_length", [True, False])
async def test_large_upload_arrives_whole(tmp_path: Path, has_length: bool) -> None:
    recorder, body = Recorder(), Random(1).randbytes(3_000_000)
    async with served(recorder, tmp_path) as (_, proxy), http2_client(proxy) as client:
        length = [(b"content-length", b"%d" % len(body))] if has_length else []
        stream_id = client.request(post(b"/", *length), ends=False)
        await client.upload(stream_id, body)
        response = await client.response(stream_id)
        assert response.content == body
        assert recorder.bodies == [body]


@pytest.mark.parametrize(("length", "content"), [(b"6", b"hello"), (b"4", b"hello"), (b"1", b"")])
async def test_content_against_its_length_resets_the_stream(tmp_path: Path, length: bytes, content: bytes) -> None:
    async with served(Recorder(), tmp_path) as (_, proxy), http2_client(proxy) as client:
        response = await client.exchange(post(b"/", (b"content-length", length)), content)
        assert response.reset == ErrorCode.PROTOCOL_ERROR
        assert (await client.exchange(get())).status == 200
        await until(proxy.worker.is_idle)


async def test_trailers_of_a_request_go_on_as_those_of_http_1_1(tmp_path: Path) -> None:
    received = []

    async def script(wire: Wire) -> None:
        received.append(await wire.head())
        received.append(await wire.reader.readuntil(b"0\r\n"))
        received.append(await wire.head())
        await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    async with served(script, tmp_path) as (_, proxy), http2_client(proxy) as client:
        stream_id = client.request(post(b"/", (b"trailer", b"x-sum")), b"hello", ends=False)
        client.h2.send_headers(
            stream_id, [(b"x-sum", b"1"), (b"host", b"evil"), (b"x-forwarded-for", b"6.6.6.6")], True
        )
        client.flush()
        assert (await client.response(stream_id)).status == 200
    assert received[2] == b"x-sum: 1\r\n\r\n"


async def test_expect_100_continue_is_passed_on_and_answered(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        assert b"Expect: 100-continue" in await wire.head()
        await wire.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" + await wire.exactly(5))

    async with served(script, tmp_path) as (_, proxy), http2_client(proxy) as client:
        stream_id = client.request(post(b"/", (b"expect", b"100-continue"), (b"content-length", b"5")), ends=False)
        response = client.responses[stream_id]
        await client.until(lambda: response.interims)
        assert response.interims == [[(b":status", b"100")]]
        client.h2.send_data(stream_id, b"hello", end_stream=True)
        client.flush()
        assert (await client.response(stream_id)).content == b"hello"


async def test_origin_that_does_not_read_an_upload_stops_its_client_only(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        while True:
            head = await wire.head()
            if head.startswith(b"POST"):
                wire.reader._transport.pause_reading()  # type: ignore[attr-defined]
                await asyncio.Event().wait()
            await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with served(script, tmp_path) as (_, proxy), http2_client(proxy) as client:
        stream_id = client.request(post(), ends=False)
        sent = 0

        def send_more() -> bool:
            nonlocal sent
            while room := min(client.h2.local_flow_control_window(stream_id), 16_384):
                client.h2.send_data(stream_id, bytes(room))
                sent += room
            client.flush()
            exchanges = [exchange for connection in proxy.worker.connections for exchange in connection.exchanges()]
            return any(exchange.client.is_paused for exchange in exchanges)  # type: ignore[attr-defined]

        await until(send_more)
        await until(lambda: not client.h2.local_flow_control_window(stream_id))
        assert sent < 64 * STREAM_WINDOW
        assert (await client.exchange(get())).content == b"ok"


async def test_buffered_upload_arrives_whole(tmp_path: Path) -> None:
    recorder, body = Recorder(), Random(1).randbytes(500_000)
    async with origin(recorder) as there, edge(tmp_path) as proxy, http2_client(proxy) as client:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.replica.records["application", "app"]["buffer_uploads_bytes"] = 1_000_000
        proxy.change()
        stream_id = client.request(post(), ends=False)
        await client.upload(stream_id, body)
        assert (await client.response(stream_id)).content == body


# Responses --------------------------------------------------------------------------------------------------


def sends(*pieces: bytes, closes: bool = False):  # type: ignore[no-untyped-def]
    """Return an origin's script: the same answer to every request."""

    async def script(wire: Wire) -> None:
        while True:
            await wire.head()
            for piece in pieces:
                await wire.send(piece)
            if closes:
                return

    return script


async def test_early_hints_reach_the_client(tmp_path: Path) -> None:
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"
    script = sends(hints, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    async with served(script, tmp_path) as (_, proxy), http2_client(proxy) as client:
        response = await client.exchange(get())
        assert response.interims == [[(b":status", b"103"), (b"link", b"</a.css>; rel=preload")]]
        assert response.content == b"ok"


@pytest.mark.parametrize("te", [True, False])
async def test_chunked_response_with_trailers(tmp_path: Path, te: bool) -> None:
    script = sends(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\ngrpc-status: 0\r\n\r\n"
    )
    async with served(script, tmp_path) as (_, proxy), http2_client(proxy) as client:
        for _ in range(6):
            response = await client.exchange(get(b"/", *([(b"te", b"trailers")] if te else [])))
            assert (response.status, response.content) == (200, b"abcde")
            assert response.trailers == ([(b"grpc-status", b"0")] if te else [])
            assert not {b"transfer-encoding", b"connection"} & {name for name, _ in response.fields}


@pytest.mark.parametrize(
    ("method", "answer", "fields"),
    [
        (b"HEAD", b"HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 99\r\n\r\n", (b"content-length", b"99")),
        (b"GET", b"HTTP/1.1 204 No Content\r\nDate: x\r\n\r\n", None),
        (b"GET", b"HTTP/1.1 304 Not Modified\r\nDate: x\r\nETag: 1\r\n\r\n", (b"etag", b"1")),
        (b"GET", b"HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 0\r\n\r\n", (b"content-length", b"0")),
    ],
)
async def test_response_without_content(
    tmp_path: Path, method: bytes, answer: bytes, fields: tuple[bytes, bytes] | None
) -> None:
    async with served(sends(answer), tmp_path) as (_, proxy), http2_client(proxy) as client:
        for _ in range(3):
            response = await client.exchange(get(method=method))
            assert response.fields[0][1] == answer[9:12]
            assert response.fields[1:] == [(b"date", b"x"), *([fields] if fields else [])]
            assert (response.ended, response.content) == (True, b"")


@pytest.mark.parametrize("answer", [b"204 No Content\r\n", b"200 OK\r\nContent-Length: 2\r\n"], ids=["empty", "small"])
async def test_first_response_says_that_it_needs_no_table_of_fields(tmp_path: Path, answer: bytes) -> None:
    content = b"ok" if b"Length" in answer else b""
    script = sends(b"HTTP/1.1 %b\r\n%b" % (answer, content))
    async with served(script, tmp_path) as (_, proxy), http2_client(proxy) as client:
        client.h2.update_settings({frames.HEADER_TABLE_SIZE: 0})
        client.flush()
        await client.until(lambda: client.h2.local_settings[frames.HEADER_TABLE_SIZE] == 0)  # acknowledged
        for _ in range(2):
            response = await client.exchange(get())
            assert (response.fields[0][1], response.content) == (answer[:3], content)


async def test_response_until_the_origins_end(tmp_path: Path) -> None:
    script = sends(b"HTTP/1.1 200 OK\r\n\r\nabc", b"def", closes=True)
    async with served(script, tmp_path) as (_, proxy), http2_client(proxy) as client:
        response = await client.exchange(get())
        assert (response.content, response.ended) == (b"abcdef", True)


async def test_response_that_the_origin_breaks_off_is_reset(tmp_path: Path) -> None:
    script = sends(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nabc", closes=True)
    async with served(script, tmp_path) as (_, proxy), http2_client(proxy) as client:
        response = await client.exchange(get())
        assert (response.reset, response.ended) == (ErrorCode.INTERNAL_ERROR, False)
        assert not client.is_closed


async def test_origin_that_answers_nothing_is_502(tmp_path: Path) -> None:
    async with served(sends(closes=True), tmp_path) as (_, proxy), http2_client(proxy) as client:
        response = await client.exchange(get())
        assert (response.status, orjson.loads(response.content)["code"]) == (502, "origin_down")


async def test_switching_protocols_is_refused(tmp_path: Path) -> None:
    script = sends(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
    async with served(script, tmp_path) as (_, proxy), http2_client(proxy) as client:
        assert (await client.exchange(get())).status == 502


async def test_large_responses_of_many_streams_arrive_whole(tmp_path: Path) -> None:
    body = Random(1).randbytes(1_500_000)
    script = sends(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    async with served(script, tmp_path) as (_, proxy), http2_client(proxy) as client:
        streams = [client.request(get(b"/%d" % number)) for number in range(10)]
        for stream_id in streams:
            assert (await client.response(stream_id)).content == body


async def test_stream_that_is_not_read_stops_only_itself(tmp_path: Path) -> None:
    body = bytes(3_000_000)
    script = sends(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    async with served(script, tmp_path) as (_, proxy), http2_client(proxy, window=10_000) as client:
        slow = client.responses[client.request(get())]
        await client.until(lambda: len(slow.content) == 10_000)
        (connection,) = proxy.worker.connections
        await until(lambda: connection._http2.held_bytes > 100_000)  # type: ignore[attr-defined]
        client.acknowledges = True
        stream_id = client.request(get(b"/other"))
        assert (await client.response(stream_id)).content == body
        assert len(slow.content) == 10_000
        assert connection._http2.held_bytes < 1_200_000  # type: ignore[attr-defined]


# The life of a stream and of a connection -------------------------------------------------------------------


async def test_reset_of_a_stream_cancels_its_exchange(tmp_path: Path) -> None:
    asked: list[bytes] = []
    ends: list[bytes] = []

    async def script(wire: Wire) -> None:
        head = await wire.head()
        asked.append(head)
        if b"/slow" in head:
            ends.append(await wire.rest())
        else:
            await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with served(script, tmp_path) as (_, proxy), http2_client(proxy) as client:
        slow = client.request(get(b"/slow"))
        await until(lambda: asked)  # before that, the connection to the origin would be kept for others
        client.h2.reset_stream(slow, ErrorCode.CANCEL)
        client.flush()
        await until(lambda: ends == [b""])
        assert (await client.exchange(get())).content == b"ok"


async def test_end_of_the_connection_cancels_all_exchanges(tmp_path: Path) -> None:
    asked: list[bytes] = []
    ends: list[bytes] = []

    async def script(wire: Wire) -> None:
        asked.append(await wire.head())
        ends.append(await wire.rest())

    async with served(script, tmp_path) as (_, proxy):
        async with http2_client(proxy) as client:
            for number in range(5):
                client.request(get(b"/%d" % number))
            await until(lambda: len(asked) == 5)
        await until(lambda: len(ends) == 5)
        await until(lambda: not proxy.worker.connections)


@pytest.mark.parametrize("how", ["leaves", "breaks a rule"])
async def test_end_of_a_hundred_exchanges_takes_several_turns_of_the_loop(tmp_path: Path, how: str) -> None:
    asked: list[bytes] = []

    async def script(wire: Wire) -> None:
        asked.append(await wire.head())
        await wire.rest()

    settings: dict[str, Any] = {"FRONTAGE_EDGE_ORIGIN_CONNECTIONS": "1000"}
    async with served(script, tmp_path, **settings) as (_, proxy):
        async with http2_client(proxy) as client:
            for number in range(100):
                client.request(get(b"/%d" % number))
            await until(lambda: len(asked) == 100)
            (connection,) = proxy.worker.connections
            exchanges = connection.exchanges()
            ended: list[int] = []  # how many have, turn by turn

            def count() -> None:
                ended.append(sum(exchange.phase is FINISHED for exchange in exchanges))
                if ended[-1] < 100:
                    asyncio.get_running_loop().call_soon(count)

            count()
            if how == "leaves":
                client.writer.transport.abort()
            else:
                client.send_raw(frames.frame(frames.PING, 0, 0))
            await until(lambda: ended[-1] == 100)
        assert max(later - before for before, later in pairwise(ended)) < 50
        await until(proxy.worker.is_idle)
        assert {exchange.failure for exchange in exchanges} == {CLIENT_DISCONNECTED}
        counters = {family.name: family.samples for family in proxy.worker.measurements()}
        assert counters["frontage_edge_http2_exchanges"] == {(): [100.0]}
        assert proxy.worker.counters.domains.total[HTTP2] == 100
        await until(lambda: not proxy.worker.upstream_count)


async def test_rapid_reset_ends_the_connection_and_is_counted(tmp_path: Path) -> None:
    async with served(answer_each, tmp_path) as (_, proxy), http2_client(proxy) as client:
        await client.exchange(get())
        for _ in range(200):
            stream_id = client.request(get())
            client.h2.reset_stream(stream_id, ErrorCode.CANCEL)
            client.flush()
        await client.closed()
        assert client.goaway_code == ErrorCode.ENHANCE_YOUR_CALM
        assert proxy.worker.counters.http2.ends["early_ends"] == 1
        await until(proxy.worker.is_idle)
        (family,) = [each for each in proxy.worker.measurements() if each.name == "frontage_edge_http2_ends"]
        assert family.samples[("early_ends",)] == [1.0]


async def test_broken_connection_is_told_why(tmp_path: Path) -> None:
    async with edge(tmp_path) as proxy, http2_client(proxy) as client:
        client.send_raw(frames.frame(frames.PING, 0, 0, b"short"))
        await client.closed()
        assert client.goaway_code == ErrorCode.FRAME_SIZE_ERROR
        assert proxy.worker.counters.http2.ends["frame_size_error"] == 1


async def test_http_1_1_on_a_connection_of_http_2_is_refused(tmp_path: Path) -> None:
    async with edge(tmp_path) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.http2_port)
        writer.write(b"GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n")
        last = split(await reader.read())[-1]
        assert (last.kind, frames.read_word(last.payload, 4)[0]) == (frames.GOAWAY, ErrorCode.PROTOCOL_ERROR)
        writer.close()
        await writer.wait_closed()


class SlowOrigin:
    """An origin that answers /slow once it is released, and all else at once."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.released = asyncio.Event()

    async def __call__(self, wire: Wire) -> None:
        while True:
            self.asked.append(await wire.head())
            if b"/slow" in self.asked[-1]:
                await self.released.wait()
            await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


async def test_draining_announces_the_end_twice(tmp_path: Path) -> None:
    script = SlowOrigin()
    async with origin(script) as there, edge(tmp_path) as proxy, http2_client(proxy) as client:
        proxy.worker.final_goaway_seconds = 0.0
        enrol(proxy, there)
        slow = client.request(get(b"/slow"))
        await until(lambda: script.asked)
        proxy.worker.drain()
        await client.until(lambda: client.goaways == [2**31 - 1, slow])
        assert not proxy.worker.is_idle()
        script.released.set()
        assert (await client.response(slow)).content == b"ok"
        await client.closed()
        assert proxy.worker.is_idle()


async def test_requests_are_served_until_the_end_is_announced_finally(tmp_path: Path) -> None:
    async with origin(SlowOrigin()) as there, edge(tmp_path) as proxy, http2_client(proxy) as client:
        proxy.worker.final_goaway_seconds = 3600.0  # it does not come here
        enrol(proxy, there)
        assert (await client.exchange(get())).content == b"ok"
        proxy.worker.drain()
        await client.until(lambda: client.goaways == [2**31 - 1])
        assert (await client.exchange(get(b"/late"))).content == b"ok"


async def test_idle_connection_is_closed_with_goaway(tmp_path: Path) -> None:
    async with edge(tmp_path, FRONTAGE_EDGE_IDLE_TIMEOUT_SECONDS="1") as proxy, http2_client(proxy) as client:
        await client.closed()
        assert (client.goaway_code, client.last_allowed) == (NO_ERROR, 0)


async def test_pings_do_not_keep_an_idle_connection(tmp_path: Path) -> None:
    async with edge(tmp_path, FRONTAGE_EDGE_IDLE_TIMEOUT_SECONDS="1") as proxy, http2_client(proxy) as client:
        while not client.is_closed:
            client.h2.ping(bytes(8))
            client.flush()
            await asyncio.sleep(0.05)
        assert client.goaway_code == NO_ERROR


@pytest.mark.parametrize(
    "start",
    [
        frames.header(frames.HEADERS, frames.END_HEADERS, 1, 100) + b"\x82",
        frames.frame(frames.HEADERS, 0, 1, b"\x82"),
    ],
)
async def test_slow_head_ends_the_connection(tmp_path: Path, start: bytes) -> None:
    async with edge(tmp_path, FRONTAGE_EDGE_HEAD_TIMEOUT_SECONDS="1") as proxy, http2_client(proxy) as client:
        await client.exchange(get())
        client.send_raw(start)
        await client.closed()
        assert client.goaway_code == ErrorCode.ENHANCE_YOUR_CALM
        assert proxy.worker.counters.http2.ends["slow_heads"] == 1


async def test_slow_upload_is_not_a_slow_head(tmp_path: Path) -> None:
    recorder, body = Recorder(), b"x" * 40
    settings: dict[str, Any] = {
        "FRONTAGE_EDGE_HEAD_TIMEOUT_SECONDS": "1",
        "FRONTAGE_EDGE_BODY_TIMEOUT_SECONDS": "2",
        "FRONTAGE_EDGE_IDLE_TIMEOUT_SECONDS": "1",
    }
    async with served(recorder, tmp_path, **settings) as (_, proxy), http2_client(proxy) as client:
        await client.exchange(get())  # settings are acknowledged
        stream_id = client.request(post(b"/", (b"content-length", b"40")), ends=False)
        client.send_raw(frames.header(frames.DATA, frames.END_STREAM, stream_id, 40))
        for at in range(0, 40, 4):
            client.send_raw(body[at : at + 4])
            await asyncio.sleep(0.3)
        assert (await client.response(stream_id)).content == body


async def test_stalled_upload_is_408(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"FRONTAGE_EDGE_BODY_TIMEOUT_SECONDS": "1"}
    async with served(Recorder(), tmp_path, **settings) as (_, proxy), http2_client(proxy) as client:
        await client.exchange(get())
        stream_id = client.request(post(b"/", (b"content-length", b"40")), ends=False)
        client.send_raw(frames.frame(frames.DATA, frames.END_STREAM, stream_id, b"x" * 40)[:20])
        assert (await client.response(stream_id)).status == 408


async def test_client_that_says_nothing_is_closed(tmp_path: Path) -> None:
    async with edge(tmp_path, FRONTAGE_EDGE_HEAD_TIMEOUT_SECONDS="1") as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.http2_port)
        async with asyncio.timeout(10):
            await reader.read()
        writer.close()
        await writer.wait_closed()


async def test_response_that_the_client_never_takes_is_reset(tmp_path: Path) -> None:
    script = sends(b"HTTP/1.1 200 OK\r\nContent-Length: 30000\r\n\r\n" + bytes(30_000))
    settings: dict[str, Any] = {"FRONTAGE_EDGE_BODY_TIMEOUT_SECONDS": "1"}
    async with served(script, tmp_path, **settings) as (_, proxy), http2_client(proxy, window=10) as client:
        response = await client.exchange(get())
        assert (response.reset, len(response.content)) == (ErrorCode.CANCEL, 10)
        assert not client.is_closed


@pytest.mark.parametrize("size", [30_000, 3_000_000], ids=["whole", "paused"])
async def test_first_deadline_of_a_response_that_the_client_does_not_take_resets_it(tmp_path: Path, size: int) -> None:
    script = sends(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (size, bytes(size)))
    async with served(script, tmp_path) as (_, proxy), http2_client(proxy, window=10) as client:
        response = client.responses[client.request(get())]
        await client.until(lambda: len(response.content) == 10)
        (connection,) = proxy.worker.connections
        assert isinstance(connection, Http2ClientConnection)
        (stream,) = connection._streams()
        await until(lambda: stream.has_ended or stream.is_full)
        stream.deadline = connection.deadline = 0.0
        await client.until(lambda: response.reset == ErrorCode.CANCEL)
        assert not client.is_closed


async def test_origin_that_is_silent_is_504(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        await wire.rest()

    settings: dict[str, Any] = {"FRONTAGE_EDGE_ORIGIN_TIMEOUT_SECONDS": "1"}
    async with served(script, tmp_path, **settings) as (_, proxy), http2_client(proxy) as client:
        assert (await client.exchange(get())).status == 504


async def test_removed_domain_loses_its_streams_only(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        if b"/wait" in await wire.head():
            await wire.rest()
        await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with origin(script) as there, edge(tmp_path) as proxy, http2_client(proxy) as client:
        for name in ("shop.example.com", "gone.example.com"):
            proxy.replica.enrol(name, there.url)
        proxy.change()
        stream_id = client.request(get(b"/wait", authority=b"gone.example.com"))
        await until(lambda: there.connections)
        proxy.replica.remove("gone.example.com")
        proxy.change()
        assert (await client.response(stream_id)).reset == ErrorCode.CANCEL
        assert (await client.exchange(get())).content == b"ok"


# Shares and limits ------------------------------------------------------------------------------------------


async def test_one_connection_has_a_fair_share_of_an_origin(tmp_path: Path) -> None:
    released = asyncio.Event()

    async def script(wire: Wire) -> None:
        while True:
            await wire.head()
            await released.wait()
            await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    settings: dict[str, Any] = {"FRONTAGE_EDGE_ORIGIN_CONNECTIONS": "10"}
    async with served(script, tmp_path, **settings) as (there, proxy), http2_client(proxy) as client:
        streams = [client.request(get(b"/%d" % number)) for number in range(50)]
        await until(lambda: len(there.connections) == FAIR_EXCHANGES)
        async with http2_client(proxy) as other:
            stream_id = other.request(get())
            await until(lambda: len(there.connections) == FAIR_EXCHANGES + 1)
            released.set()
            assert (await other.response(stream_id)).content == b"ok"
        for stream_id in streams:
            assert (await client.response(stream_id)).content == b"ok"
        assert len(there.connections) <= FAIR_EXCHANGES + 1


async def test_waiting_stream_can_be_reset(tmp_path: Path) -> None:
    released = asyncio.Event()

    async def script(wire: Wire) -> None:
        while True:
            await wire.head()
            await released.wait()
            await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    settings: dict[str, Any] = {"FRONTAGE_EDGE_ORIGIN_CONNECTIONS": "2"}
    async with served(script, tmp_path, **settings) as (there, proxy), http2_client(proxy) as client:
        streams = [client.request(post(b"/", (b"content-length", b"2")), b"ok") for _ in range(20)]
        await until(lambda: len(there.connections) == 2)
        for stream_id in streams[10:]:
            client.h2.reset_stream(stream_id, ErrorCode.CANCEL)
        client.flush()
        released.set()
        for stream_id in streams[:10]:
            response = await client.response(stream_id)
            assert response.status == 200
        await until(proxy.worker.is_idle)


async def test_hundreds_of_requests_at_once_leave_the_loop_to_others(tmp_path: Path) -> None:
    async with served(answer_each, tmp_path) as (_, proxy), http2_client(proxy) as client:
        for _ in range(5):
            streams = [client.request(get(b"/%d" % number, *BROWSER)) for number in range(100)]
            for stream_id in streams:
                assert (await client.response(stream_id)).content == b"ok"


async def test_access_log_states_the_protocol(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    async with served(answer_each, tmp_path, FRONTAGE_EDGE_ACCESS_LOG=str(path)) as (_, proxy):
        async with http2_client(proxy) as client:
            for _ in range(2):
                await client.exchange(get(b"/a?secret"))
            await client.exchange(get(authority=b"none.example.com"))
        await until(lambda: path.exists() and path.read_bytes().count(b"\n") == 3)
    lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    assert [(line["protocol"], line["status"], line.get("path")) for line in lines] == [
        ("HTTP/2", 200, "/a"),
        ("HTTP/2", 200, "/a"),
        ("HTTP/2", 404, "/"),
    ]
    assert HOST.decode() == lines[0]["domain"]


async def test_exchanges_are_counted_by_protocol(tmp_path: Path) -> None:
    async with served(answer_each, tmp_path) as (_, proxy), http2_client(proxy) as client:
        plain = await proxy.connect()
        await plain.send(b"GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n")
        await plain.response()
        await client.exchange(get())
        await client.exchange(get())
        counters = {family.name: family.samples for family in proxy.worker.measurements()}
        assert counters["frontage_edge_http2_exchanges"] == {(): [2.0]}
        assert counters["frontage_edge_http2_accepted"] == {(): [1.0]}
        assert counters["frontage_edge_exchanges"] == {("200",): [3.0]}


async def test_urgent_response_overtakes_when_the_client_is_slow(tmp_path: Path) -> None:
    body = bytes(400_000)
    script = sends(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    async with served(script, tmp_path) as (_, proxy), http2_client(proxy) as client:
        lazy = [client.request(get(b"/%d" % n, (b"priority", b"u=7"))) for n in range(3)]
        urgent = client.request(get(b"/urgent", (b"priority", b"u=0")))
        assert (await client.response(urgent)).content == body
        for stream_id in lazy:
            assert (await client.response(stream_id)).content == body


async def test_grpc_shaped_request_gets_a_clear_answer(tmp_path: Path) -> None:
    """An origin of HTTP/1.1 sees a POST; what it answers comes back."""
    async with served(Recorder(), tmp_path) as (_, proxy), http2_client(proxy) as client:
        fields = post(b"/pkg.Service/Call", (b"content-type", b"application/grpc"), (b"te", b"trailers"))
        response = await client.exchange(fields, b"\0\0\0\0\x05hello")
        assert (response.status, response.content) == (200, b"\0\0\0\0\x05hello")
