"""What is remembered of requests, of a connection and of all: what it may stand for, and what it may not."""

from __future__ import annotations

from typing import Any

import pytest

from edge.http.forwarded import Client
from edge.http.request import HeadLimits, parse
from edge.proxy.recent_requests import MAX_REMEMBERED_BYTES, RecentRequests
from edge.proxy.request_memory import RequestMemory
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

    def __init__(self, link: Link, recent: RecentRequests, address: str = "192.0.2.1", server_name: str = "") -> None:
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


def recent_requests(link: Link, limits: HeadLimits | None = None) -> RecentRequests:
    return RecentRequests(link.worker.routes, limits or HeadLimits(), None)


def get(target: str = "/a", *lines: str, host: str = DOMAIN) -> bytes:
    return "\r\n".join((f"GET {target} HTTP/1.1", f"Host: {host}", *lines, "", "")).encode()


def test_fields_seen_on_one_connection_are_known_on_every_other(link: Link) -> None:
    recent = recent_requests(link)
    first, second = Connection(link, recent), Connection(link, recent, "192.0.2.2")
    assert not first.ask(get("/a", "Cookie: x"))
    assert second.ask(get("/b", "Cookie: x"))
    assert b"X-Forwarded-For: 192.0.2.2\r\n" in second.memory.upstream_head
    assert not second.ask(get("/b", "Cookie: y"))
    assert first.ask(get("/c", "Cookie: y"))


@pytest.mark.parametrize("target", ["/", "/a", "/b?c=%2e", "/long" * 80])
def test_another_target_with_the_same_fields_goes_on_as_its_whole_head_would(link: Link, target: str) -> None:
    connection = Connection(link, recent_requests(link))
    memory = connection.memory
    for before in range(8):  # parsed, then by the block of fields or by a template
        connection.ask(get("/a", f"Cookie: {before}", "Accept: */*"))
        raw = get(target, f"Cookie: {before}", "Accept: */*")
        for _ in range(2):
            request = memory.last_request()
            assert request is not None
            assert memory.recall_similar(request, target.encode(), len(raw))
            forward = connection.parse(raw)
            assert (memory.head, memory.route, memory.upstream_head) == (
                forward.head,
                forward.route,
                forward.upstream_head,
            )


@pytest.mark.parametrize(
    "target", [b"*", b"", b"a", b"/#a", b"/a b", b"/\xe9", b"/.well-known/x", b"/%2e%2e/x", b"/../x"]
)
def test_target_that_is_not_ordinary_is_not_taken_without_its_head(link: Link, target: bytes) -> None:
    connection = Connection(link, recent_requests(link))
    connection.ask(get("/a"))
    memory = connection.memory
    request, before = memory.last_request(), memory.head
    assert request is not None
    assert not memory.recall_similar(request, target, 100)
    assert memory.head is before


def test_request_that_is_like_an_earlier_one_goes_on_as_its_whole_head_would(link: Link) -> None:
    connection = Connection(link, recent_requests(link))
    memory = connection.memory
    known = []
    for fields in ("Accept: image/png", "Accept: text/css\r\nCookie: a", "Accept: text/css\r\nCookie: b"):
        connection.ask(get("/a", fields))
        known.append((fields, memory.last_request()))
    for fields, request in known:
        for other in ("\r\nCookie: c", ""):
            raw = get("/b", fields + other)
            forward = connection.parse(raw)
            assert request is not None
            assert memory.recall_similar(request, b"/b", len(raw), forward.head.kept)
            assert (memory.head, memory.route, memory.upstream_head) == (
                forward.head,
                forward.route,
                forward.upstream_head,
            )


def test_target_alone_is_not_enough_once_the_earlier_request_does_not_count(link: Link) -> None:
    connection = Connection(link, recent_requests(link))
    memory = connection.memory
    assert memory.last_request() is None
    connection.ask(get("/a"))
    request = memory.last_request()
    assert request is not None
    assert not memory.recall_similar(request, b"/b", MAX_REMEMBERED_BYTES + 1)
    assert memory.recall_similar(request, b"/b", MAX_REMEMBERED_BYTES)
    memory.forget()
    assert memory.last_request() is None
    link.replica.enrol("other.example.com", "http://other.example", application="b")
    link.worker.on_replica_change()
    assert memory.recall_similar(request, b"/b", 100), "another domain's change is of no account"
    link.replica.enrol(DOMAIN, "http://elsewhere.example", application="b")
    link.worker.on_replica_change()
    assert not memory.recall_similar(request, b"/c", 100)


def test_connection_goes_between_blocks_of_fields_it_has_sent(link: Link) -> None:
    connection = Connection(link, recent_requests(link))
    blocks = ["Accept: image/png", "Accept: text/css\r\nReferer: x", "Accept: */*\r\nOrigin: y"]
    assert [connection.ask(get(f"/{number}", blocks[number % 3])) for number in range(9)] == [False] * 3 + [True] * 6


