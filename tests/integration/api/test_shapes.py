"""Whatever is sent, the answer is JSON in the spec's shape: no traceback, no 500, nothing changed."""

from __future__ import annotations

import asyncio
import gzip
import re
from typing import Any

import orjson
import pytest
from yarl import URL

from api.operations import OPERATIONS
from common.exposition import render
from tests.integration.api.conftest import Service
from tests.integration.api.partner import Partner
from tests.integration.api.people import person
from tests.waiting import SECONDS

DOMAIN = "shop.customer.test"
GOOD = b'{"domain": "shop.customer.test", "applicationUrl": "https://origin.example.com"}'

BAD_BODIES = {
    "empty": b"",
    "text": b"hello",
    "cut": GOOD[:-1],
    "list": b"[]",
    "null": b"null",
    "string": b'"a"',
    "number": b"1",
    "NaN": b'{"domain": NaN}',
    "infinite": b'{"domain": 1e999}',
    "trailing": GOOD + b"x",
    "two": GOOD + GOOD,
    "single quotes": b"{'domain': 'a'}",
    "byte order mark": b"\xef\xbb\xbf" + GOOD,
    "UTF-16": GOOD.decode().encode("utf-16"),
    "not UTF-8": b'{"domain": "\xff\xfe"}',
    "half a surrogate pair": b'{"domain": "\\ud800.customer.test"}',
    "nested": b"[" * 100_000,
    "nested objects": b'{"domain":' * 20_000,
    "nested value": b'{"domain": ' + b"[" * 900 + b"]" * 900 + b"}",
    "NUL": b'{"domain": "shop\\u0000.customer.test", "applicationUrl": "https://origin.example.com"}',
    "number for text": b'{"domain": 1, "applicationUrl": "https://origin.example.com"}',
    "list for text": b'{"domain": ["a"], "applicationUrl": "https://origin.example.com"}',
    "no domain": b'{"applicationUrl": "https://origin.example.com"}',
    "large number": b'{"domain": ' + b"9" * 10_000 + b"}",
}


@pytest.mark.parametrize("body", BAD_BODIES.values(), ids=BAD_BODIES.keys())
async def test_bad_bodies_are_refused_in_shape(service: Service, partner: Partner, body: bytes) -> None:
    service.point(DOMAIN)
    headers = partner.headers | {"Content-Type": "application/json"}

    for method in ("POST", "PUT", "DELETE"):
        answer = await partner.call(method, data=body, headers=headers)
        assert answer.status == 502
        assert answer.message in ("Invalid request body", "Domain not valid")
        assert answer.body["request_id"]

    assert (await partner.get()).body["total"] == 0


async def test_the_last_of_doubled_keys_counts(service: Service, partner: Partner) -> None:
    service.point(DOMAIN)
    headers = partner.headers | {"Content-Type": "application/json; charset=utf-8"}

    body = b'{"domain": "other.customer.test", ' + GOOD[1:]
    assert (await partner.call("POST", data=body, headers=headers)).status == 200

    assert (await partner.get()).body["items"][0]["domain"] == DOMAIN


async def test_an_identifier_that_no_database_holds_is_found_nowhere(service: Service, partner: Partner) -> None:
    """A NUL in a path's parameter or in a claim of a token, which Postgres keeps in no text."""
    operator = await person(service, "ops@x.test")
    by_key = {"applicationId": partner.id, "Authorization": f"Bearer {operator.key}"}
    for operation in OPERATIONS:
        path = re.sub(r"\{\w+\}", "%00", operation.path)
        if path != operation.path:
            body: dict[str, Any] = {"json": operation.example or {}} if operation.body else {}
            target = URL(f"{service.url}{path}", encoded=True)
            headers = by_key if operation.by_key_alone else partner.headers
            async with service.session.request(operation.method, target, headers=headers, **body) as answer:
                assert answer.status in (400, 404, 409), (operation.id, answer.status)
    token = partner.token(userId="\0")
    headers = {"applicationId": partner.id, "Authorization": f"Bearer {token}"}
    record = {"type": "TXT", "host": "@", "value": "x", "ttl": 300}
    flow = await partner.call("POST", "/connect/flows", json={"dnsRecords": [record]}, headers=headers)
    assert flow.status == 201


