"""What is remembered of requests, of a connection and of all: what it may stand for, and what it may not."""

from __future__ import annotations

from typing import Any

import pytest

from edge.http.forwarded import Client
from edge.http.request import HeadLimits, parse
from edge.proxy.request_memory import MAX_REMEMBERED_BYTES, RecentFields, RequestMemory
from edge.routing.respond import Forward, respond
from tests.unit.edge.link import Link

DOMAIN = "power.example.com"


@pytest.fixture(scope="module")
def one_link(tmp_path_factory: pytest.TempPathFactory) -> Link:
    return Link(tmp_path_factory.mktemp("link"))


@pytest.fixture
def link(one_link: Link) -> Link:
    one_link.replica.enrol(DOMAIN, "http://origin.example/base", application="b")
    one_link.worker.on_replica_change()
    return one_link


class Connection:
    """A connection's memory, and the way past it."""

    def __init__(self, link: Link, recent: RecentFields, address: str = "192.0.2.1", server_name: str = "") -> None:
        self._link = link
        self._client = Client(address, secure=True, trusted_proxies=())
        self._server_name = server_name
        self.memory = RequestMemory(recent, self._client, server_name)

    def parse(self, raw: bytes) -> Forward:
        """What becomes of the request without a memory."""
        worker = self._link.worker
        head = parse(raw, HeadLimits())
        outcome = respond(head, worker.lookup, worker.listening_https, self._client, self._server_name)
        assert isinstance(outcome, Forward)
        return outcome

    def ask(self, raw: bytes) -> bool:
        """Whether the request was recalled; if not, it is remembered. Either way it is what parsing makes of it."""
        forward = self.parse(raw)
        is_recalled = self.memory.recall(raw)
        if not is_recalled:
            self.memory.remember(raw, forward)
        assert (self.memory.head, self.memory.route) == (forward.head, forward.route)
        assert self.memory.upstream_head == forward.upstream_head
        return is_recalled


def recent_fields(link: Link, limits: HeadLimits | None = None) -> RecentFields:
    return RecentFields(link.worker.routes, limits or HeadLimits())


def get(target: str = "/a", *lines: str, host: str = DOMAIN) -> bytes:
    return "\r\n".join((f"GET {target} HTTP/1.1", f"Host: {host}", *lines, "", "")).encode()


def test_fields_seen_on_one_connection_are_known_on_every_other(link: Link) -> None:
    recent = recent_fields(link)
    first, second = Connection(link, recent), Connection(link, recent, "192.0.2.2")
    assert not first.ask(get("/a", "Cookie: x"))
    assert second.ask(get("/b", "Cookie: x"))
    assert b"X-Forwarded-For: 192.0.2.2\r\n" in second.memory.upstream_head
    assert not second.ask(get("/b", "Cookie: y"))
    assert first.ask(get("/c", "Cookie: y"))


def test_connection_goes_between_blocks_of_fields_it_has_sent(link: Link) -> None:
    connection = Connection(link, recent_fields(link))
    blocks = ["Accept: image/png", "Accept: text/css\r\nReferer: x", "Accept: */*\r\nOrigin: y"]
    assert [connection.ask(get(f"/{number}", blocks[number % 3])) for number in range(9)] == [False] * 3 + [True] * 6


def test_what_varies_is_learnt_from_a_few_requests(link: Link) -> None:
    connection = Connection(link, recent_fields(link))
    asked = [connection.ask(get(f"/{n}", f"Cookie: {n}", "Accept: */*", f"Referer: /{n}")) for n in range(8)]
    assert asked == [False] * 5 + [True] * 3
    assert not connection.ask(get("/x", "Cookie: x", "Accept: other", "Referer: /x"))
    assert connection.ask(get("/y", "Cookie: y", "Accept: */*", "Referer: /y")), "a template outlives other requests"


def test_commit_that_leaves_the_route_alone_voids_nothing(link: Link) -> None:
    connection = Connection(link, recent_fields(link))
    connection.ask(get("/a"))
    link.replica.enrol("another.example.com", "http://another.example")
    link.worker.on_replica_change()
    assert connection.memory.generation != link.worker.routes.generation
    assert connection.ask(get("/a"))
    assert connection.memory.generation == link.worker.routes.generation


