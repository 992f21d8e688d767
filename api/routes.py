"""Routes: the method, the path and the handler of each operation, over the services of the process.

`api.reference.operations` describes the same operations to partners.
"""

from __future__ import annotations

from typing import TypeAlias

from aiohttp.typedefs import Handler

from api.handlers.account import AccountHandlers
from api.handlers.application import ApplicationHandlers
from api.handlers.audit import AuditHandler
from api.handlers.connect import ConfigurationHandlers, ConnectHandlers, SharingHandlers
from api.handlers.connect_return import ConnectReturnHandler
from api.handlers.diagnosis import DiagnosisHandler
from api.handlers.docs import DocsHandlers
from api.handlers.domain_actions import DomainActionHandlers
from api.handlers.domain_check import DomainCheckHandlers
from api.handlers.health import HealthHandlers
from api.handlers.monitor import BatchHandlers, MonitorHandlers
from api.handlers.operations import OperationsHandler
from api.handlers.organisations import OrganisationHandlers
from api.handlers.power import PowerHandlers
from api.handlers.sdk import SdkHandler
from api.handlers.secure import SecureHandlers
from api.handlers.traffic import TrafficHandler
from api.handlers.webhooks import WebhookHandlers
from api.wiring import Services
from common.clock import Clock
from common.db.pool import Database

Routes: TypeAlias = tuple[tuple[str, str, Handler], ...]
"""Method, path and handler."""


def service_routes(services: Services, database: Database, clock: Clock) -> Routes:
    """The operations of partners."""
    return (
        *_domain_routes(
            PowerHandlers(services.power),
            SecureHandlers(services.secure),
            DiagnosisHandler(services.diagnosis, clock),
            TrafficHandler(database),
        ),
        *_application_routes(
            ApplicationHandlers(services.applications, services.removals, clock),
            DomainActionHandlers(services.domain_actions),
        ),
        *_user_routes(
            AccountHandlers(database, clock),
            OrganisationHandlers(services.organisations),
            OperationsHandler(services.installation),
        ),
        *_check_routes(DomainCheckHandlers(services.domain_checks, services.record_checks)),
        *_monitor_routes(MonitorHandlers(services.monitor), BatchHandlers(services.batches)),
        *_webhook_routes(WebhookHandlers(services.webhooks)),
        *_connect_routes(
            ConnectHandlers(services.connect, services.flow_watch),
            SharingHandlers(services.sharing, services.connect, services.sharing.settings.base_url),
            ConfigurationHandlers(services.configurations),
        ),
        ("GET", "/connect/return/{id}", ConnectReturnHandler(services.connect).get),
        ("GET", "/audit", AuditHandler(database).get),
    )


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


def _application_routes(application: ApplicationHandlers, actions: DomainActionHandlers) -> Routes:
    return (
        ("GET", "/application", application.get),
        ("PUT", "/application", application.put),
        ("DELETE", "/application", application.delete),
        ("PUT", "/application/secret", application.put_client_secret),
        ("PUT", "/application/webhook-secret", application.put_webhook_secret),
        ("PUT", "/application/signature", application.put_signature),
        ("PUT", "/application/service-auth", application.put_service_auth),
        ("PUT", "/application/operator", application.put_operator),
        ("GET", "/applications", application.list_all),
        ("POST", "/applications", application.post),
        ("POST", "/domains/{domain}/renew", actions.renew),
        ("POST", "/domains/{domain}/recheck", actions.recheck),
        ("POST", "/domains/{domain}/transfer", actions.transfer),
        ("POST", "/domains/{domain}/free", actions.free),
        ("POST", "/domains/{domain}/block", actions.block),
        ("POST", "/domains/{domain}/unblock", actions.unblock),
    )


def _user_routes(
    account: AccountHandlers, organisations: OrganisationHandlers, operations: OperationsHandler
) -> Routes:
    """What API keys of users alone open."""
    one = "/organisations/{organisation}"
    return (
        ("GET", "/account", account.get),
        ("GET", "/account/keys", account.list_keys),
        ("DELETE", "/account/keys/{key}", account.delete_key),
        ("GET", "/organisations", organisations.list_all),
        ("POST", "/organisations", organisations.post),
        ("GET", one, organisations.get),
        ("GET", f"{one}/members", organisations.list_members),
        ("PUT", f"{one}/members", organisations.put_member),
        ("DELETE", f"{one}/members/{{user}}", organisations.delete_member),
        ("PUT", f"{one}/members/{{user}}/link", organisations.put_link),
        ("GET", "/operations", operations.get),
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


def _connect_routes(
    connect: ConnectHandlers, sharing: SharingHandlers, configurations: ConfigurationHandlers
) -> Routes:
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
        ("POST", "/connect/configurations", configurations.post),
        ("GET", "/connect/configurations", configurations.list_all),
        ("GET", "/connect/configurations/{id}", configurations.get),
        ("DELETE", "/connect/configurations/{id}", configurations.delete),
        ("POST", "/sharing/connect", sharing.post),
        ("GET", "/sharing/connect", sharing.get),
        ("DELETE", "/sharing/connect/{id}", sharing.delete),
    )


def _webhook_routes(webhooks: WebhookHandlers) -> Routes:
    return (
        ("GET", "/webhooks/events", webhooks.get_events),
        ("POST", "/webhooks/events/{id}/replay", webhooks.replay),
        ("GET", "/webhooks/deliveries", webhooks.get_deliveries),
        ("POST", "/webhooks/deliveries/replay", webhooks.replay_range),
        ("GET", "/webhooks/endpoint", webhooks.get_endpoint),
        ("POST", "/webhooks/endpoint/enable", webhooks.enable),
        ("POST", "/webhooks/test", webhooks.test),
    )


def docs_routes(docs: DocsHandlers) -> Routes:
    return (("GET", "/docs", docs.index), ("GET", "/docs/", docs.index), ("GET", "/docs/{page}", docs.page))


def sdk_routes(sdk: SdkHandler) -> Routes:
    return (
        ("GET", "/sdk/{version}/{file}", sdk.get),
        ("GET", "/sdk/{version}/words/{file}", sdk.get),
    )


def health_routes(health: HealthHandlers) -> Routes:
    return (
        ("GET", "/healthz", health.healthz),
        ("GET", "/readyz", health.readyz),
    )
