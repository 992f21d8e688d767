"""RDAP: the lab's server, asked as a registry's would be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network

import pytest
from aiohttp import web

from bench.lab.rdap import RdapServer
from common.addresses import AddressPolicy
from common.clock import SystemClock
from common.dns import Resolver
from common.domain_check.rdap import RdapClient
from common.domain_check.registration import Bootstrap, RdapFailure, RegistryEntry, parse_bootstrap
from common.host_ports import HostPort

LOOPBACK = AddressPolicy((ip_network("127.0.0.0/8"),), ())
DAY = timedelta(days=1)


class Clock(SystemClock):
    """The system's, and as much later as a test wants."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return super().now() + self.ahead

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead.total_seconds()


@pytest.fixture
async def server() -> AsyncIterator[RdapServer]:
    async with RdapServer.serve("test") as server:
        yield server


@pytest.fixture
def clock() -> Clock:
    return Clock()


def client_of(server: RdapServer, clock: Clock, policy: AddressPolicy = LOOPBACK) -> RdapClient:
    async def bootstrap() -> Bootstrap:
        return parse_bootstrap(server.bootstrap, fewest=1)

    return RdapClient(Resolver([HostPort("127.0.0.1", 9)], LOOPBACK), policy, clock, bootstrap, slot_seconds=0.0)


@pytest.fixture
async def client(server: RdapServer, clock: Clock) -> AsyncIterator[RdapClient]:
    client = client_of(server, clock)
    yield client
    await client.close()


def registered(found: RegistryEntry | RdapFailure | None) -> RegistryEntry:
    assert isinstance(found, RegistryEntry)
    assert found.is_registered
    return found


async def test_registered_expired_and_unknown_domains_are_told_apart(server: RdapServer, client: RdapClient) -> None:
    server.register("shop.test")
    server.register("old.test", expires_in_days=-1)
    server.register("held.test", expires_in_days=30, statuses=("client hold", "redemption period"))
    server.register("silent.test", expires_in_days=None)
    now = datetime.now(UTC)

    assert not registered(await client.find("shop.test", "a")).has_expired(now)
    assert registered(await client.find("old.test", "a")).has_expired(now)
    assert registered(await client.find("held.test", "a")).has_expired(now)
    assert not registered(await client.find("silent.test", "a")).has_expired(now)
    assert await client.find("absent.test", "a") == RegistryEntry(is_registered=False)
    assert await client.find("shop.example", "a") is None  # no server for this top-level domain


async def test_an_answer_counts_for_a_day_and_is_then_asked_for_again(
    server: RdapServer, client: RdapClient, clock: Clock
) -> None:
    server.register("shop.test")
    for _ in range(3):
        registered(await client.find("shop.test", "a"))
    assert server.asked == ["shop.test"]

    clock.ahead = 1.1 * DAY
    registered(await client.find("shop.test", "a"))
    assert server.asked == ["shop.test"] * 2


async def test_a_question_asked_many_times_at_once_is_one_request(server: RdapServer, client: RdapClient) -> None:
    server.register("shop.test")

    found = await asyncio.gather(*(client.find("shop.test", f"tenant-{number % 7}") for number in range(50)))

    assert all(isinstance(each, RegistryEntry) for each in found)
    assert server.asked == ["shop.test"]


async def test_an_old_answer_counts_on_while_the_server_fails_until_the_expiration_it_states(
    server: RdapServer, client: RdapClient, clock: Clock
) -> None:
    async def fail(_: web.Request) -> web.Response:
        return web.Response(status=500)

    server.register("shop.test", expires_in_days=10)
    registered(await client.find("shop.test", "a"))
    server.answer_with(fail)

    clock.ahead = 5 * DAY
    assert not registered(await client.find("shop.test", "a")).has_expired(clock.now())
    clock.ahead = 11 * DAY
    assert await client.find("shop.test", "a") is RdapFailure.UNAVAILABLE


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, b""),
        (200, b""),
        (200, b"[]"),
        (200, b"<html>"),
        (200, b'{"objectClassName": "domain", "ldhName": "other.test"}'),
        (200, b'{"objectClassName": "nameserver", "ldhName": "shop.test"}'),
        (200, b" " * 600_000),
        (302, b""),
    ],
)
async def test_what_is_no_answer_is_a_failure_and_never_a_no(
    server: RdapServer, client: RdapClient, status: int, body: bytes
) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status, body=body, headers={"Location": str(request.url)} if status == 302 else {})

    server.answer_with(answer)

    assert await client.find("shop.test", "a") is RdapFailure.UNAVAILABLE


async def test_a_redirection_is_followed(server: RdapServer, client: RdapClient) -> None:
    server.register("shop.test")

    async def redirect(_: web.Request) -> web.Response:
        server.answer_with(None)
        return web.Response(status=307, headers={"Location": f"{server.url}domain/shop.test"})

    server.answer_with(redirect)

    registered(await client.find("shop.test", "a"))


async def test_a_server_that_asks_for_a_pause_is_left_alone_for_that_long(
    server: RdapServer, client: RdapClient, clock: Clock
) -> None:
    async def pause(_: web.Request) -> web.Response:
        return web.Response(status=429, headers={"Retry-After": "120"})

    server.answer_with(pause)
    assert await client.find("shop.test", "a") is RdapFailure.BUSY
    server.answer_with(None)
    server.register("other.test")
    assert await client.find("other.test", "a") is RdapFailure.BUSY
    assert server.asked == ["shop.test"]

    clock.ahead = timedelta(seconds=121)
    registered(await client.find("other.test", "a"))


async def test_a_tenant_with_many_questions_is_refused_some_and_does_not_keep_others_waiting(
    server: RdapServer, client: RdapClient
) -> None:
    arrived, release = asyncio.Event(), asyncio.Event()

    async def hold(request: web.Request) -> web.Response:
        arrived.set()
        await release.wait()
        return web.Response(status=404)

    server.answer_with(hold)
    many = [asyncio.create_task(client.find(f"n{number}.test", "greedy")) for number in range(100)]
    await arrived.wait()
    other = asyncio.create_task(client.find("shop.test", "modest"))
    refused = next(iter(asyncio.as_completed(many)))
    assert await refused is RdapFailure.BUSY
    release.set()

    assert await other == RegistryEntry(is_registered=False)
    assert server.asked.index("shop.test") <= 8  # before the backlog of the other tenant
    await asyncio.gather(*many)


async def test_a_private_address_is_not_asked(server: RdapServer, clock: Clock) -> None:
    client = client_of(server, clock, AddressPolicy((), ()))
    server.register("shop.test")

    assert await client.find("shop.test", "a") is RdapFailure.UNAVAILABLE
    assert server.asked == []
    await client.close()
