from __future__ import annotations

import h11

from bench import heads

HOST = "shop.customer.localhost"


def parsed(request: bytes) -> h11.Request:
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(request)
    event = connection.next_event()
    assert isinstance(event, h11.Request)
    assert isinstance(connection.next_event(), h11.EndOfMessage)
    return event


def test_no_two_varied_blocks_are_alike() -> None:
    blocks = {request.partition(b"\r\n")[2] for request in heads.varied(HOST, "/1k")}
    assert len(blocks) == heads.VARIANTS


def test_round_robin_asks_each_host_once() -> None:
    hosts = [f"shop-{number}.customer.localhost" for number in range(3)]
    asked = [dict(parsed(request).headers)[b"host"].decode() for request in heads.round_robin(hosts, "/1k")]
    assert asked == hosts


def test_a_closing_request_says_so() -> None:
    (request,) = heads.closing(HOST, "/1k")
    assert dict(parsed(request).headers)[b"connection"] == b"close"


def test_the_recorded_page_is_what_a_browser_sends() -> None:
    recorded = heads.read_page()
    requests = [parsed(request) for request in heads.page(HOST, recorded)]
    assert 35 <= len(requests) <= 50
    assert all(dict(request.headers)[b"host"].decode() == HOST for request in requests)
    assert all(b"user-agent" in dict(request.headers) for request in requests)
    assert {request.target.partition(b"?")[0].decode() for request in requests} == set(recorded.files)
