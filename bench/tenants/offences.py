"""The offences: what each does, and what the neighbour's requests wait for beside it."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncIterator, Iterator
from random import Random

from rich.progress import Progress

from bench.tenants import rows
from bench.tenants.beside import Asker, offending
from bench.tenants.client import Tenant, TenantClient, TimedResponse
from bench.tenants.waits import Waits
from bench.tenants.world import DEAD_ZONE, READY_ZONE, TwoTenants
from common.host_ports import HostPort

_QUESTIONS = 200
_QUESTION_PAUSE_SECONDS = 0.05
_QUESTION_GOAL_SECONDS = 0.3
_CLIENTS_OF_DEAD_NAMES = 400

_LISTS = 500
_LIST_PAUSE_SECONDS = 0.02
_LIST_GOAL_SECONDS = 0.1
_CLIENTS_OF_LISTS = 12
_NEIGHBOURS_DOMAINS = 1000
_PAGE_ITEMS = 10
_NO_LIMITS = {"API_REQUESTS_PER_SECOND": "1000000", "API_REQUESTS_PER_SECOND_PER_ADDRESS": "1000000"}

_VALID = 200
_HALF_A_BODY = b"POST /token HTTP/1.1\r\nHost: api\r\nContent-Length: 100\r\n\r\n{"
_READS_NOTHING = 20 * b"GET /openapi.json HTTP/1.1\r\nHost: api\r\n\r\n"
_CONNECTIONS = (
    (520, "unfinished bodies", _HALF_A_BODY),
    (1000, "unfinished bodies", _HALF_A_BODY),
    (500, "connections that read none of 20 /openapi.json", _READS_NOTHING),
)


# Questions beside dead DNS --------------------------------------------------------------------------------


async def ask_beside_dead_dns(world: TwoTenants, progress: Progress) -> list[Waits]:
    """Time questions of eligibility, alone and beside another tenant's questions on dead DNS."""
    ready = Asker(
        world.neighbour,
        (f"/power?domain=shop-{number}.{READY_ZONE}" for number in itertools.count()),
        _QUESTION_PAUSE_SECONDS,
    )
    numbers = itertools.count()
    async with world.api() as api:
        times = progress.track(range(_QUESTIONS // 2), description="eligibility, alone")
        alone = await ready.ask(api, times)
        async with offending(
            api, world.offender, _CLIENTS_OF_DEAD_NAMES, lambda: f"/power?domain=d{next(numbers)}.{DEAD_ZONE}"
        ) as answers:
            times = progress.track(range(_QUESTIONS), description="eligibility beside dead DNS")
            beside = await ready.ask(api, times)
    return [
        Waits("eligibility, alone", alone),
        Waits(
            f"eligibility beside {_CLIENTS_OF_DEAD_NAMES} questions on dead DNS",
            beside,
            goal_seconds=_QUESTION_GOAL_SECONDS,
        ),
        Waits("  the questions on dead DNS", answers, expected=(400, 429)),
    ]


# Lists ----------------------------------------------------------------------------------------------------


async def list_beside_lists(world: TwoTenants, progress: Progress, domains: int) -> list[Waits]:
    """Time lists of domains, alone and beside another tenant's lists of very many."""
    offender, neighbour = world.offender, world.neighbour
    numbers = progress.track(rows.chunks(domains), description=f"writing {domains:,} domains")
    few = min(_NEIGHBOURS_DOMAINS, domains)
    await rows.write(world.dsn, offender.application_id, neighbour.application_id, domains, few, iter(numbers))
    own, others = _pages(domains, Random(1)), _pages(few, Random(2))
    async with world.api(**_NO_LIMITS) as api:
        alone = []
        for tenant, paths, whose in ((offender, own, "the large"), (neighbour, others, "the other")):
            times = progress.track(range(_LISTS // 2), description=f"lists of {whose} application, alone")
            alone.append(await Asker(tenant, paths, 0.0).ask(api, times))
        async with offending(api, offender, _CLIENTS_OF_LISTS, lambda: next(own)) as answers:
            answers.clear()  # those of the start
            times = progress.track(range(_LISTS), description="lists beside lists")
            beside = await Asker(neighbour, others, _LIST_PAUSE_SECONDS).ask(api, times)
    return [
        Waits(f"lists of {domains:,} domains, one client", alone[0], goal_seconds=_LIST_GOAL_SECONDS),
        Waits(f"lists of {domains:,} domains, {_CLIENTS_OF_LISTS} clients", answers, goal_seconds=_LIST_GOAL_SECONDS),
        Waits(f"another's lists of {few:,} domains, alone", alone[1]),
        Waits(
            f"another's lists of {few:,} domains beside these {_CLIENTS_OF_LISTS} clients",
            beside,
            goal_seconds=_LIST_GOAL_SECONDS,
        ),
    ]


def _pages(domains: int, random: Random) -> Iterator[str]:
    """Yield pages by status from anywhere, and now and then the first one."""
    counts = {"active": domains - domains // 3, "inactive": domains // 3}
    while True:
        status = random.choice(list(counts))
        page = 1 if random.random() < 0.1 else random.randrange(1, counts[status] // _PAGE_ITEMS + 2)
        yield f"/power?status={status}&page={page}"


# Connections that keep the API waiting --------------------------------------------------------------------


async def ask_beside_slow_connections(world: TwoTenants, progress: Progress) -> list[Waits]:
    """Time requests beside connections that keep the API waiting."""
    return [await _beside_connections(world, progress, *each) for each in _CONNECTIONS]


async def _beside_connections(world: TwoTenants, progress: Progress, count: int, words: str, sent: bytes) -> Waits:
    """Time requests from the offender's own address and from another, in turn."""
    name = f"/token and /healthz beside {count:,} {words}"
    requests = (_token_request(world.neighbour), b"GET /healthz HTTP/1.1\r\nHost: api\r\n\r\n")
    kinds = itertools.cycle(itertools.product((world.offender.address, world.neighbour.address), requests))
    async with world.api() as api, _slow_connections(api, world.offender.address, count, sent):
        answers: list[TimedResponse] = []
        for _, (address, request) in zip(progress.track(range(_VALID), description=name), kinds, strict=False):
            async with TenantClient.connect(api, address) as client:
                answers.append(await client.ask(request))
    return Waits(name, answers)


@contextlib.asynccontextmanager
async def _slow_connections(api: HostPort, address: str, count: int, sent: bytes) -> AsyncIterator[None]:
    async with contextlib.AsyncExitStack() as connections:
        for _ in range(count):
            client = await connections.enter_async_context(TenantClient.connect(api, address))
            await client.send(sent)
        yield


def _token_request(tenant: Tenant) -> bytes:
    body = f'{{"applicationId": "{tenant.application_id}", "secret": "{tenant.client_secret}"}}'.encode()
    head = f"POST /token HTTP/1.1\r\nHost: api\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body
