"""Origins that have several addresses, or move to another: a real name server, real sockets, on both loops."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from unittest.mock import patch

import pytest

from bench.lab.server import NameServer
from bench.lab.zone import Behaviour, Zone
from edge.upstream import following
from tests.component.peers import Edge, Wire, answer_each, edge, origin
from tests.component.proxied import GET, POST
from tests.component.test_origin_tls import server_context
from tests.waiting import until, until_equal

NAME = "origin.example"
FIRST, SECOND, THIRD = "127.0.0.2", "127.0.0.3", "127.0.0.4"


@contextlib.asynccontextmanager
async def named(tmp_path: Path, *addresses: str, ttl_seconds: int = 60) -> AsyncIterator[tuple[Edge, Zone]]:
    """An edge that asks a name server which has these addresses for `NAME`."""
    zone = Zone(is_authoritative=False)
    zone.replace(NAME, "A", *addresses, ttl_seconds=ttl_seconds)
    async with (
        NameServer.serve(zone) as server,
        edge(tmp_path, FRONTAGE_DNS_SERVERS=server.address) as proxy,
    ):
        yield proxy, zone


def enrol(proxy: Edge, port: int, scheme: str = "http") -> None:
    proxy.replica.enrol("shop.example.com", f"{scheme}://{NAME}:{port}")
    proxy.replica.records["application", "app"]["origin_verify"] = False
    proxy.change()


async def answer_address(wire: Wire) -> None:
    """Answer each request with the address that it came to."""
    address = wire.writer.get_extra_info("sockname")[0].encode()
    await answer_each(wire, b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(address), address))


async def answered_by(client: Wire, request: bytes = GET) -> str:
    await client.send(request)
    return (await client.response())[1].decode()


async def statuses(proxy: Edge, request: bytes, count: int) -> Counter[int]:
    """Ask on a connection of its own each time; the edge's connections to the origin are closed in between."""
    seen: Counter[int] = Counter()
    for _ in range(count):
        client = await proxy.connect()
        await client.send(request)
        seen[int((await client.response())[0].split()[1])] += 1
        for connection in list(proxy.worker._dispatcher._connections):
            connection.transport.abort()
        await until(lambda: not proxy.worker.upstream_count)
    return seen


async def close(wire: Wire) -> None:
    """Read a request, and close before any byte of a response."""
    await wire.head()


@pytest.mark.parametrize(
    ("behaviour", "outcome"),
    [(None, "answered"), (Behaviour.NXDOMAIN, "absent"), (Behaviour.SERVFAIL, "failed"), (Behaviour.REFUSED, "failed")],
)
async def test_look_ups_are_counted_by_what_came_of_them(
    tmp_path: Path, behaviour: Behaviour | None, outcome: str
) -> None:
    async with origin(answer_each, host=FIRST) as there, named(tmp_path, FIRST) as (proxy, zone):
        if behaviour is not None:
            zone.misbehave(NAME, behaviour)
        enrol(proxy, there.port)
        client = await proxy.connect()
        await client.send(GET)
        await client.response()
        families = {family.name: family for family in proxy.worker.measurements()}
    counts = families["frontage_edge_origin_lookups"].samples
    assert {name for (name,), (count,) in counts.items() if count} == {outcome}
    assert sum(families["frontage_edge_origin_lookup_seconds"].samples[()][:-1]) == sum(map(sum, counts.values()))


# Moves -----------------------------------------------------------------------------------------------------


@pytest.fixture
def at_every_tick() -> AsyncIterator[None]:  # type: ignore[misc]
    """Names are looked up as often as their TTL allows."""
    with patch.object(following, "_MIN_PAUSE_SECONDS", 0.0):
        yield


@pytest.mark.usefixtures("at_every_tick")
async def test_an_origin_that_moves_is_followed_under_traffic(tmp_path: Path) -> None:
    async with (
        named(tmp_path, FIRST, ttl_seconds=1) as (proxy, zone),
        origin(answer_address, host=FIRST) as there,
        origin(answer_address, host=SECOND, port=there.port),
    ):
        enrol(proxy, there.port)
        client = await proxy.connect()
        assert await answered_by(client) == FIRST
        zone.replace(NAME, "A", SECOND, ttl_seconds=1)
        await until_equal(lambda: answered_by(client), SECOND)
        assert await answered_by(client) == SECOND
        assert proxy.worker._dispatcher._follower.retired_count == 1


@pytest.mark.usefixtures("at_every_tick")
async def test_an_exchange_under_way_ends_where_it_began(tmp_path: Path) -> None:
    is_moved = asyncio.Event()

    async def answer_late(wire: Wire) -> None:
        await wire.head()
        await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel")
        await is_moved.wait()
        await wire.send(b"lo")
        await answer_address(wire)

    async with (
        named(tmp_path, FIRST, ttl_seconds=1) as (proxy, zone),
        origin(answer_late, host=FIRST) as there,
        origin(answer_address, host=SECOND, port=there.port),
    ):
        enrol(proxy, there.port)
        client = await proxy.connect()
        await client.send(GET)
        await client.head()
        assert await client.exactly(3) == b"hel"
        zone.replace(NAME, "A", SECOND, ttl_seconds=1)
        await until(lambda: proxy.worker._dispatcher._follower.retired_count == 1)
        is_moved.set()
        assert await client.exactly(2) == b"lo"
        assert await answered_by(client) == SECOND


