"""What causes of alerts work on: processes, domains and partners; and what several causes do with them."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from bench.application import make_application
from bench.certificate_world import ZONE, ApiClient, CertificateWorld, RoleProcess
from bench.lab.ports import free_ports
from bench.lab.sink import WebhookSink
from common import monitored_changes
from common.db.monitored_domains import Labels, MonitoredKey
from common.errors import OperatorError
from common.records import Record

ADDRESS = "192.0.2.1"
WATCHED = [f"watched-{number}.example" for number in range(60)]
SECURED = [f"shop-{number}.{ZONE}" for number in range(12)]
DOWN = f"down.customer.{ZONE}"
_PARTNERS = 6
_ISSUED_SECONDS = 120.0
POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class AlertStage:
    """The processes, the webhook sink and the partners that causes work on."""

    world: CertificateWorld
    sink: WebhookSink
    partners: list[ApiClient]
    """Applications whose webhooks the sink takes."""


async def prepare(world: CertificateWorld, sink: WebhookSink, session: aiohttp.ClientSession) -> AlertStage:
    """Enrol domains with certificates, have domains monitored, and create partners with webhooks.

    Raises: `OperatorError`.
    """
    sink_partners = []
    for number in range(_PARTNERS):
        application_id, secret = await make_application(
            world.database,
            world.keyring,
            name=f"Partner {number}",
            cname_target=f"apps-{number}.partners.example",
            webhook_url=f"{sink.url}/{number}",
        )
        sink_partners.append(ApiClient(session, application_id, secret, ""))
    async with world.database.transaction() as connection:
        for domain in WATCHED:
            world.zone.add(domain, "A", ADDRESS)
            key = MonitoredKey(world.partner.application_id, domain)
            await monitored_changes.add(connection, key, (Record("A", "@", ADDRESS, 60),), Labels())
    await world.partner.change("POST", "/power", domain=DOWN, applicationUrl=f"http://127.0.0.1:{free_ports(1)[0]}")
    for domain in SECURED:
        await world.partner.secure(domain)
    async with asyncio.timeout(_ISSUED_SECONDS):
        for domain in SECURED:
            while await world.partner.status(domain) != "active":  # noqa: ASYNC110 - asked over HTTP
                await asyncio.sleep(POLL_SECONDS)
    return AlertStage(world, sink, sink_partners)


@asynccontextmanager
async def another_edge(stage: AlertStage, **variables: str) -> AsyncIterator[RoleProcess]:
    """Run the second edge with these variables within the block, and without them after it."""
    edge = stage.world.edges[1]
    other = edge.with_variables(**variables)
    other.log = stage.world.directory / f"another-edge-{time.monotonic_ns()}.log"
    await edge.stop()
    await other.start()
    try:
        yield other
    finally:
        await other.stop()
        await edge.start()


async def run(*argv: str) -> None:
    """Run a program.

    Raises: `OperatorError` when it fails.
    """
    process = await asyncio.create_subprocess_exec(*argv, stderr=subprocess.PIPE)
    _, error = await process.communicate()
    if process.returncode:
        raise OperatorError(f"{argv[0]} has failed: {error.decode().strip()}")


@asynccontextmanager
async def another_monitor(stage: AlertStage, **variables: str) -> AsyncIterator[None]:
    """Run the monitor with these variables within the block, and without them after it."""
    monitor = stage.world.monitors[0]
    other = monitor.with_variables(**variables)
    await monitor.stop()
    await other.start()
    try:
        yield
    finally:
        await other.kill()
        await monitor.start()


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run the work as a task for the block."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def repeat(work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
    """Repeat the work until cancelled, through connection errors."""
    while True:
        with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError):
            await work()
        await asyncio.sleep(POLL_SECONDS)
