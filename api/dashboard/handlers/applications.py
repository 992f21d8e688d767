"""Applications: the list, one application with what is checked about it, settings, secrets, making and deleting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, get_args

from aiohttp import web

from api.dashboard import traffic
from api.dashboard.access import find_application
from api.dashboard.browser import ROOT
from api.dashboard.context import DashboardContext
from api.dashboard.middlewares import FORM, text_of
from api.dashboard.rendering import Flash
from api.dashboard.visitors import visitor_of
from api.services.applications import NewSettings
from api.services.removals import Removals
from common import application_secrets as secrets
from common import application_settings as rules
from common.accounts import Permission
from common.addresses import AddressPolicy
from common.application_settings import InvalidSetting
from common.applications import PREVIOUS_SECRET_LIFETIME
from common.db import application_removal, audit, domain_list, error_pages, users, webhook_endpoints
from common.db.applications import (
    Application,
    ApplicationChanges,
    CnameTargetTaken,
    list_visible,
    update_application,
)
from common.dns import Outcome
from common.endpoint_health import disables_at
from common.origin_probe import Unreachable
from common.ownership import OwnNames

_LISTED = 50
_CHECK_SECONDS = 6.0
_TIERS = ("basic", "premium", "enterprise")
_SECRETS = {
    "client": ("Client secret", "Signs tokens for the API. The one before works for another 24 hours."),
    "webhook": ("Webhook secret", "Verifies our webhooks. The one before signs beside it for another 24 hours."),
    "service_auth": ("X-Service-Auth", "Every request that we forward to your origin carries this value from now on."),
    "next_service_auth": (
        "X-Service-Auth",
        "Let your origin accept this value beside the one so far. Edges send it once you finish the rotation.",
    ),
    "signature": ("Signature key", "Signs every request that we forward. The one before signs beside it for a while."),
}

_SERVICE_AUTH_DONE: Mapping[secrets.ServiceAuthChange, str] = {
    "on": "Edges send your value of X-Service-Auth from now on.",
    "off": "Edges send no X-Service-Auth.",
    "rotate": "Your next value is stored. Edges send it once you finish the rotation.",
    "finish": "Edges send the new value of X-Service-Auth within a moment. Your origin can refuse the one before then.",
    "cancel": "The next value is forgotten; edges go on with the one so far.",
}


class ApplicationHandlers:
    """One a process."""

    def __init__(self, context: DashboardContext, removals: Removals) -> None:
        self._context = context
        self._removals = removals

    async def list_all(self, request: web.Request) -> web.StreamResponse:
        visitor, text = visitor_of(request), request.query.get("text", "").strip().lower()[:100]
        organisations = visitor.visible_organisation_ids
        after = (request.query.get("after", ""), request.query.get("id", ""))
        async with self._context.database.connection() as connection:
            found = await list_visible(connection, organisations, text=text, after=after, most=_LISTED)
        last = found[-1] if len(found) == _LISTED else None
        return self._context.renderer.page(
            request, "applications.html", applications=found, text=text, last=last, is_first=after == ("", "")
        )

    # Making ---------------------------------------------------------------------------------------------------

    async def get_new(self, request: web.Request) -> web.StreamResponse:
        return await self._new_page(request, {}, {})

    async def post_new(self, request: web.Request) -> web.StreamResponse:
        organisation_id = text_of(request, "organisation") or None
        visitor_of(request).require(Permission.OWN, organisation_id)
        values, errors = self._read(
            request,
            {
                "name": rules.read_name,
                "cname_target": self._cname_target,
                "application_url": _optional(self._application_url),
                "webhook_url": _optional(self._webhook_url),
            },
        )
        if errors:
            return await self._new_page(request, dict(_texts(request)), errors)
        settings: NewSettings = values  # type: ignore[assignment]
        try:
            made = await self._context.applications.create(visitor_of(request), organisation_id, settings)
        except CnameTargetTaken as error:
            return await self._new_page(request, dict(_texts(request)), {"cname_target": f"{error}."})
        shown = [("Client secret", made.client_secret), ("Webhook secret", made.webhook_secret)]
        return self._context.renderer.page(
            request,
            "secret.html",
            title=f"{values['name']} is made",
            words="Copy both secrets now. They are shown here and never again; you can make new ones at any time.",
            secrets=[("Application id", made.id), *shown],
            back=f"{ROOT}/applications/{made.id}",
        )

    async def _new_page(
        self, request: web.Request, values: dict[str, str], errors: dict[str, str]
    ) -> web.StreamResponse:
        visitor = visitor_of(request)
        if not visitor.owns_any:
            raise web.HTTPForbidden
        if visitor.is_operator:
            async with self._context.database.connection() as connection:
                organisations = await users.list_organisations(connection, most=200)
            choices = [("", "None: operators only"), *((each.id, each.name) for each in organisations)]
        else:
            owned = [each.organisation for each in visitor.memberships if each.role == "owner"]
            choices = [(each.id, each.name) for each in owned]
        return self._context.renderer.page(
            request,
            "application_new.html",
            status=422 if errors else 200,
            values=values,
            errors=errors,
            organisations=choices,
            targets=self._targets(),
        )

    # One application ------------------------------------------------------------------------------------------

    async def get(self, request: web.Request) -> web.StreamResponse:
        application = await find_application(self._context, request)
        async with self._context.database.connection() as connection:
            totals = await domain_list.count_domains(connection, [application.id])
            endpoint = await webhook_endpoints.get_endpoint(connection, application.id)
            entries = await audit.list_entries(connection, before=None, limit=6, application_id=application.id)
            shown = await traffic.show(
                connection, application.id, "", request.query.get("period"), self._context.clock.now()
            )
        return self._page(
            request,
            "application.html",
            application,
            totals=totals,
            traffic=shown,
            endpoint=endpoint,
            disables_at=disables_at(endpoint),
            entries=entries,
            base_url=self._context.settings.base_url,
        )

    async def get_checks(self, request: web.Request) -> web.StreamResponse:
        """A fragment: where the cname targets lead now, and whether the origin answers."""
        application = await find_application(self._context, request)
        wanted = [("Cname target", application.cname_target)]
        if application.secure_cname_target:
            wanted.append(("Cname target of Secure", application.secure_cname_target))
        checks = [self._check_target(label, target) for label, target in wanted]
        *targets, origin = await asyncio.gather(*checks, self._check_origin(application))
        text = self._context.renderer.fragment(
            request, "_checks.html", targets=targets, origin=origin, application=application, places=self._targets()
        )
        return web.Response(text=text, content_type="text/html")

    async def _check_target(self, label: str, target: str) -> dict[str, Any]:
        shown: dict[str, Any] = {"label": label, "target": target, "found": (), "state": "unknown"}
        try:
            async with asyncio.timeout(_CHECK_SECONDS), self._context.enrolment.resolver.open_pass() as questions:
                chain = await questions.follow(target, self._context.enrolment.service_targets.targets)
        except (TimeoutError, OSError):
            return shown
        state = "ok" if chain.end is Outcome.RECORDS else "wrong" if chain.end.is_known else "unknown"
        return shown | {"found": tuple(chain.names), "state": state}

    async def _check_origin(self, application: Application) -> dict[str, Any] | None:
        if not application.application_url:
            return None
        shown = {"url": application.application_url, "state": "ok", "words": ""}
        try:
            await self._context.probe_origin(application.application_url, application.cname_target, application)
        except Unreachable as error:
            return shown | {"state": "wrong", "words": str(error)}
        return shown

    # Settings -------------------------------------------------------------------------------------------------

    async def get_settings(self, request: web.Request) -> web.StreamResponse:
        application = await find_application(self._context, request, Permission.CHANGE)
        return await self._settings_page(request, application, _values(application), {})

    async def post_settings(self, request: web.Request) -> web.StreamResponse:
        application = await find_application(self._context, request, Permission.CHANGE)
        sections: dict[str, dict[str, Callable[[str], Any]]] = {
            "general": {
                "name": rules.read_name,
                "cname_target": self._cname_target,
                "secure_cname_target": _optional(self._cname_target),
                "application_url": _optional(self._application_url),
                "root_path_access": lambda text: rules.read_root_paths(text.split()),
                "webhook_url": _optional(self._webhook_url),
            },
            "origin": {
                "send_host": _one_of("origin", "customer"),
                "origin_server_name": _optional(rules.read_server_name),
                "origin_verify": lambda text: text == "on",
                "buffer_uploads_bytes": _optional(rules.read_upload_size),
            },
            "maintenance": {"maintenance": lambda text: text == "on"},
            "operator": {
                "tier": _one_of(*_TIERS),
                "organisation_id": lambda text: text or None,
                "connect": lambda text: text == "on",
            },
        }
        section = text_of(request, "section")
        if section == "error_page":
            return await self._post_error_page(request, application)
        if section not in sections:
            raise web.HTTPBadRequest
        if section == "operator":
            visitor_of(request).require_operator()
        values, errors = self._read(request, sections[section])
        if not errors:
            changes: ApplicationChanges = values  # type: ignore[assignment]
            if changes.get("webhook_url", application.webhook_url) == application.webhook_url:
                changes.pop("webhook_url", None)  # setting it, even to what it is, begins the endpoint anew
            errors = await self._store(application, changes)
        if errors:
            return await self._settings_page(request, application, _values(application) | _texts(request), errors)
        return self._redirect(application, "/settings", Flash("Saved. Edges follow within a moment."))

    async def _store(self, application: Application, changes: ApplicationChanges) -> dict[str, str]:
        """Returns what is wrong, by field."""
        try:
            async with self._context.database.transaction() as connection:
                organisation_id = changes.get("organisation_id")
                if organisation_id and await users.find_organisation(connection, organisation_id) is None:
                    return {"organisation_id": "There is no such organisation."}
                await update_application(connection, application.id, **changes)
        except CnameTargetTaken as error:
            is_secure = changes.get("secure_cname_target") != application.secure_cname_target
            return {"secure_cname_target" if is_secure else "cname_target": f"{error}."}
        return {}

    async def _post_error_page(self, request: web.Request, application: Application) -> web.StreamResponse:
        html = text_of(request, "error_page").replace("\r\n", "\n")
        try:
            content = rules.read_error_page(html.encode()) if html.strip() else None
        except (InvalidSetting, UnicodeEncodeError) as error:
            errors = {"error_page": f"Not stored: {error}."}
            return await self._settings_page(request, application, _values(application), errors)
        async with self._context.database.transaction() as connection:
            if content is None:
                await error_pages.remove_error_page(connection, application.id)
            else:
                await error_pages.put_error_page(connection, application.id, content)
        return self._redirect(application, "/settings", Flash("Saved. Edges follow within a moment."))

    async def _settings_page(
        self, request: web.Request, application: Application, values: dict[str, Any], errors: dict[str, str]
    ) -> web.StreamResponse:
        visitor = visitor_of(request)
        async with self._context.database.connection() as connection:
            page = await error_pages.get_error_page(connection, application.id)
            organisations = await users.list_organisations(connection, most=200) if visitor.is_operator else []
        return self._page(
            request,
            "settings.html",
            application,
            status=422 if errors else 200,
            values={"error_page": page or ""} | values,
            errors=errors,
            tiers=_TIERS,
            organisations=[("", "None: operators only"), *((each.id, each.name) for each in organisations)],
            targets=self._targets(),
        )

    # Secrets --------------------------------------------------------------------------------------------------

    async def get_secrets(self, request: web.Request) -> web.StreamResponse:
        application = await find_application(self._context, request, Permission.CHANGE)
        return self._page(request, "secrets.html", application, error=None)

    async def post_secrets(self, request: web.Request) -> web.StreamResponse:
        """Make or end a secret; the answer shows a new one, this once."""
        application = await find_application(self._context, request, Permission.CHANGE)
        kind, wanted = text_of(request, "kind"), text_of(request, "wanted")
        if kind == "service_auth":
            return await self._post_service_auth(request, application)
        if kind not in ("client", "webhook", "signature") or wanted not in ("on", "off", "rotate"):
            raise web.HTTPBadRequest
        keyring = self._context.keyring
        async with self._context.database.transaction() as connection:
            match kind:
                case "client":
                    secret = await secrets.rotate_client_secret(connection, keyring, application.id)
                case "webhook":
                    secret = await secrets.rotate_webhook_secret(connection, keyring, application.id)
                case _:
                    secret = await secrets.switch_signature(connection, keyring, application, wanted)  # type: ignore[arg-type]
        if secret is None:
            return self._redirect(application, "/secrets", Flash(f"{_SECRETS[kind][0]} is off."))
        return self._show_secret(request, application, kind, secret)

    async def _post_service_auth(self, request: web.Request, application: Application) -> web.StreamResponse:
        wanted = next(
            (each for each in get_args(secrets.ServiceAuthChange) if each == text_of(request, "wanted")), None
        )
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
            return self._page(request, "secrets.html", application, status=422, error=f"Nothing was changed: {error}.")
        if value is None or own_value is not None:
            return self._redirect(application, "/secrets", Flash(_SERVICE_AUTH_DONE[wanted]))
        kind = "service_auth" if application.service_auth is None else "next_service_auth"
        return self._show_secret(request, application, kind, value)

    def _show_secret(self, request: web.Request, application: Application, kind: str, secret: str) -> web.Response:
        """The only page that has it."""
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

    # Deleting -------------------------------------------------------------------------------------------------

    async def get_delete(self, request: web.Request) -> web.StreamResponse:
        return await self._delete_page(request, await find_application(self._context, request, Permission.OWN))

    async def post_delete(self, request: web.Request) -> web.StreamResponse:
        application = await find_application(self._context, request, Permission.OWN)
        if text_of(request, "typed").strip() != application.name:
            error = "That is not the application's name: nothing was deleted."
            return await self._delete_page(request, application, error=error)
        async with self._context.database.transaction() as connection:
            await application_removal.begin(connection, application.id)
        self._removals.begin(application.id)
        flash = Flash(f"{application.name} is being deleted. Its tokens work no more; its domains go now.", "warn")
        return self._context.renderer.redirect(f"{ROOT}/applications", flash)

    async def _delete_page(
        self, request: web.Request, application: Application, *, error: str | None = None
    ) -> web.StreamResponse:
        async with self._context.database.connection() as connection:
            extent = await application_removal.measure(connection, application.id)
        status = 422 if error else 200
        return self._page(
            request,
            "application_delete.html",
            application,
            status=status,
            extent=extent,
            error=error,
            running=self._removals.is_running(application.id),
        )

    # Parts ----------------------------------------------------------------------------------------------------

    def _page(
        self, request: web.Request, template: str, application: Application, *, status: int = 200, **values: Any
    ) -> web.Response:
        visitor = visitor_of(request)
        return self._context.renderer.page(
            request,
            template,
            status=status,
            application=application,
            may_change=visitor.may_change(application),
            may_own=visitor.may_own(application),
            overlap_hours=int(PREVIOUS_SECRET_LIFETIME.total_seconds() // 3600),
            **values,
        )

    def _redirect(self, application: Application, path: str, flash: Flash) -> web.Response:
        return self._context.renderer.redirect(f"{ROOT}/applications/{application.id}{path}", flash)

    def _targets(self) -> dict[str, str]:
        return {"power": self._context.settings.power_target, "secure": self._context.settings.ssl_target}

    def _cname_target(self, text: str) -> str:
        return rules.read_cname_target(text.strip(), OwnNames.of(self._context.settings))

    def _application_url(self, text: str) -> str:
        policy: AddressPolicy = self._context.enrolment.policy
        return rules.read_application_url(text, policy)

    def _webhook_url(self, text: str) -> str:
        policy: AddressPolicy = self._context.enrolment.policy
        return rules.read_webhook_url(text, policy)

    def _read(
        self, request: web.Request, fields: dict[str, Callable[[str], Any]]
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """What the fields say, and what is wrong with them."""
        values, errors = {}, {}
        for name, read in fields.items():
            try:
                values[name] = read(text_of(request, name).strip())
            except InvalidSetting as error:
                errors[name] = f"{str(error)[0].upper()}{str(error)[1:]}."
        return values, errors


def _optional(read: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda text: read(text) if text else None


def _one_of(*choices: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in choices:
            raise InvalidSetting(f"expected one of {', '.join(choices)}")
        return text

    return read


def _texts(request: web.Request) -> dict[str, Any]:
    return {name: value for name, value in request[FORM].items() if isinstance(value, str) and name != "csrf"}


def _values(application: Application) -> dict[str, Any]:
    return {
        "name": application.name,
        "cname_target": application.cname_target,
        "secure_cname_target": application.secure_cname_target or "",
        "application_url": application.application_url or "",
        "root_path_access": "\n".join(application.root_path_access),
        "webhook_url": application.webhook_url or "",
        "send_host": application.send_host,
        "origin_server_name": application.origin_server_name or "",
        "origin_verify": "on" if application.origin_verify else "",
        "buffer_uploads_bytes": rules.write_upload_size(application.buffer_uploads_bytes),
        "connect": "on" if application.connect else "",
        "maintenance": "on" if application.maintenance else "",
        "tier": application.tier,
        "organisation_id": application.organisation_id or "",
    }
