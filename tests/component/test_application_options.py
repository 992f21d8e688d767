"""What an application chose, between a raw client and a raw origin, on both loops."""

from __future__ import annotations

import base64
import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import brotli
import orjson
import pytest

from tests.component.origins import Recorder
from tests.component.peers import Edge, Wire, answer_each, edge, origin
from tests.component.test_origin_tls import server_context
from tests.tls_parts import the_ca
from tests.unit.common.test_signatures import in_python

DOMAIN = "shop.example.com"
GET = b"GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n"
BROWSE = b"GET / HTTP/1.1\r\nHost: shop.example.com\r\nAccept: text/html,*/*\r\n\r\n"
UNREACHABLE = "http://127.0.0.1:1"


def choose(proxy: Edge, url: str, **options: Any) -> None:
    proxy.replica.enrol(DOMAIN, url)
    proxy.replica.records["application", "app"] |= options
    proxy.change()


async def test_the_origin_is_asked_by_the_customers_name_and_its_addresses_are_understood(tmp_path: Path) -> None:
    seen: list[bytes] = []

    async def script(wire: Wire) -> None:
        while True:
            seen.append((await wire.head()).split(b"\r\n")[1])
            await wire.send(b"HTTP/1.1 302 Found\r\nLocation: http://shop.example.com/base/in\r\n")
            await wire.send(b"Content-Length: 0\r\n\r\n")

    async with origin(script) as there, edge(tmp_path) as proxy:
        client = await proxy.connect()
        for host, sent in (
            (b"SHOP.example.com.", b"shop.example.com"),
            (b"Shop.example.com:84", b"shop.example.com:84"),
        ):
            choose(proxy, there.url + "/base", send_host="customer")
            await client.send(b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % host)
            assert b"\r\nLocation: https://%b/in\r\n" % host in await client.head()
            assert seen.pop() == b"Host: " + sent
        choose(proxy, there.url + "/base")
        await client.send(GET)
        await client.head()
        assert seen.pop() == b"Host: 127.0.0.1:%d" % there.port


async def test_the_origins_certificate_is_asked_for_and_verified_by_the_name_chosen_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "roots.pem"))
    asked: list[str | None] = []
    context = server_context(tmp_path, "inner.example")
    context.sni_callback = lambda _socket, name, _context: asked.append(name)
    (tmp_path / "roots.pem").write_text(the_ca().pem)
    async with origin(answer_each, context) as there, edge(tmp_path) as proxy:
        client = await proxy.connect()
        url = f"https://localhost:{there.port}"
        for options, status in (
            ({}, b"502"),
            ({"origin_server_name": "inner.example"}, b"200"),
            ({"origin_server_name": "other.example"}, b"502"),
            ({"origin_verify": False}, b"200"),
            ({"origin_verify": True}, b"502"),  # the connection that was not verified is not used
        ):
            choose(proxy, url, **options)
            await client.send(GET)
            assert (await client.response())[0].startswith(b"HTTP/1.1 " + status)
    assert asked == ["localhost", "inner.example", "other.example", "localhost", "localhost"]


async def test_each_request_is_signed_anew_with_both_keys_of_a_rotation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder()
    async with origin(recorder) as there, edge(tmp_path) as proxy:
        now = proxy.worker.unix_seconds()

        def sealed(key: bytes) -> str:
            return base64.b64encode(proxy.keyring.seal(key, "application/app/signature-key")).decode()

        choose(
            proxy,
            there.url + "/base",
            signature_key=sealed(b"new"),
            previous_signature_key=sealed(b"old"),
            previous_signature_until=now + 2,
        )
        client = await proxy.connect()
        request = (
            b"GET /x?y=%2F HTTP/1.1\r\nHost: Shop.example.com:444\r\nX-Service-Signature: t=1\r\n"
            b"x_service_signature: t=2\r\nConnection: X-Service-Signature\r\n\r\n"
        )
        for second in range(3):
            monkeypatch.setattr(proxy.worker, "unix_seconds", lambda at=now + second: at)
            await client.send(request)
            await client.head()
            values = [line for line in recorder.heads.pop().split(b"\r\n") if b"ignature" in line]
            assert len(values) == 1
            value = values[0].decode().removeprefix("X-Service-Signature: ")
            assert value.startswith(f"t={now + second},v1=")
            assert in_python(value, "GET", DOMAIN, "/base/x?y=%2F", "new")
            assert in_python(value, "GET", DOMAIN, "/base/x?y=%2F", "old") is (second < 2)
        await client.send(b"POST /x HTTP/1.1\r\nHost: shop.example.com\r\nContent-Length: 0\r\n\r\n")
        await client.head()
        assert b"\r\nContent-Length: 0\r\nX-Service-Signature: t=" in recorder.heads[0]
        assert recorder.heads[0].endswith(b"\r\n\r\n")
        choose(proxy, there.url + "/base")
        await client.send(request)
        await client.head()
        assert b"ignature" not in recorder.heads[1]


