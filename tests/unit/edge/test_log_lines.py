"""Lines of the access log, in both formats: what they state, and that nothing in them can forge another line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from ipaddress import ip_network
from random import Random
from typing import Any, cast

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.http.error_responses import CUT_OFF, NOT_ENROLLED, ErrorResponse
from edge.http.forwarded import Client
from edge.http.request import HeadLimits, RequestHead, parse
from edge.proxy.exchange import Exchange
from edge.proxy.log_lines import CombinedLines, JsonLines, LineFormat, LoggedConnection, _of_exchange
from tests.unit.edge.test_mapping import PLAIN


@dataclass
class Exchanged:
    """What a line states of an exchange."""

    route: Any = PLAIN
    started_at: float = 10.0
    ended_at: float = 11.5
    answered_at: float = 10.25
    bytes_up: int = 7
    reused: bool = True
    failure: ErrorResponse | None = None
    reason: str = ""


def read(*lines: str, target: str = "/a?secret", host: str = "shop.example.com") -> RequestHead:
    head = "\r\n".join((f"GET {target} HTTP/1.1", f"Host: {host}", *lines, "", ""))
    return parse(head.encode("latin-1"), HeadLimits())


def entry(of: LineFormat, **changes: Any) -> bytes:
    given: dict[str, Any] = {
        "at": 1_795_448_699.5,
        "status": 200,
        "request_id": "0123",
        "head": read("User-Agent: curl/8"),
        "bytes_down": 99,
        "exchange": Exchanged(),
        "refusal": None,
    }
    tls = changes.pop("tls", "TLSv1.3")
    connection = LoggedConnection(Client("192.0.2.1", secure=True, trusted_proxies=()), b"https", tls)
    line = of.line(connection, **(given | changes))
    assert line.count(b"\n") == 1
    return line


def as_json(*, node: str = "node", user_agent: bool = True, **changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(entry(JsonLines(node, user_agent=user_agent), **changes))
    return found


def combined(**changes: Any) -> bytes:
    return entry(CombinedLines("node", user_agent=True), **changes)


def test_json_states_every_field_in_order() -> None:
    assert list(as_json().items()) == [
        ("time", "2026-11-23T15:44:59.500+00:00"),
        ("id", "0123"),
        ("node", "node"),
        ("status", 200),
        ("scheme", "https"),
        ("bytes_down", 99),
        ("tls", "TLSv1.3"),
        ("client", "192.0.2.1"),
        ("method", "GET"),
        ("domain", "shop.example.com"),
        ("path", "/a"),
        ("user_agent", "curl/8"),
        ("application", "app"),
        ("seconds", 1.5),
        ("bytes_up", 7),
        ("reused", True),
        ("origin_seconds", 0.25),
    ]


def test_json_of_a_request_that_was_refused_or_cut_says_so() -> None:
    refused = as_json(status=404, refusal=NOT_ENROLLED, head=None, exchange=None, tls="")
    assert refused["refusal"] == NOT_ENROLLED.code
    assert not {"tls", "method", "seconds"} & set(refused)
    cut = as_json(exchange=Exchanged(failure=CUT_OFF, answered_at=0.0, reason='he said "no"\n'))
    assert (cut["cut"], cut["reason"]) == (True, 'he said "no"\n')
    assert "origin_seconds" not in cut


@pytest.mark.parametrize(
    ("line", "stated"),
    [
        ("user-agent:curl", "curl"),
        ('USER-AGENT: "x" \\', '"x" \\'),
        ("User-Agent: a\tb", "a\tb"),
        ("User-Agent: \xe9", "\ufffd"),
        ("User-Agent: " + "x" * 300, "x" * 256),
        ("User-Agent: last", "last"),
    ],
)
def test_user_agent_is_stated_as_it_came(line: str, stated: str) -> None:
    assert as_json(head=read(line, "X: y"))["user_agent"] == stated
    assert as_json(head=read("X: y", line))["user_agent"] == stated
    assert "user_agent" not in as_json(head=read(line), user_agent=False)


def test_combined_is_what_nginx_writes() -> None:
    line = combined(head=read('User-Agent: say "hi" \\'))
    assert line == (
        b'192.0.2.1 - - [23/Nov/2026:15:44:59 +0000] "GET /a HTTP/1.1" 200 99 "-" "say \\x22hi\\x22 \\x5C"\n'
    )
    unread = combined(head=None, status=400)
    assert unread == b'192.0.2.1 - - [23/Nov/2026:15:44:59 +0000] "-" 400 99 "-" "-"\n'


@settings(max_examples=200)
@given(st.text("\t !\"\\%/{}\x80\xff'abc", max_size=40), st.text('!"\\%/{}?abc', max_size=40))
def test_no_value_of_a_client_breaks_a_line(value: str, path: str) -> None:
    head = read(f"User-Agent: {value}", target="/" + path.replace("#", ""))
    request_id = value.strip() or "0"
    stated = as_json(head=head, request_id=request_id, node='n"%d')
    assert stated["path"].encode() == head.path
    assert stated["id"] == request_id
    assert combined(head=head).count(b'"') == 6


def test_a_line_made_of_what_repeats_is_the_line_of_the_plain_encoder() -> None:
    """Two tenants' requests in turn on a few connections, some of a trusted proxy: each line states its own."""
    rng = Random(29)
    lines = JsonLines("node", user_agent=True)
    trusted = (ip_network("192.0.2.0/24"),)
    connections = [
        LoggedConnection(Client("192.0.2.1", secure=True, trusted_proxies=proxies), b"https", tls, protocol)
        for proxies in ((), trusted)
        for tls, protocol in (("TLSv1.3", ""), ("", "HTTP/2.0"))
    ]
    routes = [replace(PLAIN, domain=f"{name}.example.com", application_id=name) for name in "ab*"]
    for _ in range(2000):
        connection, route = rng.choice(connections), rng.choice(routes)
        host = route.domain.replace("*", rng.choice("cd"))
        agent, forwarded_for = rng.choice(("a/1", "b/1", "a/10", "\xe9", '"')), rng.choice(("198.51.100.1", "x"))
        fields = [f"User-Agent: {agent}", "Accept: x", f"X-Forwarded-For: {forwarded_for}"]
        rng.shuffle(fields)
        head = read(*fields[rng.randrange(2) :], target=rng.choice(("/a?b", "/" + "p" * 1500, '/"')), host=host)
        exchange = cast(
            "Exchange", Exchanged(route, 10.0, 10 + rng.random(), rng.choice((0.0, 10.5)), rng.randrange(9))
        )
        at, request_id = rng.randrange(9000) / 1024, rng.choice(("0a", '"')) if connection.is_trusted else "0a"
        line = lines.line(connection, at, 200, request_id, head, 5, exchange, None)
        plain = lines._entry(connection, at, 200, request_id, head, 5) | _of_exchange(exchange)
        assert list(orjson.loads(line).items()) == list(orjson.loads(orjson.dumps(plain)).items())
