"""The API as an aiohttp application: its routes, and what every request goes through.

The middlewares are in `api.middlewares`.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from random import Random

from aiohttp import web

from api.admission import Admission
from api.auth import Authenticator
from api.bounds import BOUNDS, Bounds
from api.counters import Counters
from api.cross_origin import Preflight, allow_origins, is_connect_route
from api.dashboard.app import build_dashboard
from api.dashboard.browser import ROOT
from api.dashboard.context import DashboardContext
from api.draining import DRAINING
from api.idempotency import Settlements, idempotent
from api.middlewares import OPEN_ROUTES, admitted, answered, authenticated, limited, understood
from api.operations import QUERIES
from api.rate_limits import RateLimits
from api.requests import LARGEST_BODY_BYTES, RATE_LIMIT, REQUEST_ID
from api.routes import Routes, page_routes, secret_routes, service_routes
from api.serving import SOFTWARE
from api.wiring import ApiWiring
from common.clock import Clock
from common.db.pool import Database
from common.dns import Resolver
from common.dns.authority import DNS_PORT
from common.secrets import Keyring
from common.settings import Settings
from common.tracing import open_tracer


def build_app(
    settings: Settings,
    database: Database,
    keyring: Keyring,
    resolver: Resolver,
    clock: Clock,
    counters: Counters,
    *,
    probe_port: int = 80,
    authority_port: int = DNS_PORT,
    bounds: Bounds = BOUNDS,
) -> web.Application:
    """Build the API as an application.

    `probe_port`: where edges and the CDNs before them serve plain HTTP to the world. `authority_port`: that of
    zones' own name servers, another than 53 only in tests and benchmarks.

    Raises: `OperatorError` for a setting that makes no sense.
    """
    authenticator = Authenticator(database, keyring, clock)
    limits = RateLimits.of(settings, clock)
    admission = Admission()
    draining = asyncio.Event()
    wiring = ApiWiring(settings, database, keyring, resolver, clock, draining, probe_port, authority_port, bounds)
    services = wiring.services()
    settlements = Settlements(database)
    tracer = open_tracer(settings, "api")
    middlewares = [
        answered(counters, clock, Random(), tracer),  # noqa: S311 - it spreads the times at which clients come back
        limited(limits, settings.api_trusted_proxies),
        authenticated(authenticator, limits, admission),
        understood(QUERIES),
        admitted(admission),
        idempotent(settlements),
    ]
    app = web.Application(middlewares=middlewares, client_max_size=LARGEST_BODY_BYTES)
    app[DRAINING] = draining
    app.on_response_prepare.extend((_add_fields, allow_origins))
    app.on_startup.append(lambda _: services.removals.resume())
    app.on_shutdown.append(lambda _: services.flow_watch.close())
    app.on_cleanup.append(lambda _: settlements.close())
    if tracer is not None:
        app.on_cleanup.append(lambda _: asyncio.to_thread(tracer.close))
    app.on_cleanup.append(lambda _: services.close())
    _add_routes(app, page_routes(settings.base_url, settings.state_dir / "sdk"))
    _add_routes(app, secret_routes(database, authenticator, clock, limits, admission))
    _add_routes(app, service_routes(services, database, clock))
    app.add_subapp(ROOT, build_dashboard(DashboardContext.of(settings, database, keyring, clock, services, bounds)))
    return app


def _add_routes(app: web.Application, routes: Routes) -> None:
    """Add the routes, and HEAD and OPTIONS where they are asked for.

    HEAD stands beside GET where previews of links and probes of balancers ask only for the head, OPTIONS where
    pages of other origins ask first.
    """
    methods: defaultdict[str, list[str]] = defaultdict(list)
    for method, path, handler in routes:
        app.router.add_route(method, path, handler, expect_handler=_expect)
        if method == "GET" and path in OPEN_ROUTES:
            app.router.add_route("HEAD", path, handler, expect_handler=_expect)
        methods[path].append(method)
    for path in filter(is_connect_route, methods):
        app.router.add_route("OPTIONS", path, Preflight(methods[path]).options)


async def _expect(request: web.Request) -> None:
    """Send 100 to a client that waits for it before the body (RFC 9110 §10.1.1).

    Other expectations are not met, which a server is free to ignore.
    """
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # a failure after this can still be answered


async def _add_fields(request: web.Request, response: web.StreamResponse) -> None:
    """To every response; in place of the library's own name in `Server`."""
    response.headers["Server"] = SOFTWARE
    if REQUEST_ID in request:
        response.headers["X-Request-Id"] = request[REQUEST_ID]
    if RATE_LIMIT in request:
        response.headers.update(request[RATE_LIMIT])