async def test_maintenance_answers_in_the_origins_place_until_it_is_off(tmp_path: Path) -> None:
    async with origin(answer_each) as there, edge(tmp_path) as proxy:
        client = await proxy.connect()
        for _ in range(2):
            choose(proxy, there.url)
            await client.send(GET)
            assert (await client.response())[1] == b"ok"
            choose(proxy, there.url, maintenance=True)
            await client.send(GET)
            head, body = await client.response()
            assert head.startswith(b"HTTP/1.1 503 ")
            assert b"\r\nRetry-After: 60\r\n" in head
            assert orjson.loads(body)["code"] == "maintenance"
            await client.send(BROWSE)
            assert b"being worked on" in (await client.response())[1]
        assert len(there.connections) == 1


async def test_maintenance_is_told_on_plain_http_before_any_redirect(tmp_path: Path) -> None:
    async with edge(tmp_path, secure=False) as proxy:
        client = await proxy.connect()
        for maintenance, status in ((False, b"308"), (True, b"503"), (False, b"308")):
            choose(proxy, UNREACHABLE, maintenance=maintenance)
            await client.send(GET)
            assert (await client.response())[0].startswith(b"HTTP/1.1 " + status)


async def test_an_applications_own_page_is_shown_to_browsers_for_our_5xx(tmp_path: Path) -> None:
    async with edge(tmp_path) as proxy:
        client = await proxy.connect()
        proxy.replica.records["error_page", "app"] = {"html": "<h1>{{status}} {{request_id}} {{other}}</h1>"}
        proxy.replica.enrol("other.example.com", UNREACHABLE, application="another")
        for options, status in (({}, 502), ({"maintenance": True}, 503), ({"send_host": "odd"}, 503)):
            choose(proxy, UNREACHABLE, **options)
            await client.send(BROWSE)
            head, body = await client.response()
            id_ = head.partition(b"X-Request-Id: ")[2].partition(b"\r\n")[0]
            assert body == b"<h1>%d %b {{other}}</h1>" % (status, id_)
            assert b"\r\nContent-Type: text/html; charset=utf-8\r\n" in head
            await client.send(GET)
            assert orjson.loads((await client.response())[1])["code"]
            await client.send(BROWSE.replace(b"GET", b"HEAD"))
            assert b"\r\nContent-Length: %d\r\n" % len(body) in await client.head()
        await client.send(BROWSE.replace(b"shop", b"other"))
        assert b"did not answer" in (await client.response())[1]
        choose(proxy, UNREACHABLE)
        await client.send(BROWSE.replace(b"GET /", b"GET /../"))
        assert b"climbs" in (await client.response())[1]


async def test_a_domain_whose_records_cannot_be_used_is_alone_with_that(tmp_path: Path) -> None:
    async with origin(answer_each) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol(DOMAIN, "ftp://nowhere")
        proxy.replica.enrol("other.example.com", there.url)
        proxy.change()
        client = await proxy.connect()
        await client.send(GET)
        head, body = await client.response()
        assert head.startswith(b"HTTP/1.1 503 ")
        assert orjson.loads(body)["code"] == "domain_misconfigured"
        await client.send(GET.replace(b"shop", b"other"))
        assert (await client.response())[1] == b"ok"


@pytest.mark.parametrize(
    ("has_certificate", "held_for", "is_sent_on"),
    [(True, None, True), (False, 60, True), (False, -1, False), (False, None, False)],
)
async def test_plain_http_says_when_a_certificate_is_on_its_way(
    tmp_path: Path, has_certificate: bool, held_for: float | None, is_sent_on: bool
) -> None:
    async with edge(tmp_path, secure=False) as proxy:
        choose(proxy, UNREACHABLE)
        if not has_certificate:
            del proxy.replica.records["certificate", DOMAIN]
        if held_for is not None:
            proxy.replica.records["order", DOMAIN] = {"hold_until": proxy.worker.unix_seconds() + held_for}
        client = await proxy.connect()
        await client.send(GET)
        head, body = await client.response()
        if is_sent_on:
            assert head.startswith(b"HTTP/1.1 308 ")
        else:
            assert head.startswith(b"HTTP/1.1 503 ")
            assert orjson.loads(body)["code"] == "certificate_on_its_way"


