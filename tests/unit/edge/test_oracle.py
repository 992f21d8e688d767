"""What passes through the edge means the same to h11 on both sides, or is refused (RFC 9112 §6, §11.2).

Saved cases always, and a few hundred generated ones; ``python -m tests.fuzz_proxy`` generates as many as wanted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.proxy.client_connection import ClientConnection
from edge.proxy.request_memory import RequestMemory
from edge.routing.response_template import ResponseTemplate
from tests.unit.edge import messages, oracle
from tests.unit.edge.corpus import REQUESTS, RESPONSES
from tests.unit.edge.link import Link
from tests.unit.edge.oracle import AskingOrigin, Disagreement, judge_requests
from tests.unit.edge.response_oracle import Script, judge_responses

generated = settings(max_examples=200)
Splits = st.randoms(note_method_calls=False)


@pytest.fixture(scope="module")
def link(tmp_path_factory: pytest.TempPathFactory) -> Link:
    return Link(tmp_path_factory.mktemp("link"))


def ways(stream: bytes) -> list[Sequence[bytes]]:
    """At once, in halves, and byte by byte."""
    middle = len(stream) // 2
    whole: list[Sequence[bytes]] = [[stream], [stream[:middle], stream[middle:]]]
    return whole if len(stream) > 2000 else [*whole, [stream[n : n + 1] for n in range(len(stream))]]


@pytest.mark.parametrize("name", REQUESTS)
def test_saved_requests(link: Link, name: str) -> None:
    stream, forwarded = REQUESTS[name]
    for pieces in ways(stream):
        assert judge_requests(link, pieces).forwarded == forwarded


@pytest.mark.parametrize("name", RESPONSES)
def test_saved_responses(link: Link, name: str) -> None:
    answer, status = RESPONSES[name]
    for pieces in ways(answer):
        judge_responses(link, [b"GET /0 HTTP/1.1\r\nHost: shop.example.com\r\n\r\n"], [Script(pieces)])
        came = bytes(link.client.sent)
        assert f" {status} ".encode() in came if status else not came.endswith(b"0\r\n\r\n")


def numbered(message: bytes) -> list[bytes]:
    """Return messages like this one, with a field more, which differs: enough for a template to be learnt and used."""
    return [message.replace(b"\r\n\r\n", b"\r\nX-Number: %d\r\n\r\n" % number, 1) for number in range(8)]


def count_calls(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> list[object]:
    """Return the list of what the method will have returned, but for False and None."""
    returned: list[object] = []
    method = getattr(owner, name)

    def count(*arguments: object, **named: object) -> object:
        result = method(*arguments, **named)
        if result is not None and result is not False:
            returned.append(result)
        return result

    monkeypatch.setattr(owner, name, count)
    return returned


def test_saved_requests_mean_the_same_where_templates_read_them(link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    recalled = count_calls(monkeypatch, RequestMemory, "recall")
    uploads = count_calls(monkeypatch, RequestMemory, "recall_upload")
    for stream, _ in REQUESTS.values():
        if len(stream) < 2000:
            for neighbour in numbered(stream):
                judge_requests(link, [neighbour])
    assert recalled
    assert uploads


def test_saved_responses_mean_the_same_where_templates_read_them(link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    rewritten = count_calls(monkeypatch, ResponseTemplate, "rewrite")
    for answer, _ in RESPONSES.values():
        if len(answer) < 2000:
            for neighbour in numbered(answer):
                judge_responses(link, [b"GET /0 HTTP/1.1\r\nHost: shop.example.com\r\n\r\n"], [Script([neighbour])])
    assert rewritten


@generated
@given(rng=Splits)
def test_generated_requests(link: Link, rng: Random) -> None:
    capacity = rng.choice((20, 1 << 30))
    judge_requests(link, messages.split(rng, messages.request_stream(rng)), upstream_capacity=capacity)


@generated
@given(rng=Splits)
def test_generated_visits(link: Link, rng: Random) -> None:
    judge_requests(link, messages.visit(rng))


@generated
@given(rng=Splits)
def test_generated_responses(link: Link, rng: Random) -> None:
    requests, scripts = messages.conversation(rng)
    judge_responses(link, requests, scripts, client_capacity=rng.choice((20, 1 << 30)))


@pytest.mark.parametrize(
    ("forged", "arrived"),
    [
        (b"POST /a HTTP/1.1\r\n", b"POST /b HTTP/1.1\r\n"),
        (b"X: y\r\n", b"X: z\r\n"),
        (b"\r\n\r\nhello", b"\r\n\r\nhallo"),
        (b"Content-Length: 5\r\n", b"Content-Length: 4\r\n"),
        (b"Content-Length: 5\r\n", b"Content-Length: 5\r\nContent-Length: 5\r\n"),
        (b"X: y\r\n", b"X: y\n"),
    ],
)
def test_the_judge_sees_what_was_changed_on_the_way(
    link: Link, monkeypatch: pytest.MonkeyPatch, forged: bytes, arrived: bytes
) -> None:
    receive = oracle.AskingOrigin.receive
    monkeypatch.setattr(
        oracle.AskingOrigin, "receive", lambda machine, data: receive(machine, data.replace(forged, arrived))
    )
    with pytest.raises(Disagreement):
        judge_requests(link, [b"POST /a HTTP/1.1\r\nHost: shop.example.com\r\nX: y\r\nContent-Length: 5\r\n\r\nhello"])


class Silent:
    """An origin that is yet to answer."""

    def receive(self, data: bytes) -> list[bytes | type[BaseException] | None]:
        return []


def get(host: bytes) -> bytes:
    return b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % host


def test_a_name_of_another_owner_than_the_certificates_is_misdirected(link: Link) -> None:
    link.begin(Silent, server_name="shop.example.com")
    came = link.converse([get(b"power.example.com")])
    assert came.startswith(b"HTTP/1.1 421 ")
    assert not link.upstreams
    link.end()


def test_what_is_asked_after_a_misdirected_request_is_not_answered(link: Link) -> None:
    link.begin(Silent, server_name="shop.example.com")
    came = link.converse([get(b"power.example.com") + get(b"shop.example.com")])
    assert came.count(b"HTTP/1.1 ") == 1
    link.end()


def test_the_same_fields_behind_another_line_are_another_request(link: Link) -> None:
    targets = [b"/a", b"/b?c", b"/..%2f", b"/d", b"/d"]
    assert ask(link, targets, secure=True) == [b"200", b"200", b"400", b"200", b"200"]
    assert link.upstreams[0].pipe.sent.count(b"/base/d ") == 2
    link.end()


def test_a_large_head_is_not_remembered(link: Link) -> None:
    large = b"/" + b"a" * 4096
    assert ask(link, [b"/a", large, large, b"/a"], secure=True) == [b"200"] * 4
    assert len(memory(link).raw) < 100
    link.end()
    assert ask(link, [large, large], secure=True) == [b"200"] * 2
    assert not memory(link).raw
    link.end()


def test_many_requests_that_differ_in_a_cookie_are_forwarded_each_with_its_own(link: Link) -> None:
    """The first ones are parsed, the later ones read by the template learnt from them."""
    cookies = [b"c%d" % number for number in range(70)]
    link.begin(lambda: AskingOrigin(0))
    for number, cookie in enumerate(cookies):
        link.converse([b"GET /%d HTTP/1.1\r\nCookie: %b\r\nHost: power.example.com\r\n\r\n" % (number, cookie)])
    assert memory(link)._template is not None
    sent = bytes(link.upstreams[0].pipe.sent)
    assert [head.partition(b"\r\n")[0] for head in re.findall(rb"Cookie: ([^\r]*\r\n)", sent)] == cookies
    forged = b"GET / HTTP/1.1\r\nCookie: x\r\nX-Service-Auth: y\r\nHost: power.example.com\r\n\r\n"
    link.converse([forged])
    assert b"X-Service-Auth" not in bytes(link.upstreams[0].pipe.sent)
    link.end()


def memory(link: Link) -> RequestMemory:
    return cast("ClientConnection", link.client.protocol)._memory


def test_on_the_plain_port_a_challenge_may_pass_and_what_follows_is_sent_to_https(link: Link) -> None:
    challenge = b"/.well-known/acme-challenge/token"
    assert ask(link, [challenge, b"/a", challenge], secure=False) == [b"200", b"308", b"200"]
    link.end()


def ask(link: Link, targets: list[bytes], *, secure: bool) -> list[bytes]:
    """The statuses that a client gets who asks for one after the other, with the same fields."""
    link.begin(lambda: AskingOrigin(0), secure=secure)
    came = b""
    for target in targets:
        came = link.converse([b"GET %b HTTP/1.1\r\nHost: power.example.com\r\n\r\n" % target])
    return re.findall(rb"HTTP/1.1 (\d+)", came)


class Terse:
    """An origin that answers each head at once."""

    def receive(self, data: bytes) -> list[bytes | type[BaseException] | None]:
        return [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"] * data.count(b"\r\n\r\n")


def test_requests_sent_before_the_end_of_input_are_served_to_a_client_that_reads_slowly(link: Link) -> None:
    link.begin(Terse, client_capacity=20)
    link.client.inbox.append(get(b"shop.example.com") * 3)
    while b"200 OK" not in link.client.sent:
        link.step()
    link.client.inbox.append(None)
    assert link.client.deliver(), "the end of the client's input comes while the first response is unread"
    assert link.converse([]).count(b"200 OK") == 3
    assert link.client.is_closing()
    link.end()


def test_a_refusal_under_way_to_a_client_that_left_is_forgotten(tmp_path_factory: pytest.TempPathFactory) -> None:
    link = Link(
        tmp_path_factory.mktemp("busy"),
        FRONTAGE_EDGE_ORIGIN_CONNECTIONS="1",
        FRONTAGE_EDGE_ORIGIN_WAITERS="1",
    )
    link.begin(Silent)
    link.converse([get(b"shop.example.com")])  # has the one connection there may be
    others = []
    for _ in ("waits", "is refused, and leaves before it hears"):
        pipe = link.connect()
        pipe.protocol.data_received(get(b"shop.example.com"))
        others.append(pipe)
    others[1].protocol.connection_lost(ConnectionResetError())
    link.loop.run()
    assert others[1].sent == b""
    others[0].protocol.connection_lost(None)
    link.end()
