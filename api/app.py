"""The API as an aiohttp application: its routes, and what every request goes through.

answered (counts, renders every failure) → authenticated (all but the open routes) → handler
"""

from __future__ import annotations

import secrets

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware

from api.auth import Authenticator
from api.counters import Counters
from api.errors import Refused, refusal_of_failure, refusal_of_http
from api.handlers.diagnosis import DiagnosisHandler
from api.handlers.health import HealthHandlers
from api.handlers.monitor import BatchHandlers, MonitorHandlers
from api.handlers.power import PowerHandlers
from api.handlers.secure import SecureHandlers
from api.handlers.share import ShareHandler
from api.handlers.token import TokenHandler
from api.handlers.webhooks import WebhookHandlers
from api.requests import APPLICATION, LARGEST_BODY_BYTES, REQUEST_ID
from api.schemas import answers
from api.services.batches import BatchService
from api.services.diagnosis import DiagnosisService
from api.services.enrolment import Enrolment
from api.services.monitor import MonitorService
from api.services.origin_state import OriginStates
from api.services.power import PowerService
from api.services.reachability import OriginProbe
from api.services.secure import SecureService
from api.services.webhooks import WebhookService
from api.serving import SOFTWARE
from common.addresses import own_policy
from common.clock import Clock
from common.db.pool import Database
from common.dns import Resolver
from common.edge_probe import HttpEdgeProbe, probing_policy
from common.eligibility import ServiceTargets
from common.errors import DatabaseUnavailable
from common.logs import get_logger
from common.ownership import OwnNames
from common.secrets import Keyring
from common.settings import Settings

_OPEN_ROUTES = frozenset({"/token", "/healthz", "/readyz", "/share/{id}"})

_log = get_logger("api")


def build_app(
    settings: Settings,
    database: Database,
    keyring: Keyring,
    resolver: Resolver,
    clock: Clock,
    counters: Counters,
    *,
    probe_port: int = 80,
) -> web.Application:
    """`probe_port`: where edges and the CDNs before them serve plain HTTP to the world.

    Raises: `OperatorError` for a setting that makes no sense.
    """
    policy = own_policy(settings)
    authenticator = Authenticator(database, keyring, clock)
    probe = HttpEdgeProbe(keyring, probing_policy(settings), port=probe_port)
    enrolment = Enrolment(database, resolver, policy, ServiceTargets.of(settings), OwnNames.of(settings), probe, clock)
    probe_origin = OriginProbe(policy, settings.dns_servers)
    origins = OriginStates(probe_origin, clock)
    power = PowerHandlers(PowerService(enrolment, origins))
    diagnosis = DiagnosisHandler(DiagnosisService(enrolment, probe, origins, settings), clock)
    secure = SecureHandlers(SecureService(enrolment, probe_origin))
    monitor = MonitorHandlers(MonitorService(database))
    bulk = BatchHandlers(BatchService(database))
    webhooks = WebhookHandlers(WebhookService(database))
    health = HealthHandlers(database)
    app = web.Application(
        middlewares=[_answered(counters, clock), _authenticated(authenticator)],
        client_max_size=LARGEST_BODY_BYTES,
    )
    app.on_response_prepare.append(_hide_software)
    app.on_cleanup.append(lambda _: origins.close())
    routes = (
        ("GET", "/power", power.get),
        ("POST", "/power", power.post),
        ("PUT", "/power", power.put),
        ("DELETE", "/power", power.delete),
        ("GET", "/ssl", secure.get),
        ("POST", "/ssl", secure.post),
        ("PUT", "/ssl", secure.put),
        ("DELETE", "/ssl", secure.delete),
        ("GET", "/domains/{domain}/diagnosis", diagnosis.get),
        ("POST", "/monitor/domains", monitor.post),
        ("PUT", "/monitor/domains", monitor.put),
        ("DELETE", "/monitor/domains", monitor.delete),
        ("GET", "/monitor/domains", monitor.get),
        ("POST", "/monitor/domains/batch", bulk.post),
        ("DELETE", "/monitor/domains/batch", bulk.delete),
        ("GET", "/monitor/domains/batch/status/{request_id}", bulk.get_status),
        ("GET", "/monitor/domains/{domain_name}", monitor.get_one),
        ("GET", "/monitor/domains/{domain_name}/checks", monitor.get_checks),
        ("GET", "/monitor/domains/{domain_name}/records", monitor.get_records),
        ("POST", "/monitor/domains/{domain_name}/records", monitor.post_records),
        ("PUT", "/monitor/domains/{domain_name}/records", monitor.put_records),
        ("DELETE", "/monitor/domains/{domain_name}/records", monitor.delete_records),
        ("GET", "/monitor/status", monitor.get_status),
        ("GET", "/webhooks/events", webhooks.get_events),
        ("POST", "/webhooks/events/{id}/replay", webhooks.replay),
        ("GET", "/webhooks/deliveries", webhooks.get_deliveries),
        ("GET", "/webhooks/endpoint", webhooks.get_endpoint),
        ("POST", "/webhooks/endpoint/enable", webhooks.enable),
        ("POST", "/webhooks/test", webhooks.test),
        ("GET", "/share/{id}", ShareHandler(database).get),
        ("POST", "/token", TokenHandler(authenticator, clock).post),
        ("GET", "/healthz", health.healthz),
        ("GET", "/readyz", health.readyz),
    )
    for method, path, handler in routes:
        app.router.add_route(method, path, handler, expect_handler=_expect)
        if method == "GET" and path in _OPEN_ROUTES:  # previews of links and probes of balancers ask only for the head
            app.router.add_route("HEAD", path, handler, expect_handler=_expect)
    return app


