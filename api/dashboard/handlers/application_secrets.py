"""Secrets of an application: made, rotated and switched off, each shown once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from aiohttp import web

from api.dashboard.access import find_application
from api.dashboard.application_view import ApplicationView
from api.dashboard.browser import ROOT
from api.dashboard.context import DashboardContext
from api.dashboard.middlewares import text_of
from api.dashboard.rendering import Flash
from api.rules import application_settings as rules
from api.rules.application_settings import InvalidSetting
from api.rules.application_tokens import ServiceAuthChange
from api.services import application_secrets as secrets
from common.accounts import Permission
from common.db.applications import Application

_SECRETS = {
    "client": ("Client secret", "Signs tokens for the API. The one before works for another 24 hours."),
    "webhook": ("Webhook secret", "Verifies our webhooks. The one before signs beside it for another 24 hours."),
    "service_auth": ("X-Service-Auth", "Every request that we forward to your origin carries this value from now on."),
    "next_service_auth": (
        "X-Service-Auth",
        "Let your origin accept this value beside the one so far. Edges send it once you finish the rotation.",
    ),
    "signature": (
        "Signature key",
        "Signs every request that we forward. After a rotation the one before signs beside it for 24 hours.",
    ),
}

_SERVICE_AUTH_DONE: Mapping[ServiceAuthChange, str] = {
    "on": "Edges send your value of X-Service-Auth from now on.",
    "off": "Edges send no X-Service-Auth.",
    "rotate": "Your next value is stored. Edges send it once you finish the rotation.",
    "finish": "Edges send the new value of X-Service-Auth within a moment. Your origin can refuse the one before then.",
    "cancel": "The next value is forgotten; edges go on with the one so far.",
}


class SecretPages:
    """One for each process."""

    def __init__(self, context: DashboardContext) -> None:
        self._context = context
        self._view = ApplicationView(context)

    async def get(self, request: web.Request) -> web.StreamResponse:
        """Show which secrets there are, and none of them."""
        application = await find_application(self._context, request, Permission.CHANGE)
        return self._view.page(request, "secrets.html", application, error=None)

    async def post(self, request: web.Request) -> web.StreamResponse:
        """Make or end a secret; the answer shows a new one, this once."""
        application = await find_application(self._context, request, Permission.CHANGE)
        kind, wanted = text_of(request, "kind"), text_of(request, "wanted")
        if kind == "service_auth":
            return await self._post_service_auth(request, application)
        keeps_links = (kind, wanted) == ("client", "keep")
        if not keeps_links and (
            kind not in ("client", "webhook", "signature") or wanted not in ("on", "off", "rotate")
        ):
            raise web.HTTPBadRequest
        keyring = self._context.keyring
        async with self._context.database.transaction() as connection:
            match kind:
                case "client":
                    secret = await secrets.rotate_client_secret(
                        connection, keyring, application.id, keeps_links=keeps_links
                    )
                case "webhook":
                    secret = await secrets.rotate_webhook_secret(connection, keyring, application.id)
                case _:
                    secret = await secrets.switch_signature(connection, keyring, application, wanted)  # type: ignore[arg-type]
        if secret is None:
            return self._view.redirect(application, "/secrets", Flash(f"{_SECRETS[kind][0]} is off."))
        return self._show_secret(request, application, kind, secret)

    async def _post_service_auth(self, request: web.Request, application: Application) -> web.StreamResponse:
        wanted = next((each for each in get_args(ServiceAuthChange) if each == text_of(request, "wanted")), None)
        if wanted is None:
            raise web.HTTPBadRequest
        text = text_of(request, "value").strip() if wanted in ("on", "rotate") else ""
        try:
            own_value = rules.read_service_auth(text) if text else None
            async with self._context.database.transaction() as connection:
                value = await secrets.switch_service_auth(
                    connection, self._context.keyring, application.id, wanted, own_value
                )
        except (InvalidSetting, secrets.ServiceAuthRefused) as error:
            return self._view.page(
                request, "secrets.html", application, status=422, error=f"Nothing was changed: {error}."
            )
        if value is None or own_value is not None:
            return self._view.redirect(application, "/secrets", Flash(_SERVICE_AUTH_DONE[wanted]))
        kind = "service_auth" if application.service_auth is None else "next_service_auth"
        return self._show_secret(request, application, kind, value)

    def _show_secret(self, request: web.Request, application: Application, kind: str, secret: str) -> web.Response:
        """Render the only page that shows the secret."""
        title, words = _SECRETS[kind]
        return self._context.renderer.page(
            request,
            "secret.html",
            title=f"The new {title[0].lower()}{title[1:]}"
            if kind in ("client", "webhook", "signature")
            else "The new X-Service-Auth value",
            words=f"{words} Copy it now: it is shown here and never again.",
            secrets=[(title, secret)],
            back=f"{ROOT}/applications/{application.id}/secrets",
        )