@pytest.mark.usefixtures("at_every_tick")
@pytest.mark.parametrize("behaviour", [Behaviour.SERVFAIL, Behaviour.NXDOMAIN])
async def test_connections_outlive_failing_look_ups_for_a_while(tmp_path: Path, behaviour: Behaviour) -> None:
    async with (
        named(tmp_path, FIRST, ttl_seconds=1) as (proxy, zone),
        origin(answer_address, host=FIRST) as there,
    ):
        enrol(proxy, there.port)
        client = await proxy.connect()
        assert await answered_by(client) == FIRST
        zone.misbehave(NAME, behaviour)
        asked = len(zone.questions)

        async def is_asked_often() -> bool:
            assert await answered_by(client) == FIRST
            return len(zone.questions) >= asked + 4

        await until(is_asked_often)
        assert len(there.connections) == 1
        with patch.object(following, "_STALE_SECONDS", 0.0):
            await until(lambda: proxy.worker._dispatcher._follower.retired_count == 1)


@pytest.mark.usefixtures("at_every_tick")
async def test_an_address_outside_the_policy_is_not_dialled_when_it_appears_later(tmp_path: Path) -> None:
    async with (
        named(tmp_path, FIRST, ttl_seconds=1) as (proxy, zone),
        origin(answer_address, host=FIRST) as there,
    ):
        enrol(proxy, there.port)
        client = await proxy.connect()
        assert await answered_by(client) == FIRST
        zone.replace(NAME, "A", "10.0.0.1", ttl_seconds=1)

        async def is_left() -> bool:
            return await answered_by(client) != FIRST

        await until(is_left)
        (failing,) = proxy.worker.failing_origins()
        assert failing.fault == "forbidden"


# Several ---------------------------------------------------------------------------------------------------


async def test_requests_at_once_spread_over_the_addresses(tmp_path: Path) -> None:
    all_are_there, waiting = asyncio.Event(), 0

    async def answer_together(wire: Wire) -> None:
        nonlocal waiting
        await wire.head()
        waiting += 1
        if waiting == 40:
            all_are_there.set()
        await all_are_there.wait()
        await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    async with (
        named(tmp_path, FIRST, SECOND) as (proxy, _),
        origin(answer_together, host=FIRST) as first,
        origin(answer_together, host=SECOND, port=first.port) as second,
    ):
        enrol(proxy, first.port)
        clients = [await proxy.connect() for _ in range(40)]
        for client in clients:
            await client.send(GET)
        for client in clients:
            await client.response()
        assert len(first.connections) >= 8
        assert len(second.connections) >= 8


async def test_a_get_is_answered_by_another_address_where_one_closes_before_any_byte(tmp_path: Path) -> None:
    async with (
        named(tmp_path, FIRST, SECOND) as (proxy, _),
        origin(close, host=FIRST) as there,
        origin(answer_address, host=SECOND, port=there.port),
    ):
        enrol(proxy, there.port)
        assert await statuses(proxy, GET, 20) == {200: 20}
        assert len(there.connections) == 1  # it is remembered


async def test_a_post_is_not_sent_to_a_second_address(tmp_path: Path) -> None:
    async def answer_post(wire: Wire) -> None:
        await wire.head()
        await wire.exactly(5)
        await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    async with (
        named(tmp_path, FIRST, SECOND) as (proxy, _),
        origin(close, host=FIRST) as there,
        origin(answer_post, host=SECOND, port=there.port),
    ):
        enrol(proxy, there.port)
        seen = await statuses(proxy, POST, 20)
        assert seen in ({502: 1, 200: 19}, {200: 20})
        assert seen[502] == len(there.connections)


async def test_a_get_is_sent_twice_at_most(tmp_path: Path) -> None:
    async with (
        named(tmp_path, FIRST, SECOND, THIRD) as (proxy, _),
        origin(close, host=FIRST) as first,
        origin(close, host=SECOND, port=first.port) as second,
        origin(close, host=THIRD, port=first.port) as third,
    ):
        enrol(proxy, first.port)
        assert await statuses(proxy, GET, 1) == {502: 1}
        assert sum(len(each.connections) for each in (first, second, third)) == 2


@pytest.mark.parametrize("request_", [GET, POST])
async def test_another_address_is_tried_where_tls_fails(tmp_path: Path, request_: bytes) -> None:
    async def answer_whole(wire: Wire) -> None:
        head = await wire.head()
        await wire.exactly(5 if head.startswith(b"POST") else 0)
        await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    async def hang_up(wire: Wire) -> None:
        await wire.exactly(1)

    async with (
        named(tmp_path, FIRST, SECOND) as (proxy, _),
        origin(hang_up, host=FIRST) as there,
        origin(answer_whole, server_context(tmp_path, NAME), host=SECOND, port=there.port),
    ):
        enrol(proxy, there.port, "https")
        assert await statuses(proxy, request_, 20) == {200: 20}
        assert len(there.connections) == 1


async def test_a_handshake_that_hangs_leaves_time_for_another_address(tmp_path: Path) -> None:
    async def stay_silent(wire: Wire) -> None:
        await wire.rest()

    async with (
        named(tmp_path, FIRST, SECOND) as (proxy, _),
        origin(stay_silent, host=FIRST) as there,
        origin(answer_address, server_context(tmp_path, NAME), host=SECOND, port=there.port),
    ):
        enrol(proxy, there.port, "https")
        assert await statuses(proxy, GET, 10) == {200: 10}


async def test_an_address_that_refuses_is_passed_over(tmp_path: Path) -> None:
    async with named(tmp_path, FIRST, SECOND) as (proxy, _), origin(answer_address, host=SECOND) as there:
        enrol(proxy, there.port)
        assert await statuses(proxy, GET, 10) == {200: 10}
        assert proxy.worker._dispatcher._connector.address_failure_count <= 1