def _answered(counters: Counters, clock: Clock) -> Middleware:
    """The root of every request: whatever happens beneath, it is answered in shape, counted and logged."""

    @web.middleware
    async def answered(request: web.Request, handler: Handler) -> web.StreamResponse:
        began = clock.monotonic()
        request[REQUEST_ID] = secrets.token_hex(8)
        response = await _answer(request, handler)
        route = _route_of(request)
        method = request.method if request.method in hdrs.METH_ALL else "other"
        counters.record(route, method, response.status, clock.monotonic() - began)
        return response

    return answered


def _route_of(request: web.Request) -> str:
    """What is counted and logged instead of the path, which may hold a sharing link: its id is all that opens it."""
    resource = request.match_info.route.resource
    return resource.canonical if resource else "none"


async def _answer(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except Refused as error:
        return _render(request, error)
    except web.HTTPException as error:
        response = _render(request, Refused(refusal_of_http(error)))
        if "Allow" in error.headers:
            response.headers["Allow"] = error.headers["Allow"]
        return response
    except DatabaseUnavailable as error:
        _log.warning("database unavailable", route=_route_of(request), request_id=request[REQUEST_ID], error=str(error))
        return _render(request, Refused(refusal_of_failure(error, request.method, request.path)))
    except Exception as error:  # noqa: BLE001 - the root of a request
        _log.error("request failed", route=_route_of(request), request_id=request[REQUEST_ID], exc_info=True)
        return _render(request, Refused(refusal_of_failure(error, request.method, request.path)))


def _render(request: web.Request, error: Refused) -> web.Response:
    content = {"message": error.refusal.message, "request_id": request[REQUEST_ID]}
    content |= {name: text for name, text in (("code", error.code), ("hint", error.hint)) if text}
    return answers.respond(content, error.refusal.status)


def _authenticated(authenticator: Authenticator) -> Middleware:
    @web.middleware
    async def authenticated(request: web.Request, handler: Handler) -> web.StreamResponse:
        resource = request.match_info.route.resource
        if resource is not None and resource.canonical not in _OPEN_ROUTES:
            request[APPLICATION] = await authenticator.authenticate(request.headers)
        return await handler(request)

    return authenticated


async def _expect(request: web.Request) -> None:
    """RFC 9110 §10.1.1: whoever waits for a word before sending the body gets it; other expectations are not met,
    which we are free to ignore."""
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # a failure after this can still be answered


async def _hide_software(_: web.Request, response: web.StreamResponse) -> None:
    response.headers["Server"] = SOFTWARE