def test_what_varies_is_learnt_from_a_few_requests(link: Link) -> None:
    connection = Connection(link, recent_requests(link))
    asked = [connection.ask(get(f"/{n}", f"Cookie: {n}", "Accept: */*", f"Referer: /{n}")) for n in range(8)]
    assert asked == [False] * 5 + [True] * 3
    assert not connection.ask(get("/x", "Cookie: x", "Accept: other", "Referer: /x"))
    assert connection.ask(get("/y", "Cookie: y", "Accept: */*", "Referer: /y")), "a template outlives other requests"


@pytest.mark.parametrize("differs", ["Accept", "Connection"])
def test_kinds_of_requests_with_fields_of_the_same_names_are_known_beside_each_other(link: Link, differs: str) -> None:
    """Accept may vary, and Connection may not: one template reads both kinds, or each its own."""
    connection = Connection(link, recent_requests(link))
    kinds = [(f"{differs}: keep-alive", f"Cookie: {n}") for n in range(16)]
    kinds += [(f"{differs}: Keep-Alive", f"Cookie: {n}") for n in range(16)]
    for number, kind in enumerate(kinds):
        connection.ask(get(f"/{number}", *kind))
    assert all(connection.ask(get("/x", f"{differs}: {value}", "Cookie: x")) for value in ("keep-alive", "Keep-Alive"))


def test_commit_that_leaves_the_route_alone_voids_nothing(link: Link) -> None:
    connection = Connection(link, recent_requests(link))
    connection.ask(get("/a"))
    link.replica.enrol("another.example.com", "http://another.example")
    link.worker.on_replica_change()
    assert connection.memory.generation != link.worker.routes.generation
    assert connection.ask(get("/a"))
    assert connection.memory.generation == link.worker.routes.generation


def test_changed_route_is_decided_upon_again(link: Link) -> None:
    recent = recent_requests(link)
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
    connection = Connection(link, recent_requests(link))
    connection.ask(get("/a"))
    link.replica.remove(DOMAIN)
    link.worker.on_replica_change()
    assert not connection.memory.recall(get("/a"))


def test_fields_are_not_known_where_tls_was_made_for_another_name(link: Link) -> None:
    recent = recent_requests(link)
    assert not Connection(link, recent, server_name=DOMAIN).ask(get("/a"))
    assert Connection(link, recent, server_name=DOMAIN).ask(get("/b"))
    assert not Connection(link, recent, server_name="shop.example.com").memory.recall(get("/a"))


def test_name_of_the_same_application_is_asked_for_again_each_time(link: Link) -> None:
    """Whether both names are still of one application is in no record of the route's."""
    link.replica.enrol("beside.example.com", "http://origin.example/base", application="b")
    link.worker.on_replica_change()
    connection = Connection(link, recent_requests(link), server_name="beside.example.com")
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
    connection = Connection(link, recent_requests(link))
    connection.ask(get("/a"))
    assert connection.memory.recall(get("/b"))
    assert not connection.memory.recall(raw)


@pytest.mark.parametrize("limits", [HeadLimits(target_bytes=44), HeadLimits(head_bytes=44)])
def test_what_may_be_above_a_limit_is_not_recalled(link: Link, limits: HeadLimits) -> None:
    connection = Connection(link, recent_requests(link, limits))
    connection.ask(get("/a"))
    assert len(get("/a")) == 44
    assert connection.memory.recall(get("/b"))
    assert not connection.memory.recall(get("/bc"))


def test_recent_requests_are_bounded_and_the_oldest_go_first(link: Link) -> None:
    recent = recent_requests(link)
    connection = Connection(link, recent)
    forward: Any = connection.parse(get())
    for number in range(3000):
        connection.memory.remember(get("/a", f"X-{number}: y"), forward)
    assert 900 < len(recent) <= 1024
    assert recent.find(get("/a", "X-2999: y")[len("GET /a HTTP/1.1\r\n") :]) is not None
    assert recent.find(get("/a", "X-0: y")[len("GET /a HTTP/1.1\r\n") :]) is None


def post(body: bytes, *lines: str, target: str = "/a", host: str = DOMAIN, method: str = "POST") -> bytes:
    fields = (f"Content-Length: {len(body)}", *lines)
    return "\r\n".join((f"{method} {target} HTTP/1.1", f"Host: {host}", *fields, "", "")).encode() + body


def upload(connection: Connection, raw: bytes) -> bool:
    """Whether the upload was recalled; either way it is what parsing makes of it."""
    end = raw.index(b"\r\n\r\n") + 4
    forward, memory = connection.parse(raw[:end]), connection.memory
    rest = memory.recall_upload(raw)
    if rest is None:
        memory.remember(raw[:end], forward)
    else:
        assert rest == raw[end:]
    assert (memory.head, memory.route, memory.upstream_head) == (forward.head, forward.route, forward.upstream_head)
    assert not memory.raw, "the bytes of its head are not a request by themselves"
    return rest is not None