async def test_http_keeps_its_own_statuses(partner: Partner) -> None:
    answer = await partner.call("GET", "/nothing", headers={})
    assert (answer.status, answer.message) == (404, "Not Found")

    answer = await partner.call("PATCH")
    assert (answer.status, answer.message) == (405, "Method Not Allowed")
    assert set(answer.headers["Allow"].split(",")) == {"GET", "POST", "PUT", "DELETE"}

    large = b'{"domain": "' + b"a" * 300_000 + b'"}'
    json_headers = partner.headers | {"Content-Type": "application/json"}
    assert (await partner.call("POST", data=large, headers=json_headers)).status == 413

    for content_type in ("text/plain", "application/x-www-form-urlencoded", "nonsense"):
        headers = partner.headers | {"Content-Type": content_type}
        assert (await partner.call("POST", data=GOOD, headers=headers)).status == 415
    headers = json_headers | {"Content-Encoding": "gzip"}
    assert (await partner.call("POST", data=gzip.compress(b"0" * 10_000_000), headers=headers)).status == 415


async def test_the_software_is_not_named(partner: Partner) -> None:
    for answer in (await partner.get(), await partner.call("GET", "/nothing")):
        assert answer.headers["Server"] == "frontage"


async def test_health_is_public_and_metrics_are_not(service: Service, partner: Partner) -> None:
    assert (await partner.call("GET", "/healthz", headers={})).status == 200
    assert (await partner.call("GET", "/readyz", headers={})).status == 200
    await partner.get()
    await partner.call("GET", "/a/path/nobody/knows")

    text = render(service.counters.families()).decode()
    assert 'frontage_api_requests_total{method="GET",route="/power",status="200"} 1.0' in text
    assert "nobody" not in text
    assert (await partner.call("GET", "/metrics")).status == 404


async def test_what_is_open_to_everybody_also_answers_with_its_head_alone(service: Service) -> None:
    for path, status in (("/healthz", 200), ("/readyz", 200), ("/share/" + "x" * 32, 404)):
        async with service.session.head(service.url + path) as response:
            assert response.status == status, path
            assert int(response.headers["Content-Length"]) > 0
            assert await response.read() == b""


@pytest.mark.parametrize(
    "sent",
    [
        b"garbage\r\n\r\n",
        b"FOO /power HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /power HTTP/1.1\r\nHost: a\r\nAuthorization secret\r\n\r\n",
        b"GET http://[::1/ HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        b"POST /token HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n{}",
        b"POST /token HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}",
        b"POST /token HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: more\r\nContent-Length: 2\r\n\r\n{}",
        b"GET /power?domain=%ff%00 HTTP/1.1\r\nHost: a\r\nConnection: close\r\napplicationId: \xff\r\n\r\n",
        b"GET /power HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer fkey_\xff\r\n\r\n",
        b"GET /nowhere HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: \xff\r\n\r\n",
        b"GET /dashboard HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: \xff\r\n\r\n",
    ],
)
async def test_what_is_hardly_http_is_answered_in_shape(
    service: Service, sent: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    reader, writer = await asyncio.open_connection(*service.address)
    try:
        writer.write(sent)
        async with asyncio.timeout(SECONDS):
            answer = await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()

    head, _, body = answer.partition(b"\r\n\r\n")
    assert b" 40" in head.splitlines()[0]
    assert b"Server: frontage\r\n" in head + b"\r\n"
    assert set(orjson.loads(body)) >= {"message", "request_id"}
    output = capfd.readouterr()
    assert "Traceback" not in output.err + output.out


@pytest.mark.parametrize("target", ["DELETE /token", "POST /nowhere"])
async def test_a_strange_expectation_of_nothing_is_refused_in_shape(service: Service, target: str) -> None:
    reader, writer = await asyncio.open_connection(*service.address)
    try:
        writer.write(f"{target} HTTP/1.1\r\nHost: a\r\nExpect: more\r\nContent-Length: 2\r\n\r\n{{}}".encode())
        async with asyncio.timeout(SECONDS):
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    finally:
        writer.close()
        await writer.wait_closed()

    assert head.startswith(b"HTTP/1.1 417 ")
    assert orjson.loads(body)["message"] == "Expectation Failed"


async def test_who_waits_for_100_continue_gets_it(service: Service, partner: Partner) -> None:
    service.point(DOMAIN)
    body = {"domain": DOMAIN, "applicationUrl": "https://origin.example.com"}

    assert (await partner.call("POST", json=body, expect100=True)).status == 200
    assert (await partner.call("POST", json=body, expect100=True)).status == 502
