"""Which upstream connections get requests that must not be sent twice, with time under the test's control."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from edge.upstream.pool import KEPT_OLD
from tests.unit.edge.link import Link

HOST = b"Host: shop.example.com\r\n"
GET = b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"
POST = b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 0\r\n\r\n"


class AnswersEach:
    """Answers every request, which arrives whole."""

    def __init__(self, fields: bytes = b"") -> None:
        self._fields = fields

    def receive(self, data: bytes) -> Sequence[bytes | type[BaseException] | None]:
        return [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n%b\r\nok" % self._fields]


class StatesItsTime(AnswersEach):
    def __init__(self) -> None:
        super().__init__(b"Keep-Alive: timeout=5, max=1000\r\n")


class ClosesOnReuse(AnswersEach):
    """Closes when the second request arrives, unread: it was closing already."""

    def __init__(self) -> None:
        super().__init__()
        self._is_used = False

    def receive(self, data: bytes) -> Sequence[bytes | type[BaseException] | None]:
        if self._is_used:
            return [None]
        self._is_used = True
        return super().receive(data)


@pytest.fixture
def link(tmp_path: Path) -> Iterator[Link]:
    link = Link(tmp_path)
    yield link
    link.end()


def answered(link: Link, request: bytes) -> bool:
    before = len(link.client.sent)
    return link.converse([request])[before:].startswith(b"HTTP/1.1 200 ")


def test_of_an_unknown_origin_only_a_connection_just_given_back_serves(link: Link) -> None:
    link.begin(AnswersEach)
    for seconds in (0.0, 0.05, 0.0):
        link.let_time_pass(seconds)
        assert answered(link, POST)
    assert len(link.upstreams) == 1
    link.let_time_pass(0.2)
    assert answered(link, POST)
    assert len(link.upstreams) == 2


def test_a_get_goes_on_any_connection(link: Link) -> None:
    link.begin(AnswersEach)
    for _ in range(3):
        assert answered(link, GET)
        link.let_time_pass(3)
    assert len(link.upstreams) == 1


def test_the_time_that_an_origin_states_counts(link: Link) -> None:
    link.begin(StatesItsTime)
    for _ in range(3):
        assert answered(link, POST)
        link.let_time_pass(2.4)
    assert len(link.upstreams) == 1
    link.let_time_pass(0.2)
    assert answered(link, POST)
    assert len(link.upstreams) == 2


def test_once_an_idle_connection_has_survived_others_serve_longer(link: Link) -> None:
    link.begin(AnswersEach)
    assert answered(link, POST)
    link.let_time_pass(4.5)  # it is closed by the edge
    assert link.upstreams[0].pipe.is_closing()
    assert answered(link, POST)
    link.let_time_pass(2.0)
    assert answered(link, POST)
    assert len(link.upstreams) == 2


def test_an_origins_close_of_an_idle_connection_is_learned(link: Link) -> None:
    link.begin(StatesItsTime)
    assert answered(link, POST)
    link.let_time_pass(1.0)
    link.upstreams[0].pipe.inbox.append(None)
    link.converse([])
    assert answered(link, POST)
    link.let_time_pass(0.75)
    assert answered(link, POST)  # although it states five seconds again
    assert len(link.upstreams) == 3
    link.let_time_pass(0.25)
    assert answered(link, POST)
    assert len(link.upstreams) == 3


def test_a_close_that_met_a_get_is_learned(link: Link) -> None:
    link.begin(ClosesOnReuse)
    assert answered(link, GET)
    link.let_time_pass(0.05)
    assert answered(link, GET)  # sent a second time, on another connection
    assert len(link.upstreams) == 2
    assert answered(link, POST)
    assert len(link.upstreams) == 3


def test_posts_do_not_add_connections_without_end(link: Link) -> None:
    link.begin(AnswersEach)
    link.worker.upstream_idle_seconds = 1000.0
    for _ in range(50):
        assert answered(link, POST)
        link.let_time_pass(0.25)
    assert link.worker.upstream_count <= KEPT_OLD + 2
    assert len(link.upstreams) <= KEPT_OLD + 2  # by then the oldest have shown that the origin keeps them


def test_a_post_gets_a_connection_where_all_that_may_be_open_are_idle(tmp_path: Path) -> None:
    link = Link(tmp_path, FRONTAGE_EDGE_ORIGIN_CONNECTIONS="1")
    link.begin(AnswersEach)
    for _ in range(3):
        assert answered(link, POST)
        link.let_time_pass(0.5)
    assert len(link.upstreams) == 3
    assert link.worker.upstream_count == 1
    link.end()