def test_changed_route_is_decided_upon_again(link: Link) -> None:
    recent = recent_fields(link)
    connection = Connection(link, recent)
    for number in range(5):
        connection.ask(get("/a", f"Cookie: {number}"))
    assert connection.ask(get("/a", "Cookie: 5"))
    link.replica.enrol(DOMAIN, "http://origin.example/other", application="b")
    link.worker.on_replica_change()
    for cookie in ("4", "6"):  # known fields, and a template
        assert not Connection(link, recent).memory.recall(get("/a", f"Cookie: {cookie}"))
        assert not connection.memory.recall(get("/a", f"Cookie: {cookie}"))
    assert not connection.ask(get("/a", "Cookie: 2"))
    assert b"GET /other/a " in connection.memory.upstream_head


def test_removed_domain_is_not_recalled(link: Link) -> None:
    connection = Connection(link, recent_fields(link))
    connection.ask(get("/a"))
    link.replica.remove(DOMAIN)
    link.worker.on_replica_change()
    assert not connection.memory.recall(get("/a"))


def test_fields_are_not_known_where_tls_was_made_for_another_name(link: Link) -> None:
    recent = recent_fields(link)
    assert not Connection(link, recent, server_name=DOMAIN).ask(get("/a"))
    assert Connection(link, recent, server_name=DOMAIN).ask(get("/b"))
    assert not Connection(link, recent, server_name="shop.example.com").memory.recall(get("/a"))


def test_name_of_the_same_application_is_asked_for_again_each_time(link: Link) -> None:
    """Whether both names are still of one application is in no record of the route's."""
    link.replica.enrol("beside.example.com", "http://origin.example/base", application="b")
    link.worker.on_replica_change()
    connection = Connection(link, recent_fields(link), server_name="beside.example.com")
    assert [connection.ask(get("/a")), connection.ask(get("/b"))] == [False, False]


@pytest.mark.parametrize(
    "raw",
    [
        get("/.well-known/acme-challenge/token"),
        get("/..%2f"),
        get("/a#b"),
        get("/a b"),
        get("/\x7f"),
        get("http://power.example.com/a"),
        get("/a").replace(b"HTTP/1.1", b"HTTP/1.0"),
        get("/a").replace(b"GET", b"POST"),
        get("/a").replace(b"GET", b"get"),
        get("/a").replace(b"\r\nHost", b"\nHost"),
        get("/a") + get("/b"),
        get("/a")[:-2],
        get("/" + "a" * MAX_REMEMBERED_BYTES),
    ],
    ids=repr,
)
def test_request_line_that_needs_more_is_parsed(link: Link, raw: bytes) -> None:
    connection = Connection(link, recent_fields(link))
    connection.ask(get("/a"))
    assert connection.memory.recall(get("/b"))
    assert not connection.memory.recall(raw)


@pytest.mark.parametrize("limits", [HeadLimits(target_bytes=44), HeadLimits(head_bytes=44)])
def test_what_may_be_above_a_limit_is_not_recalled(link: Link, limits: HeadLimits) -> None:
    connection = Connection(link, recent_fields(link, limits))
    connection.ask(get("/a"))
    assert len(get("/a")) == 44
    assert connection.memory.recall(get("/b"))
    assert not connection.memory.recall(get("/bc"))


def test_recent_fields_are_bounded_and_the_oldest_go_first(link: Link) -> None:
    recent = recent_fields(link)
    connection = Connection(link, recent)
    forward: Any = connection.parse(get())
    for number in range(3000):
        connection.memory.remember(get("/a", f"X-{number}: y"), forward)
    assert 900 < len(recent) <= 1024
    assert recent.find(get("/a", "X-2999: y")[len("GET /a HTTP/1.1\r\n") :]) is not None
    assert recent.find(get("/a", "X-0: y")[len("GET /a HTTP/1.1\r\n") :]) is None
