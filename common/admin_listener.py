"""The admin listener of the API and of the monitor: liveness, readiness and metrics, on an address of its own.

It has no authentication, so it listens on loopback by default, and its connections are not counted with those of
clients: a probe is answered while clients hold every connection of the public listener.

    GET /healthz    200 while the process runs
    GET /readyz     200 if the role can do its work, 503 with the reason otherwise
    GET /metrics    Prometheus' text format
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web

from common.db.pool import Database
from common.db.schema import find_newer_schema
from common.errors import DatabaseUnavailable, OperatorError
from common.exposition import CONTENT_TYPE, render
from common.host_ports import HostPort
from common.listen_errors import cannot_listen
from common.machine_metrics import LoopLag
from common.metrics import Family

_SHUTDOWN_SECONDS = 1.0
_READINESS_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a role can do its work. `details` are JSON values, shown beside ``message``."""

    is_ready: bool
    details: Mapping[str, Any] = field(default_factory=dict)


CheckReadiness = Callable[[], Awaitable[Readiness]]
Measure = Callable[[], Awaitable[Iterable[Family]]]


@asynccontextmanager
async def serving_admin(
    listen: HostPort | None, variable: str, check: CheckReadiness, measure: Measure
) -> AsyncIterator[HostPort | None]:
    """Serve until the block is left, nothing if `listen` is None. `variable` is the setting that holds `listen`.

    Yields the address it listens on.

    Raises: `OperatorError` if the address cannot be listened on.
    """
    if listen is None:
        yield None
        return
    lag = LoopLag()

    async def measure_all() -> list[Family]:
        return [*await measure(), *lag.families()]

    runner = web.AppRunner(build_admin_app(check, measure_all), access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS)
    await runner.setup()
    sampling = asyncio.create_task(lag.run(), name="loop lag")
    try:
        try:
            await web.TCPSite(runner, *listen).start()
        except OSError as error:
            raise cannot_listen(listen, variable, error) from error
        yield HostPort(*runner.addresses[0][:2])
    finally:
        sampling.cancel()
        with suppress(asyncio.CancelledError):
            await sampling
        await runner.cleanup()


def build_admin_app(check: CheckReadiness, measure: Measure) -> web.Application:
    """Return the application that answers ``/healthz``, ``/readyz`` and ``/metrics``."""

    async def healthz(_: web.Request) -> web.Response:
        return _json(200, {"message": "alive"})

    async def readyz(_: web.Request) -> web.Response:
        try:
            async with asyncio.timeout(_READINESS_SECONDS):
                readiness = await check()
        except TimeoutError:
            readiness = Readiness(False, {"reason": "the checks did not end in time"})
        message = "ready" if readiness.is_ready else "not ready"
        return _json(200 if readiness.is_ready else 503, {"message": message, **readiness.details})

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=render(await measure(), with_process=True), headers={"Content-Type": CONTENT_TYPE})

    app = web.Application()
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", metrics)
    return app


async def check_database(database: Database) -> Readiness:
    """Report ready if Postgres answers and has this program's schema, or a newer one.

    A newer one passes because during an upgrade all processes of the version before would otherwise be taken out of
    service at once.
    """
    try:
        async with database.connection() as connection:
            newer = await find_newer_schema(connection)
    except (DatabaseUnavailable, OperatorError) as error:
        return Readiness(False, {"reason": str(error)})
    return Readiness(True, {} if newer is None else {"notice": newer})


def _json(status: int, body: dict[str, Any]) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(body, default=str), content_type="application/json")
