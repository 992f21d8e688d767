"""HTTP/2 through a real edge to a real origin, on both loops: what reaches the origin, and what comes back."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest
from hpack import NeverIndexedHeaderTuple

from edge.http2.errors import ErrorCode
from edge.http2.open_streams import STREAM_WINDOW
from tests.component.http2_peers import BROWSER, HOST, Fields, get, http2_client, post
from tests.component.origins import Recorder, StrictOrigin
from tests.component.peers import Wire, edge, origin, served
from tests.unit.edge.http2.generated_fields import damage, some_fields
from tests.unit.edge.oracle import check_spelling, read_requests
from tests.waiting import until


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
    "a head of 100 KB": (get(b"/", (b"cookie", b"a=VkcTz5" * 12_500)), None),
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


def with_values(
    path: bytes, cookie: bytes, language: bytes = b"en", *more: tuple[bytes, bytes], **pseudo: bytes
) -> Fields:
    fields = [*BROWSER[:2], (b"accept-language", language), (b"cookie", cookie), BROWSER[4], *more]
    return get(path, *fields, **pseudo)


VARIED: list[tuple[Fields, int]] = [
    (with_values(b"/1", b"a=1"), 200),
    (with_values(b"/2", b"a=2"), 200),
    (with_values(b"/2", b"a=3", b"de"), 200),
    (with_values(b"/2", b"a=\x013", b"de"), 400),
    (with_values(b"/2", b"a=4", b"de\x7f"), 400),
    (with_values(b"/%2e%2e/x", b"a=5"), 400),
    (with_values(b"/a#b", b"a=6"), 400),
    (with_values(b"/3", b"a=7", authority=b"none.example.com"), 404),
    (with_values(b"/4", b"a=8", b"fr"), 200),
    (with_values(b"/5", b"a=9", b"fr", (b"x-forwarded-for", b"6.6.6.6")), 200),
    (with_values(b"/6", b"a=10", b"fr", (b"x-forwarded-for", b"7.7.7.7")), 200),
    (with_values(b"/7", b"a=11", b"fr", (b"content-length", b"0")), 200),
    (with_values(b"/8", b"a=12", b"fr", (b"via", b"1.0 a")), 200),
    (with_values(b"/9", b"a=13", b"fr", (b"via", b"1.0 b")), 200),
    (with_values(b"/10", b"a=14", b"", method=b"DELETE"), 200),
    (with_values(b"/11", b"caf\xe9", b""), 200),
]


@pytest.mark.parametrize("step", [1, 3, 5, 7])
async def test_requests_with_other_values_are_forwarded_and_refused_alike(tmp_path: Path, step: int) -> None:
    recorder = Recorder()
    async with origin(recorder) as there, edge(tmp_path) as proxy, http2_client(proxy) as client:
        proxy.replica.enrol("shop.example.com", there.url + "/base")
        proxy.change()
        for number in range(3 * len(VARIED)):
            fields, status = VARIED[number * step % len(VARIED)]
            plain = await proxy.connect()
            await plain.send(as_http1(fields, None))
            await plain.response()
            assert (await client.exchange(fields)).status == status
        assert recorder.heads
        for of_http1, of_http2 in zip(recorder.heads[::2], recorder.heads[1::2], strict=True):
            assert normal(of_http1) == normal(of_http2)


KINDS: list[tuple[Fields, int]] = [
    (get(b"/a", *BROWSER), 200),
    (get(b"/a", *BROWSER, method=b"DELETE"), 200),
    (get(b"/a", *BROWSER[:3]), 200),
    (get(b"/a", *BROWSER, authority=b"none.example.com"), 404),
    (get(b"/a", *BROWSER[:3], (b"x-forwarded-for", b"6.6.6.6")), 200),
    (get(b"/a", *BROWSER[:3], (b"te", b"trailers")), 200),
    (get(b"/a", *BROWSER[:3], (b"content-length", b"0")), 200),
    (get(b"/a", *BROWSER[:3], (b"accept", b"a\x01b")), 400),
    (get(b"/.well-known/a", *BROWSER), 200),
    (get(b"/%2e%2e/a", *BROWSER), 400),
    (get(b"/a", *BROWSER[:3], (b"cookie", b"a=1")), 200),
]


@pytest.mark.parametrize("step", [1, 2, 3, 5, 7])
async def test_requests_of_several_kinds_are_forwarded_and_refused_alike(tmp_path: Path, step: int) -> None:
    recorder = Recorder()
    async with origin(recorder) as there, edge(tmp_path) as proxy, http2_client(proxy) as client:
        proxy.replica.enrol("shop.example.com", there.url + "/base")
        proxy.change()
        for number in range(6 * len(KINDS)):
            fields, status = KINDS[number * step % len(KINDS)]
            path = b"%b?%d" % (dict(fields)[b":path"], number)
            fields = [(name, path if name == b":path" else value) for name, value in fields]
            if number % 17 == 16:
                fields[4] = b"user-agent", b"a/%d" % number
            plain = await proxy.connect()
            await plain.send(as_http1(fields, None))
            await plain.response()
            fields[2] = NeverIndexedHeaderTuple(*fields[2])
            assert (await client.exchange(fields)).status == status
            if number % 13 == 12:
                proxy.replica.enrol("shop.example.com", f"{there.url}/base-{number}")
                proxy.change()
        assert recorder.heads
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
    strict = StrictOrigin()
    rng = Random(30)
    attempts: list[Fields] = [*SMUGGLING] * 2
    for _ in range(300):
        attempt = [*rng.choice(SMUGGLING), *some_fields(rng)]
        at = rng.randrange(len(attempt))
        attempt[at] = (damage(rng, attempt[at][0]), damage(rng, attempt[at][1]))
        attempts.append(attempt)

    answered = 0
    async with served(strict, tmp_path) as (_, proxy):
        for fields in attempts:
            async with http2_client(proxy) as client:
                for _ in range(rng.randrange(3)):  # what is remembered of them must not be taken for this one
                    await client.exchange(get())
                before = strict.served()
                content = rng.choice((None, b"", b"abc", b"0\r\n\r\nGET /smuggled HTTP/1.1\r\n"))
                response = client.responses[client.request(fields, content)]
                await until(lambda: response.is_over or client.is_closed)  # noqa: B023 - awaited here
                is_answered = any(name == b"x-origin" for name, _ in response.fields)
                assert is_answered <= strict.served() - before <= 1, fields
                answered += is_answered
    assert answered > 10
    for machine in strict.machines:
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


async def test_request_of_known_length_is_whole_at_the_origin_with_its_end(tmp_path: Path) -> None:
    """`httpx` ends a request by a frame of its own: a response before that would be followed by a reset."""
    bodies = []

    async def script(wire: Wire) -> None:
        await wire.head()
        bodies.append(await wire.exactly(3))
        bodies.append(await wire.exactly(2))
        await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with served(script, tmp_path) as (_, proxy), http2_client(proxy) as client:
        stream_id = client.request(post(b"/", (b"content-length", b"5")), b"hel", ends=False)
        await until(lambda: bodies == [b"hel"])
        client.h2.send_data(stream_id, b"lo")
        for _ in range(20):  # in which the origin could have answered
            assert (await client.exchange(get(authority=b"none.example.com"))).status == 404
        assert bodies == [b"hel"]
        client.h2.end_stream(stream_id)
        client.flush()
        response = await client.response(stream_id)
        assert (response.content, response.reset) == (b"ok", None)
    assert bodies == [b"hel", b"lo"]


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