def test_uploads_of_other_lengths_are_recalled_on_every_connection(link: Link) -> None:
    recent = recent_requests(link)
    connection = Connection(link, recent)
    asked = [upload(connection, post(b"x" * 3**n, f"Cookie: {n}", target=f"/{n}")) for n in range(8)]
    assert asked == [False] * 5 + [True] * 3
    assert upload(Connection(link, recent, "192.0.2.9"), post(b"y" * 77 + b"GET / HTTP/1.1", "Cookie: z", method="PUT"))


def test_chunked_uploads_are_recalled(link: Link) -> None:
    connection = Connection(link, recent_requests(link))
    lines = (f"POST /{n} HTTP/1.1\r\nHost: {DOMAIN}\r\nTransfer-Encoding: chunked\r\nX: {n}" for n in range(8))
    assert [upload(connection, line.encode() + b"\r\n\r\n1\r\nx\r\n") for line in lines] == [False] * 5 + [True] * 3


@pytest.mark.parametrize(
    "raw",
    [
        post(b"x", "Cookie: 1").replace(b"Content-Length: 1", value)
        for value in (
            b"Content-Length: 0",
            b"Content-Length: 01",
            b"Content-Length: +1",
            b"Content-Length: 1, 1",
            b"Content-Length: 0x1",
            b"Content-Length: 1 1",
            b"Content-Length:",
            b"Content-Length: 1\r\nContent-Length: 1",
            b"Content-Length: " + b"9" * 19,
            b"Content-Length : 1",
            b"Transfer-Encoding: chunked",
        )
    ]
    + [
        post(b"x", "Cookie: 1", "Expect: 100-continue"),
        post(b"x", "Cookie: 1", "Transfer-Encoding: chunked"),
        post(b"x", "Cookie: 1", method="GET"),
        post(b"x", "Cookie: 1", method="PATCHY"),
        post(b"x", "Cookie: 1", target="/.well-known/acme-challenge/x"),
        post(b"x", "Cookie: 1", target="/..%2f"),
        post(b"x", "Cookie: 1", host="other.example"),
        post(b"x", "Cookie: 1\n"),
        post(b"x" * 101, "Cookie: 1"),
    ],
    ids=repr,
)
def test_upload_that_needs_more_is_parsed(link: Link, raw: bytes) -> None:
    recent = RecentRequests(link.worker.routes, HeadLimits(), 100)
    connection = Connection(link, recent)
    for number in range(6):
        upload(connection, post(b"x" * (number + 1), f"Cookie: {number}"))
    assert upload(connection, post(b"x" * 100, "Cookie: x"))
    assert connection.memory.recall_upload(raw) is None
    assert Connection(link, recent).memory.recall_upload(raw) is None
    assert not connection.memory.recall(raw)


def test_host_is_one_of_the_values_that_vary(link: Link) -> None:
    hosts = [f"shop-{number}.example.com" for number in range(8)]
    for host in hosts:
        link.replica.enrol(host, f"http://{host}.origin.example/base", application="b")
    link.worker.on_replica_change()
    recent = recent_requests(link)
    connection = Connection(link, recent)
    for number, host in enumerate(hosts):
        connection.ask(get("/a", f"Cookie: {number}", host=host))
    asked = [connection.ask(get("/b", f"Cookie: {number}x", host=host)) for number, host in enumerate(hosts)]
    assert asked == [False] * 4 + [True] * 4, "a host is known when its head was parsed after the template was learnt"
    assert all(connection.ask(get("/c", f"Cookie: {number}y", host=host)) for number, host in enumerate(hosts))
    assert not connection.memory.recall(get("/c", "Cookie: z", host="unknown.example.com"))
    assert not Connection(link, recent, server_name=DOMAIN).memory.recall(get("/d", "Cookie: z", host=hosts[0]))
    link.replica.remove(hosts[0])
    link.worker.on_replica_change()
    assert not connection.memory.recall(get("/d", "Cookie: z", host=hosts[0]))
    assert connection.ask(get("/d", "Cookie: z", host=hosts[1]))


def test_no_beginning_of_a_request_is_taken_for_a_request(link: Link) -> None:
    """Not even a request line alone, on a connection whose last request a template read: its fields are to come, and
    those that the template was learnt from are another client's."""
    recent = recent_requests(link)
    victim = Connection(link, recent)
    for number in range(6):
        victim.ask(get(f"/{number}", f"Cookie: victim-{number}"))
    client = Connection(link, recent, "192.0.2.2")
    ordinary, upload = get("/a", "Cookie: own"), post(b"hello", "Cookie: own")
    for raw in (ordinary, upload.removesuffix(b"hello")):
        for last in range(len(raw)):
            assert client.ask(ordinary)
            assert not client.memory.recall(raw[:last]), raw[:last]
            assert client.memory.recall_upload(raw[:last]) is None
