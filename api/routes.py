"""Routes: the operations of the API with the handlers that serve them, and the pages and files beside them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TypeAlias

from aiohttp.typedefs import Handler

from api.admission import Admission
from api.auth import Authenticator
from api.handlers.account import AccountHandlers
from api.handlers.application import ApplicationHandlers
from api.handlers.audit import AuditHandler
from api.handlers.certificates import CertificateHandlers
from api.handlers.connect import ConfigurationHandlers, ConnectHandlers, SharingHandlers
from api.handlers.connect_return import ConnectReturnHandler
from api.handlers.diagnosis import DiagnosisHandler
from api.handlers.docs import DocsHandlers
from api.handlers.domain_actions import DomainActionHandlers
from api.handlers.domain_check import DomainCheckHandlers
from api.handlers.ended_domains import EndedDomainsHandler
from api.handlers.flow_list import FlowListHandlers
from api.handlers.health import HealthHandlers
from api.handlers.monitor import BatchHandlers, MonitorHandlers
from api.handlers.operations import OperationsHandler
from api.handlers.organisations import OrganisationHandlers
from api.handlers.power import PowerHandlers
from api.handlers.preparation import PreparationHandlers
from api.handlers.sdk import SdkHandler
from api.handlers.secure import SecureHandlers
from api.handlers.share import ShareHandler
from api.handlers.status_page import StatusPageHandlers
from api.handlers.token import TokenHandler
from api.handlers.traffic import TrafficHandler
from api.handlers.webhooks import WebhookHandlers
from api.operations import (
    application,
    audit,
    authentication,
    connect,
    domain_check,
    domains,
    health,
    monitor,
    power,
    secure,
    sharing,
    users,
    webhooks,
)
from api.operations.operation import Handlers, Operation
from api.rate_limits import RateLimits
from api.reference.calls import render_calls
from api.reference.handler import ReferenceHandler
from api.services.flow_preparing import FlowPreparing
from api.wiring import Services
from common.clock import Clock
from common.db.pool import Database

Routes: TypeAlias = tuple[tuple[str, str, Handler], ...]
"""Method, path and handler."""


def service_routes(services: Services, database: Database, clock: Clock) -> Routes:
    """Return the routes of the operations that need a token or an API key, and of those without a secret to check."""
    base_url, status_pages = services.sharing.settings.base_url, StatusPageHandlers(services.status_pages)
    return (
        *_bound(power.OPERATIONS, PowerHandlers(services.power)),
        *_bound(secure.OPERATIONS, SecureHandlers(services.secure)),
        *_bound(domains.DIAGNOSIS, DiagnosisHandler(services.diagnosis, clock)),
        *_bound(domains.ENDED, EndedDomainsHandler(services.ended_domains)),
        *_bound(domains.STATUS_LINKS, status_pages),
        ("GET", "/status/{link}", status_pages.page),
        *_bound(domains.TRAFFIC, TrafficHandler(database)),
        *_bound(domains.CERTIFICATES, CertificateHandlers(services.own_certificates)),
        *_bound(domains.PREPARATIONS, PreparationHandlers(services.preparations)),
        *_bound(domains.ACTIONS, DomainActionHandlers(services.domain_actions)),
        *_bound(
            domain_check.OPERATIONS,
            DomainCheckHandlers(services.domain_checks, services.record_checks, services.configurations),
        ),
        *_bound(connect.CONFIGURATIONS, ConfigurationHandlers(services.configurations)),
        *_bound(
            connect.FLOWS, ConnectHandlers(services.connect, services.flow_watch, FlowPreparing(services.preparations))
        ),
        *_bound(connect.LISTS, FlowListHandlers(services.flow_list)),
        *_bound(connect.RETURNS, ConnectReturnHandler(services.connect)),
        *_bound(sharing.LINKS, SharingHandlers(services.sharing, services.connect, base_url)),
        *_bound(monitor.DOMAINS, MonitorHandlers(services.monitor)),
        *_bound(monitor.BATCHES, BatchHandlers(services.batches)),
        *_bound(application.OPERATIONS, ApplicationHandlers(services.applications, services.removals, clock)),
        *_bound(audit.OPERATIONS, AuditHandler(database)),
        *_bound(webhooks.OPERATIONS, WebhookHandlers(services.webhooks)),
        *_bound(users.ACCOUNT, AccountHandlers(database, clock)),
        *_bound(users.ORGANISATIONS, OrganisationHandlers(services.organisations)),
        *_bound(users.INSTALLATION, OperationsHandler(services.installation)),
        *_bound(health.OPERATIONS, HealthHandlers(database)),
    )


def secret_routes(
    database: Database, authenticator: Authenticator, clock: Clock, limits: RateLimits, admission: Admission
) -> Routes:
    """Return the routes that are opened by a secret of their own: a client secret, or a link."""
    return (
        *_bound(authentication.OPERATIONS, TokenHandler(authenticator, clock, limits, admission)),
        *_bound(sharing.SHARED, ShareHandler(database, authenticator)),
    )


def page_routes(base_url: str, sdk_releases: Path) -> Routes:
    """Return the routes of the handbook, the reference and the SDK, which are open and not documented."""
    docs, sdk = DocsHandlers(base_url, render_calls), SdkHandler(sdk_releases)
    return (
        ("GET", "/docs", docs.index),
        ("GET", "/docs/", docs.index),
        ("GET", "/docs/{page}", docs.page),
        ("GET", "/llms.txt", docs.llms),
        ("GET", "/openapi.json", ReferenceHandler(base_url).get),
        ("GET", "/sdk/{version}/{file}", sdk.get),
        ("GET", "/sdk/{version}/words/{file}", sdk.get),
    )


def _bound(operations: Iterable[Operation[Handlers]], handlers: Handlers) -> Routes:
    return tuple((each.method, each.path, partial(each.handler, handlers)) for each in operations)
