"""The dashboard as an aiohttp application, mounted by `api.app` under ``/dashboard``."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TypeAlias

from aiohttp import web
from aiohttp.typedefs import Handler

from api.dashboard.context import DashboardContext
from api.dashboard.handlers.account import AccountPages
from api.dashboard.handlers.application_secrets import SecretPages
from api.dashboard.handlers.application_settings import SettingsPages
from api.dashboard.handlers.applications import ApplicationPages
from api.dashboard.handlers.audit import AuditPages
from api.dashboard.handlers.connecting import ConnectingPages
from api.dashboard.handlers.domain_bulk import DomainBulk
from api.dashboard.handlers.domain_list import DomainListPage
from api.dashboard.handlers.domains import DomainPages
from api.dashboard.handlers.ended_domains import EndedDomainsPage
from api.dashboard.handlers.files import FileHandler
from api.dashboard.handlers.home import HomePage
from api.dashboard.handlers.monitored import MonitoredPages
from api.dashboard.handlers.oidc import OidcPages
from api.dashboard.handlers.operations import OperationsPages
from api.dashboard.handlers.organisations import OrganisationPages
from api.dashboard.handlers.prepared import PreparedPages
from api.dashboard.handlers.search import SearchHandler
from api.dashboard.handlers.signing_in import SigningInPages
from api.dashboard.handlers.webhooks import WebhookPages
from api.dashboard.live import RENDERINGS, SLOTS, stream_slots
from api.dashboard.middlewares import framed, protected, signed_in
from api.dashboard.renderings import Renderings

Routes: TypeAlias = tuple[tuple[str, str, Handler], ...]


def build_dashboard(context: DashboardContext) -> web.Application:
    """Build the dashboard as an application that stands below `ROOT`."""
    app = web.Application(middlewares=[framed(context), signed_in(context), protected(context)])
    signing_in = SigningInPages(context)
    oidc = OidcPages(context)
    organisations = OrganisationPages(context)
    app[SLOTS] = stream_slots()
    app[RENDERINGS] = Renderings(context.clock)
    home = HomePage(context)
    routes = (
        ("GET", "", home.get),
        ("GET", "/live", home.get_live),
        ("GET", "/static/{digest}/{name}", FileHandler(context).get),
        ("GET", "/sign-in", signing_in.get),
        ("POST", "/sign-in", signing_in.post),
        ("GET", "/link/{token}", signing_in.get_link),
        ("POST", "/link/{token}", signing_in.post_link),
        ("POST", "/sign-out", signing_in.sign_out),
        ("GET", "/sign-in/oidc", oidc.get),
        ("GET", "/sign-in/oidc/return", oidc.get_return),
        *_account_routes(AccountPages(context)),
        *_passkey_routes(context),
        ("GET", "/organisations", organisations.list_all),
        ("POST", "/organisations", organisations.create),
        ("GET", "/organisations/{organisation}", organisations.get),
        ("POST", "/organisations/{organisation}/members", organisations.put_member),
        ("POST", "/organisations/{organisation}/members/remove", organisations.remove_member),
        ("POST", "/organisations/{organisation}/members/link", organisations.make_link),
        *_application_routes(ApplicationPages(context, context.removals), SettingsPages(context), SecretPages(context)),
        *_domain_routes(context),
        *_prepared_routes(PreparedPages(context)),
        *_webhook_routes(WebhookPages(context)),
        ("GET", "/applications/{application}/connecting", ConnectingPages(context).get),
        ("GET", "/applications/{application}/connecting/{flow}", ConnectingPages(context).get_flow),
        ("GET", "/applications/{application}/ended", EndedDomainsPage(context).get),
        *_audit_routes(AuditPages(context)),
        *_operations_routes(OperationsPages(context)),
    )
    for method, path, handler in routes:
        app.router.add_route(method, path, handler)
    return app


def _account_routes(account: AccountPages) -> Routes:
    return (
        ("GET", "/account", account.get),
        ("POST", "/account/password", account.set_password),
        ("POST", "/account/sessions/end", account.end_session),
        ("GET", "/account/confirm", account.get_confirm),
        ("POST", "/account/confirm", account.post_confirm),
        ("POST", "/account/keys", account.make_key),
        ("POST", "/account/keys/revoke", account.revoke_key),
    )


def _passkey_routes(context: DashboardContext) -> Routes:
    """Their library is imported for the first request that needs it, in a thread, and not at the start of each API."""

    def page(name: str) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            handlers = await asyncio.to_thread(import_module, "api.dashboard.handlers.passkeys")
            handler: Handler = getattr(handlers.PasskeyPages(context), name)
            return await handler(request)

        return handle

    return (
        ("GET", "/sign-in/passkey", page("get_sign_in")),
        ("POST", "/sign-in/passkey", page("post_sign_in")),
        ("GET", "/account/confirm/passkey", page("get_confirm")),
        ("POST", "/account/confirm/passkey", page("post_confirm")),
        ("GET", "/account/passkeys", page("get_new")),
        ("POST", "/account/passkeys", page("post_new")),
        ("POST", "/account/passkeys/remove", page("remove")),
    )


def _application_routes(pages: ApplicationPages, settings: SettingsPages, secrets: SecretPages) -> Routes:
    one = "/applications/{application}"
    return (
        ("GET", "/applications", pages.list_all),
        ("GET", "/applications/new", pages.get_new),
        ("POST", "/applications/new", pages.post_new),
        ("GET", one, pages.get),
        ("GET", f"{one}/checks", pages.get_checks),
        ("GET", f"{one}/live", pages.get_live),
        ("GET", f"{one}/settings", settings.get),
        ("POST", f"{one}/settings", settings.post),
        ("GET", f"{one}/secrets", secrets.get),
        ("POST", f"{one}/secrets", secrets.post),
        ("GET", f"{one}/delete", pages.get_delete),
        ("POST", f"{one}/delete", pages.post_delete),
    )


def _domain_routes(context: DashboardContext) -> Routes:
    domains, bulk = DomainListPage(context), DomainBulk(context)
    pages, monitored = DomainPages(context), MonitoredPages(context)
    one = "/applications/{application}"
    return (
        ("GET", "/domains", domains.get),
        ("POST", "/domains", bulk.post),
        ("GET", "/domains/export", domains.export),
        ("GET", "/domains/live", domains.get_live),
        ("GET", "/search", SearchHandler(context).get),
        ("GET", f"{one}/domains/new", pages.get_new),
        ("POST", f"{one}/domains/new", pages.post_new),
        ("GET", f"{one}/domains/{{name}}", pages.get),
        ("POST", f"{one}/domains/{{name}}", pages.post),
        ("GET", f"{one}/domains/{{name}}/diagnosis", pages.get_diagnosis),
        ("GET", f"{one}/domains/{{name}}/live", pages.get_live),
        ("GET", f"{one}/monitored/{{name}}", monitored.get),
        ("POST", f"{one}/monitored/{{name}}", monitored.post),
        ("GET", f"{one}/monitored/{{name}}/live", monitored.get_live),
    )


def _prepared_routes(pages: PreparedPages) -> Routes:
    one = "/applications/{application}/prepared/{name}"
    return (("GET", one, pages.get), ("POST", one, pages.end), ("GET", f"{one}/live", pages.get_live))


def _webhook_routes(pages: WebhookPages) -> Routes:
    one = "/applications/{application}/webhooks"
    return (
        ("GET", one, pages.list_all),
        ("POST", one, pages.post),
        ("GET", f"{one}/live", pages.get_live),
        ("GET", f"{one}/{{event}}", pages.get),
        ("GET", f"{one}/{{event}}/live", pages.get_one_live),
    )


def _audit_routes(pages: AuditPages) -> Routes:
    return (
        ("GET", "/audit", pages.list_all),
        ("GET", "/audit/export", pages.export_all),
        ("GET", "/applications/{application}/audit", pages.list_of_application),
        ("GET", "/applications/{application}/audit/export", pages.export_of_application),
    )


def _operations_routes(pages: OperationsPages) -> Routes:
    return (
        ("GET", "/operations", pages.get),
        ("GET", "/operations/live", pages.get_live),
    )
