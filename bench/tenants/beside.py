"""A tenant that asks at a steady pace, alone and beside an offender."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass

from bench.tenants.client import Tenant, TenantClient, TimedResponse
from common.host_ports import HostPort

_SETTLE_SECONDS = 1.0  # until all of the offender's clients have asked


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks for `paths` in turn, one question at a time, with a pause after each answer."""

    tenant: Tenant
    paths: Iterator[str]
    pause_seconds: float

    async def ask(self, api: HostPort, times: Iterable[int]) -> list[TimedResponse]:
        """Send one request for each of `times`, and return the answers."""
        async with TenantClient.connect(api, self.tenant.address) as client:
            answers = []
            for _ in times:
                answers.append(await client.ask(self.tenant.head(next(self.paths))))
                await asyncio.sleep(self.pause_seconds)
            return answers


@contextlib.asynccontextmanager
async def offending(
    api: HostPort, tenant: Tenant, clients: int, path: Callable[[], str]
) -> AsyncIterator[list[TimedResponse]]:
    """Have so many clients of a tenant ask for the block, and yield the answers that have come so far.

    Each client sends one request after the other, or after the pause that it is asked for.
    """
    answers: list[TimedResponse] = []

    async def offend() -> None:
        async with TenantClient.connect(api, tenant.address) as client:
            while True:
                answer = await client.ask(tenant.head(path()))
                answers.append(answer)
                await asyncio.sleep(answer.retry_after_seconds)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(offend(), name=f"bench: offender {number}") for number in range(clients)]
        await asyncio.sleep(_SETTLE_SECONDS)
        try:
            yield answers
        finally:
            for task in tasks:
                task.cancel()
