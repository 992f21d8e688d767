"""The API as an aiohttp application: its routes, and what every request goes through.

The middlewares are in `api.middlewares`.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Protocol, TypeAlias

from aiohttp import web
from aiohttp.typedefs import Handler

from api.admission import Admission
from api.auth import Authenticator
from api.counters import Counters
from api.cross_origin import Preflight, allow_origins, is_connect_route
from api.dashboard.app import build_dashboard
from api.dashboard.browser import ROOT
from api.dashboard.context import DashboardContext
from api.draining import DRAINING
from api.handlers.audit import AuditHandler
from api.handlers.connect import ConnectHandlers, SharingHandlers
from api.handlers.diagnosis import DiagnosisHandler
from api.handlers.docs import DocsHandlers
from api.handlers.domain_check import DomainCheckHandlers
from api.handlers.health import HealthHandlers
from api.handlers.monitor import BatchHandlers, MonitorHandlers
from api.handlers.power import PowerHandlers
from api.handlers.reference import ReferenceHandler
from api.handlers.sdk import SdkHandler
from api.handlers.secure import SecureHandlers
from api.handlers.share import ShareHandler
from api.handlers.token import TokenHandler
from api.handlers.traffic import TrafficHandler
from api.handlers.webhooks import WebhookHandlers
from api.idempotency import idempotent
from api.middlewares import OPEN_ROUTES, admitted, answered, authenticated, limited, understood
from api.rate_limits import RateLimits
from api.reference.operations import QUERIES
from api.requests import LARGEST_BODY_BYTES, RATE_LIMIT, REQUEST_ID
from api.services.batches import BatchService
from api.services.connect import ConnectService
from api.services.diagnosis import DiagnosisService
from api.services.domain_check import DomainCheckService
from api.services.enrolment import Enrolment
from api.services.flow_watch import FlowWatch
from api.services.monitor import MonitorService
from api.services.origin_state import OriginStates
from api.services.power import PowerService
from api.services.rdap_servers import RdapServers
from api.services.record_check import RecordCheckService
from api.services.secure import SecureService
from api.services.sharing import SharingService
from api.services.webhooks import WebhookService
from api.serving import SOFTWARE
from common.addresses import own_policy
from common.clock import Clock
from common.connect.looker import Looker
from common.connect.settlement import Settlement
from common.connect.ways.dynamic_update import DynamicUpdate
from common.connect.ways.provider_api import ProviderApis
from common.connect.ways.provider_apis import PROVIDER_APIS
from common.db.applications import Application
from common.db.pool import Database
from common.dns import Resolver
from common.dns.authority import DNS_PORT
from common.domain_check.rdap import RdapClient
from common.domain_check.ways import OpenWays
from common.edge_probe import HttpEdgeProbe, probing_policy
from common.eligibility import ServiceTargets
from common.origin_probe import OriginProbe
from common.ownership import OwnNames
from common.secrets import Keyring
from common.settings import Settings

Routes: TypeAlias = tuple[tuple[str, str, Handler], ...]
"""Method, path and handler."""


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
) -> web.Application:
    """`probe_port`: where edges and the CDNs before them serve plain HTTP to the world. `authority_port`: that of
    zones' own name servers, another than 53 only in tests and benchmarks.

    Raises: `OperatorError` for a setting that makes no sense.
    """
    authenticator = Authenticator(database, keyring, clock)
    limits = RateLimits.of(settings, clock)
    admission = Admission()
    policy = own_policy(settings)
    probe = HttpEdgeProbe(keyring, probing_policy(settings), port=probe_port)
    enrolment = Enrolment(database, resolver, policy, ServiceTargets.of(settings), OwnNames.of(settings), probe, clock)
    probe_origin = OriginProbe(policy, settings.dns_servers)
    origins = OriginStates(probe_origin, clock)
    rdap_servers = RdapServers(database, settings.rdap_bootstrap, clock)
    rdap = RdapClient(resolver, policy, clock, rdap_servers.find)
    checks = DomainCheckService(
        database,
        settings,
        resolver,
        rdap,
        enrolment.service_targets,
        clock,
        _open_ways,
    )
    record_checks = RecordCheckService(settings, policy, clock, authority_port=authority_port)
    app = web.Application(
        middlewares=[
            answered(counters, clock),
            limited(limits, settings.api_trusted_proxies),
            authenticated(authenticator, limits, admission),
            understood(QUERIES),
            admitted(admission),
            idempotent(database),
        ],
        client_max_size=LARGEST_BODY_BYTES,
    )
    app[DRAINING] = asyncio.Event()
    app.on_response_prepare.extend((_add_fields, allow_origins))
    for owner in (origins, rdap, record_checks):
        app.on_cleanup.append(partial(_close, owner))
    watch = FlowWatch(database, app[DRAINING])
    app.on_shutdown.append(lambda _: watch.close())
    sharing = SharingService(database, settings.base_url)
    connect = ConnectService(
        database,
        settings,
        sharing,
        clock,
        Looker(resolver, database, settings),
        Settlement(database, clock),
        DynamicUpdate(resolver, policy),
        ProviderApis(settings),
    )
    power, secure = PowerService(enrolment, origins), SecureService(enrolment, probe_origin)
    diagnosis = DiagnosisService(enrolment, probe, origins, settings)
    monitor, webhooks = MonitorService(database), WebhookService(database)
    routes = (
        *_domain_routes(
            PowerHandlers(power),
            SecureHandlers(secure),
            DiagnosisHandler(diagnosis, clock),
            TrafficHandler(database),
        ),
        *_check_routes(DomainCheckHandlers(checks, record_checks)),
        *_monitor_routes(MonitorHandlers(monitor), BatchHandlers(BatchService(database))),
        *_webhook_routes(WebhookHandlers(webhooks)),
        *_connect_routes(ConnectHandlers(connect, watch), SharingHandlers(sharing, connect)),
        *_sdk_routes(SdkHandler()),
        ("GET", "/audit", AuditHandler(database).get),
        ("GET", "/share/{id}", ShareHandler(database, authenticator).get),
        ("POST", "/token", TokenHandler(authenticator, clock, limits, admission).post),
        *_docs_routes(DocsHandlers()),
        ("GET", "/openapi.json", ReferenceHandler(settings.base_url).get),
        *_health_routes(HealthHandlers(database)),
    )
    for method, path, handler in routes:
        app.router.add_route(method, path, handler, expect_handler=_expect)
        if method == "GET" and path in OPEN_ROUTES:  # previews of links and probes of balancers ask only for the head
            app.router.add_route("HEAD", path, handler, expect_handler=_expect)
    for path in {path for _, path, _ in routes if is_connect_route(path)}:
        methods = [method for method, each, _ in routes if each == path]
        app.router.add_route("OPTIONS", path, Preflight(methods).options)
    dashboard = DashboardContext.of(
        settings, database, keyring, clock, enrolment, power, secure, diagnosis, monitor, webhooks, probe_origin
    )
    app.add_subapp(ROOT, build_dashboard(dashboard))
    return app


def _open_ways(_: Application) -> OpenWays:
    return OpenWays(provider_apis=frozenset(PROVIDER_APIS))


def _domain_routes(
    power: PowerHandlers, secure: SecureHandlers, diagnosis: DiagnosisHandler, traffic: TrafficHandler
) -> Routes:
    return (
        ("GET", "/power", power.get),
        ("POST", "/power", power.post),
        ("PUT", "/power", power.put),
        ("DELETE", "/power", power.delete),
        ("GET", "/ssl", secure.get),
        ("POST", "/ssl", secure.post),
        ("PUT", "/ssl", secure.put),
        ("DELETE", "/ssl", secure.delete),
        ("GET", "/domains/{domain}/diagnosis", diagnosis.get),
        ("GET", "/domains/{domain}/traffic", traffic.get),
    )


def _check_routes(checks: DomainCheckHandlers) -> Routes:
    return (
        ("POST", "/checkdomain", checks.post_domain),
        ("POST", "/checkrecords", checks.post_records),
    )


def _monitor_routes(monitor: MonitorHandlers, bulk: BatchHandlers) -> Routes:
    return (
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
    )


def _connect_routes(connect: ConnectHandlers, sharing: SharingHandlers) -> Routes:
    return (
        ("POST", "/connect/flows", connect.post),
        ("GET", "/connect/flows/{id}", connect.get),
        ("GET", "/connect/flows/{id}/events", connect.get_events),
        ("POST", "/connect/flows/{id}/domain", connect.choose),
        ("POST", "/connect/flows/{id}/plan", connect.plan),
        ("POST", "/connect/flows/{id}/apply", connect.apply),
        ("POST", "/connect/flows/{id}/check", connect.check),
        ("POST", "/connect/flows/{id}/undo", connect.undo),
        ("POST", "/connect/flows/{id}/close", connect.close),
        ("POST", "/connect/flows/{id}/share", sharing.share_flow),
        ("POST", "/sharing/connect", sharing.post),
        ("GET", "/sharing/connect", sharing.get),
        ("DELETE", "/sharing/connect/{id}", sharing.delete),
    )


def _webhook_routes(webhooks: WebhookHandlers) -> Routes:
    return (
        ("GET", "/webhooks/events", webhooks.get_events),
        ("POST", "/webhooks/events/{id}/replay", webhooks.replay),
        ("GET", "/webhooks/deliveries", webhooks.get_deliveries),
        ("GET", "/webhooks/endpoint", webhooks.get_endpoint),
        ("POST", "/webhooks/endpoint/enable", webhooks.enable),
        ("POST", "/webhooks/test", webhooks.test),
    )


def _docs_routes(docs: DocsHandlers) -> Routes:
    return (("GET", "/docs", docs.index), ("GET", "/docs/{page}", docs.page))


def _sdk_routes(sdk: SdkHandler) -> Routes:
    return (
        ("GET", "/sdk/{version}/{file}", sdk.get),
        ("GET", "/sdk/{version}/words/{file}", sdk.get),
    )


def _health_routes(health: HealthHandlers) -> Routes:
    return (
        ("GET", "/healthz", health.healthz),
        ("GET", "/readyz", health.readyz),
    )


class _Closed(Protocol):
    async def close(self) -> None: ...


async def _close(owner: _Closed, _: web.Application) -> None:
    await owner.close()


async def _expect(request: web.Request) -> None:
    """RFC 9110 §10.1.1: send 100 to a client that waits for it before the body; other expectations are not met,
    which we are free to ignore."""
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