async def test_a_blocked_domain_answers_with_the_reason_before_any_other_rule_but_the_challenge(tmp_path: Path) -> None:
    async with edge(tmp_path, secure=False) as proxy:
        client = await proxy.connect()
        proxy.replica.records["error_page", "app"] = {"html": "ours"}
        choose(proxy, UNREACHABLE, maintenance=True)
        answer = {"status": 403, "reason": "Phishing <b>was</b> reported."}
        proxy.replica.records["policy", f"domain/{DOMAIN}"] = {"answer": answer}
        proxy.change()
        for request in (BROWSE, BROWSE.replace(b" / ", b" /%2e%2e/ "), BROWSE.replace(b"GET", b"DELETE")):
            await client.send(request)
            head, body = await client.response()
            assert head.startswith(b"HTTP/1.1 403 ")
            assert b"The operator of this service has blocked this address. Phishing &lt;b&gt;was&lt;/b&gt;" in body
        await client.send(GET)
        assert orjson.loads((await client.response())[1])["code"] == "blocked"
        proxy.worker.lookup = replace(proxy.worker.lookup, challenge_answer=lambda _: b"key")
        await client.send(b"GET /.well-known/acme-challenge/abc HTTP/1.1\r\nHost: shop.example.com\r\n\r\n")
        assert (await client.response())[1] == b"key"
        del proxy.replica.records["policy", f"domain/{DOMAIN}"]
        choose(proxy, UNREACHABLE, maintenance=False)
        await client.send(GET)
        assert (await client.response())[0].startswith(b"HTTP/1.1 308 ")


