"""Settings of an application, in sections, and its error page."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, get_args

from aiohttp import web

from api.dashboard.access import find_application
from api.dashboard.application_view import ApplicationView, one_of, optional, texts
from api.dashboard.context import DashboardContext
from api.dashboard.domain_rules import COMPRESSION_CHOICES, HSTS_CHOICES
from api.dashboard.middlewares import text_of
from api.dashboard.rendering import Flash
from api.dashboard.visitors import visitor_of
from api.dashboard.words import sentence
from api.rules import application_settings as rules
from api.rules.application_settings import InvalidSetting
from api.rules.response_policy import Compression, Hsts, ReferrerPolicy, read_lines, read_policy
from api.services import application_changes
from api.services import ownership_hints as hints
from common.accounts import Permission
from common.db import error_pages, users
from common.db.applications import Application, ApplicationChanges
from common.db.target_contests import CnameTargetTaken, TargetContest

_TIERS = ("basic", "premium", "enterprise")


class SettingsPages:
    """One for each process."""

    def __init__(self, context: DashboardContext) -> None:
        self._context = context
        self._view = ApplicationView(context)

    async def get(self, request: web.Request) -> web.StreamResponse:
        """Show the settings."""
        application = await find_application(self._context, request, Permission.CHANGE)
        return await self._settings_page(request, application, _values(application), {})

    async def post(self, request: web.Request) -> web.StreamResponse:
        """Store a section of the settings."""
        application = await find_application(self._context, request, Permission.CHANGE)
        sections: dict[str, dict[str, Callable[[str], Any]]] = {
            "general": {
                "name": rules.read_name,
                "cname_target": self._view.read_cname_target,
                "secure_cname_target": optional(self._view.read_cname_target),
                "application_url": optional(self._view.read_application_url),
                "root_path_access": lambda text: rules.read_root_paths(text.split()),
                "webhook_url": optional(self._view.read_webhook_url),
            },
            "origin": {
                "send_host": one_of("origin", "customer"),
                "origin_server_name": optional(rules.read_server_name),
                "origin_verify": lambda text: text == "on",
                "buffer_uploads_bytes": optional(rules.read_upload_size),
                "metadata_fields": lambda text: rules.read_metadata_fields(text.split()),
            },
            "api": {"error_status": lambda text: "http" if text == "on" else "502"},
            "responses": {
                "hsts": one_of("", *dict(HSTS_CHOICES)),
                "hsts_subdomains": lambda text: text == "on",
                "customers_agree": lambda text: text == "on",
                "nosniff": lambda text: text == "on",
                "referrer_policy": one_of("", *get_args(ReferrerPolicy)),
                "fields": read_lines,
                "compression": lambda text: one_of(*get_args(Compression))(text or "off"),  # of an earlier page
            },
            "visitors": {
                "http2": lambda text: text == "on",
                "minimum_tls": lambda text: "1.3" if text == "on" else "1.2",
            },
            "maintenance": {"maintenance": lambda text: text == "on"},
            "operator": {
                "tier": one_of(*_TIERS),
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
        values, errors = self._view.read(request, sections[section])
        if section == "responses" and not errors:
            values, errors = _read_responses(values, application)
        if not errors:
            changes: ApplicationChanges = values  # type: ignore[assignment]
            if changes.get("webhook_url", application.webhook_url) == application.webhook_url:
                changes.pop("webhook_url", None)  # setting it, even to what it is, begins the endpoint anew
            errors = await self._store(application, changes)
        if errors:
            return await self._settings_page(request, application, _values(application) | texts(request), errors)
        return self._view.redirect(application, "/settings", Flash("Saved. Edges follow within a moment."))

    async def _store(self, application: Application, changes: ApplicationChanges) -> dict[str, str]:
        """Store the changes; return what is wrong, by field."""
        organisation_id = changes.get("organisation_id")
        if organisation_id:
            async with self._context.database.connection() as connection:
                if await users.find_organisation(connection, organisation_id) is None:
                    return {"organisation_id": "There is no such organisation."}

        async def store(proven: Collection[TargetContest]) -> None:
            async with self._context.database.transaction() as connection:
                await application_changes.change(connection, application.id, proven=proven, **changes)

        try:
            await self._context.applications.target_claims.store(application, store)
        except CnameTargetTaken as error:
            is_secure = error.contests[0].target == changes.get("secure_cname_target")
            words = hints.taken_target(error, application.id)
            return {"secure_cname_target" if is_secure else "cname_target": sentence(words)}
        return {}

    async def _post_error_page(self, request: web.Request, application: Application) -> web.StreamResponse:
        html = text_of(request, "error_page").replace("\r\n", "\n")
        try:
            content = rules.read_error_page(html.encode()) if html.strip() else None
        except (InvalidSetting, UnicodeEncodeError) as error:
            errors = {"error_page": f"Not stored: {error}."}
            return await self._settings_page(request, application, _values(application), errors)
        async with self._context.database.transaction() as connection:
            await application_changes.set_error_page(connection, application.id, content)
        return self._view.redirect(application, "/settings", Flash("Saved. Edges follow within a moment."))

    async def _settings_page(
        self, request: web.Request, application: Application, values: dict[str, Any], errors: dict[str, str]
    ) -> web.StreamResponse:
        visitor = visitor_of(request)
        async with self._context.database.connection() as connection:
            page = await error_pages.get_error_page(connection, application.id)
            organisations = await users.list_organisations(connection, most=200) if visitor.is_operator else []
        return self._view.page(
            request,
            "settings.html",
            application,
            status=422 if errors else 200,
            values={"error_page": page or ""} | values,
            errors=errors,
            tiers=_TIERS,
            hsts_choices=[("", "Not sent"), *HSTS_CHOICES],
            compression_choices=COMPRESSION_CHOICES,
            referrer_choices=[("", "Not sent"), *((each, each) for each in get_args(ReferrerPolicy))],
            organisations=[("", "None: operators only"), *((each.id, each.name) for each in organisations)],
            targets=self._view.targets(),
        )


def _read_responses(values: dict[str, Any], application: Application) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the response policy of the form's fields as a change, and an error for each that is refused."""
    stored = application.response_policy or {}
    hsts = values["hsts"] and Hsts(
        int(values["hsts"]),
        values["hsts_subdomains"],
        bool(stored.get("hsts_preload")) and values["hsts_subdomains"],  # the API alone switches it on
        values["customers_agree"],
    )
    try:
        policy = read_policy(
            hsts or None,
            nosniff=values["nosniff"],
            referrer_policy=values["referrer_policy"] or None,
            fields=values["fields"],
            compression=values["compression"],
        )
    except InvalidSetting as error:
        name, _, words = str(error).partition(": ")
        return {}, {name: sentence(words[:1].upper() + words[1:])}
    return {"response_policy": policy}, {}


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
        "metadata_fields": " ".join(application.metadata_fields),
        "http2": "on" if application.http2 else "",
        "minimum_tls": "on" if application.minimum_tls == "1.3" else "",
        **_response_values(application.response_policy or {}),
        "error_status": "on" if application.error_status == "http" else "",
        "connect": "on" if application.connect else "",
        "maintenance": "on" if application.maintenance else "",
        "tier": application.tier,
        "organisation_id": application.organisation_id or "",
    }


def _response_values(policy: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of the form for what responses carry. `customers_agree` is given anew each time."""
    seconds = policy.get("hsts_seconds")
    return {
        "hsts": "" if seconds is None else str(seconds),
        "hsts_subdomains": "on" if policy.get("hsts_subdomains") else "",
        "customers_agree": "",
        "nosniff": "on" if policy.get("nosniff") else "",
        "compression": policy.get("compression", "off"),
        "referrer_policy": policy.get("referrer_policy", ""),
        "fields": "\n".join(f"{name}: {value}" for name, value in policy.get("fields", {}).items()),
    }