async def test_responses_carry_the_applications_fields_where_the_origin_sends_none(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        while True:
            await wire.head()
            await wire.send(b"HTTP/1.1 200 OK\r\nReferrer-Policy: origin\r\nContent-Length: 2\r\n\r\nok")

    policy = {"hsts_seconds": 60, "hsts_subdomains": True, "nosniff": True, "referrer_policy": "no-referrer"}
    async with origin(script) as there, edge(tmp_path) as proxy:
        client = await proxy.connect()
        for chosen, is_there in ((policy | {"fields": {"X-Own": "a; b"}}, True), (None, False)):
            choose(proxy, there.url, response_policy=chosen)
            for _ in range(6):  # parsed, remembered, and read by a template
                await client.send(GET)
                head = await client.head()
                assert await client.reader.readexactly(2) == b"ok"
                assert head.count(b"Referrer-Policy: origin\r\n") == head.lower().count(b"referrer-policy") == 1
                for line in (
                    b"\r\nStrict-Transport-Security: max-age=60; includeSubDomains\r\n",
                    b"\r\nX-Content-Type-Options: nosniff\r\n",
                    b"\r\nX-Own: a; b\r\n",
                ):
                    assert (line in head) == is_there, line


async def test_the_origin_gets_the_chosen_notes_and_none_that_a_client_made_up(tmp_path: Path) -> None:
    heads: list[bytes] = []

    async def script(wire: Wire) -> None:
        while True:
            heads.append(await wire.head())
            await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with origin(script) as there, edge(tmp_path) as proxy:
        client = await proxy.connect()
        forged = b"X-Service-Metadata-Plan: forged\r\nX_Service_Metadata_Id: 1\r\n"
        for keys, fields in ((["plan"], [b"X-Service-Metadata-plan: pro%0A%C3%BC"]), ([], [])):
            choose(proxy, there.url, metadata_fields=keys)
            proxy.replica.records["route", f"power/{DOMAIN}"]["metadata"] = {"plan": "pro\nü", "id": "4711"}
            for number in range(4):  # read, remembered, by a template
                await client.send(GET[:-2] + forged + b"Cookie: a=%d\r\n\r\n" % number)
                await client.response()
                seen = [line for line in heads.pop().split(b"\r\n") if b"metadata" in line.lower()]
                assert seen == fields


async def test_visitors_are_refused_by_address_and_by_rate_before_the_origin_is_asked(tmp_path: Path) -> None:
    async def visit(client: Wire, **rules: Any) -> tuple[bytes, bytes]:
        proxy.replica.enrol(DOMAIN, there.url, visitors=rules)
        proxy.change()
        return await repeat(client)

    async def repeat(client: Wire) -> tuple[bytes, bytes]:
        await client.send(GET)
        return await client.response()

    asked: list[bytes] = []

    async def script(wire: Wire) -> None:
        while True:
            asked.append(await wire.head())
            await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with origin(script) as there, edge(tmp_path) as proxy:
        client = await proxy.connect()
        for number in range(6):  # remembered, as of any domain without rules
            proxy.replica.enrol(DOMAIN, there.url)
            assert (await repeat(client))[0].startswith(b"HTTP/1.1 200 "), number
        asked.clear()
        for rules in ({"deny": ["127.0.0.0/8"]}, {"allow": ["192.0.2.0/24", "::/0"]}):
            head, body = await visit(client, **rules)
            assert head.startswith(b"HTTP/1.1 403 ")
            assert orjson.loads(body)["code"] == "address_refused"
        assert (await visit(client, allow=["127.0.0.1/32"], deny=["192.0.2.0/24"]))[0].startswith(b"HTTP/1.1 200 ")
        assert len(asked) == 1
        answers = [await visit(client, rateLimit={"requests": 3, "seconds": 3600})]
        answers += [await repeat(client) for _ in range(4)]
        assert [head[9:12] for head, _ in answers] == [b"200", b"200", b"200", b"429", b"429"]
        assert b"\r\nRetry-After: 1200\r\n" in answers[3][0] or b"\r\nRetry-After: 1199\r\n" in answers[3][0]
        assert len(asked) == 4
        proxy.replica.enrol(DOMAIN, there.url)
        proxy.change()
        assert (await repeat(client))[0].startswith(b"HTTP/1.1 200 ")
        counted = {family.name: family for family in proxy.worker.measurements()}
        refusals = counted["frontage_edge_refusals"].samples
        assert refusals == {("address_refused",): [2.0], ("too_many_requests",): [2.0]}


async def test_the_address_that_a_trusted_proxy_states_is_the_visitors(tmp_path: Path) -> None:
    async with origin(answer_each) as there, edge(tmp_path, FRONTAGE_EDGE_TRUSTED_PROXIES="127.0.0.0/8") as proxy:
        proxy.replica.enrol(DOMAIN, there.url, visitors={"deny": ["192.0.2.0/24"]})
        proxy.change()
        client = await proxy.connect()
        for stated, status in ((b"192.0.2.7", b"403"), (b"198.51.100.7", b"200"), (b"198.51.100.7, 192.0.2.7", b"403")):
            await client.send(GET[:-2] + b"X-Forwarded-For: %b\r\n\r\n" % stated)
            assert (await client.response())[0][9:12] == status, stated


async def unchunked(client: Wire) -> bytes:
    pieces = []
    while size := int(await client.reader.readline(), 16):
        pieces.append(await client.reader.readexactly(size))
        await client.reader.readexactly(2)
    await client.reader.readexactly(2)
    return b"".join(pieces)


async def test_text_is_compressed_where_the_application_asks_and_the_client_takes_it(tmp_path: Path) -> None:
    page = b"<p>Something to read</p>" * 4000

    async def script(wire: Wire) -> None:
        while True:
            is_for_head = (await wire.head()).startswith(b"HEAD")
            await wire.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(page))
            if not is_for_head:
                await wire.send(page)

    async with origin(script) as there, edge(tmp_path) as proxy:
        client = await proxy.connect()
        for chosen, accepted, coding in (
            ("off", b"gzip", b""),
            ("on", b"gzip", b"gzip"),
            ("on", b"gzip, br", b"br"),
            ("on", b"identity", b""),
        ):
            choose(proxy, there.url, response_policy={"compression": chosen})
            for _ in range(6):  # parsed, remembered, and read by a template
                await client.send(GET[:-2] + b"Accept-Encoding: %b\r\n\r\n" % accepted)
                head = await client.head()
                body = await (unchunked(client) if coding else client.reader.readexactly(len(page)))
                assert (b"\r\nContent-Encoding: %b\r\n" % coding in head) == bool(coding)
                assert (b"\r\nVary: Accept-Encoding\r\n" in head) == (chosen == "on")
                assert len(body) < len(page) // 10 if coding else body == page
                decode = {b"": bytes, b"br": brotli.decompress, b"gzip": gzip.decompress}[coding]
                assert decode(body) == page
        choose(proxy, there.url, response_policy={"compression": "on"})
        await client.send(GET.replace(b"GET", b"HEAD")[:-2] + b"Accept-Encoding: gzip\r\n\r\n")
        head = await client.head()
        assert b"\r\nContent-Encoding: gzip\r\n" in head
        assert b"content-length" not in head.lower()
        await client.send(GET)  # the connection goes on
        assert (await client.response())[1] == page
