"""Applications: the list, one application with what is checked about it, making and deleting one."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from api.dashboard import traffic
from api.dashboard.access import find_application, load_application
from api.dashboard.application_view import ApplicationView, optional, texts
from api.dashboard.browser import ROOT
from api.dashboard.context import DashboardContext
from api.dashboard.live import into, stream
from api.dashboard.middlewares import text_of
from api.dashboard.rendering import Flash
from api.dashboard.renderings import LivePart
from api.dashboard.visitors import visitor_of
from api.dashboard.words import sentence
from api.errors import FORBIDDEN, Refused
from api.pages.samples import LANGUAGES, Call, write_samples
from api.rules import application_settings as rules
from api.services import application_changes
from api.services import ownership_hints as hints
from api.services.applications import NewSettings
from api.services.removals import Removals
from common.accounts import Permission
from common.db import (
    application_removal,
    audit,
    domain_totals,
    setup_progress,
    target_sightings,
    users,
    webhook_endpoints,
)
from common.db.applications import Application, list_visible
from common.db.target_contests import CnameTargetTaken
from common.dns import Outcome
from common.endpoint_health import disables_at
from common.enrolment.origins import Unreachable

_LISTED = 50
_EXAMPLE_URL = "https://app.acme.example/shop"
_CHECK_SECONDS = 6.0


class ApplicationPages:
    """One for each process."""

    def __init__(self, context: DashboardContext, removals: Removals) -> None:
        self._context = context
        self._removals = removals
        self._view = ApplicationView(context)

    async def list_all(self, request: web.Request) -> web.StreamResponse:
        """List the applications that the visitor may see, in parts."""
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
        """Show the form of a new application."""
        return await self._new_page(request, {}, {})

    async def post_new(self, request: web.Request) -> web.StreamResponse:
        """Make an application."""
        organisation_id = text_of(request, "organisation") or None
        visitor_of(request).require(Permission.OWN, organisation_id)
        values, errors = self._view.read(
            request,
            {
                "name": rules.read_name,
                "cname_target": self._view.read_cname_target,
                "application_url": optional(self._view.read_application_url),
                "webhook_url": optional(self._view.read_webhook_url),
                "error_status": lambda text: "http" if text == "on" else "502",
                "is_test": lambda text: text == "on",
            },
        )
        if errors:
            return await self._new_page(request, dict(texts(request)), errors)
        settings: NewSettings = values  # type: ignore[assignment]
        try:
            made = await self._context.applications.create(visitor_of(request), organisation_id, settings)
        except CnameTargetTaken as error:
            return await self._new_page(
                request, dict(texts(request)), {"cname_target": sentence(hints.taken_target(error, None))}
            )
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
            raise Refused(FORBIDDEN)
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
            targets=self._view.targets(),
        )

    # One application ------------------------------------------------------------------------------------------

    async def get(self, request: web.Request) -> web.StreamResponse:
        """Show an application."""
        application = await find_application(self._context, request)
        async with self._context.database.connection() as connection:
            totals = await domain_totals.count_domains(connection, [application.id])
            endpoint = await webhook_endpoints.get_endpoint(connection, application.id)
            entries = await audit.list_entries(connection, before=None, limit=6, application_id=application.id)
            shown = await traffic.show(
                connection, application.id, "", request.query.get("period"), self._context.clock.now()
            )
        return self._view.page(
            request,
            "application.html",
            application,
            totals=totals,
            traffic=shown,
            endpoint=endpoint,
            disables_at=disables_at(endpoint),
            entries=entries,
            samples=self._samples(application),
        )

    def _samples(self, application: Application) -> list[tuple[str, str, str]]:
        """Return programs that get a token and power a domain with the application's id, by language."""
        base_url = self._context.settings.base_url
        secret = {"applicationId": application.id, "secret": "your client secret"}
        wanted = {"domain": "shop.customer.example", "applicationUrl": application.application_url or _EXAMPLE_URL}
        token = write_samples(Call("POST", f"{base_url}/token", secret, has_token=False, has_application=False))
        power = write_samples(Call("POST", f"{base_url}/power", wanted, application_id=application.id))
        return [(name, token[language], power[language]) for language, name in LANGUAGES.items()]

    async def get_checks(self, request: web.Request) -> web.StreamResponse:
        """Render where the cname targets lead now, and whether the origin answers: a fragment."""
        text = await self._checks_html(await find_application(self._context, request))
        return web.Response(text=text, content_type="text/html")

    async def get_live(self, request: web.Request) -> web.StreamResponse:
        """How many domains there are, and the checks, which the page asks for at first."""

        async def parts() -> tuple[LivePart, ...]:
            application = await find_application(self._context, request)
            given, tenant = (application.id,), application.organisation_id or ""
            every = self._context.live
            return (
                LivePart(self._totals, given, tenant, every.totals),
                LivePart(self._checks, given, tenant, every.application_checks, after=every.application_checks),
            )

        return await stream(self._context, request, parts)

    async def _totals(self, application_id: str) -> str:
        async with self._context.database.connection() as connection:
            found = await domain_totals.count_domains(connection, [application_id])
        of = f"application={application_id}&"
        return into("totals", self._context.renderer.fragment("_totals.html", totals=found, of=of))

    async def _checks(self, application_id: str) -> str:
        return into("checks", await self._checks_html(await load_application(self._context, application_id)))

    async def _checks_html(self, application: Application) -> str:
        wanted = [("Cname target", application.cname_target)]
        if application.secure_cname_target:
            wanted.append(("Cname target of Secure", application.secure_cname_target))
        async with self._context.database.connection() as connection:
            progress = await setup_progress.find_setup_progress(connection, application.id)
            seen = {each.target: each for each in await target_sightings.find(connection, application.id)}
        checks = [self._check_target(label, target) for label, target in wanted]
        *targets, origin = await asyncio.gather(*checks, self._check_origin(application))
        return self._context.renderer.fragment(
            "_checks.html",
            targets=targets,
            seen=seen,
            progress=progress,
            origin=origin,
            application=application,
            places=self._view.targets(),
        )

    async def _check_target(self, label: str, target: str) -> dict[str, Any]:
        shown: dict[str, Any] = {"label": label, "target": target, "found": (), "state": "unknown"}
        try:
            async with (
                asyncio.timeout(_CHECK_SECONDS),
                self._context.enrolment.resolver.open_pass() as questions,
            ):
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

    # Deleting -------------------------------------------------------------------------------------------------

    async def get_delete(self, request: web.Request) -> web.StreamResponse:
        """Show what the deletion of an application would end."""
        return await self._delete_page(request, await find_application(self._context, request, Permission.OWN))

    async def post_delete(self, request: web.Request) -> web.StreamResponse:
        """Begin the deletion of an application whose name was typed."""
        application = await find_application(self._context, request, Permission.OWN)
        if text_of(request, "typed").strip() != application.name:
            error = "That is not the application's name: nothing was deleted."
            return await self._delete_page(request, application, error=error)
        async with self._context.database.transaction() as connection:
            await application_changes.begin_removal(connection, application.id)
        self._removals.begin(application.id)
        flash = Flash(f"{application.name} is being deleted. Its tokens work no more; its domains go now.", "warn")
        return self._context.renderer.redirect(f"{ROOT}/applications", flash)

    async def _delete_page(
        self, request: web.Request, application: Application, *, error: str | None = None
    ) -> web.StreamResponse:
        async with self._context.database.connection() as connection:
            extent = await application_removal.measure(connection, application.id)
        status = 422 if error else 200
        return self._view.page(
            request,
            "application_delete.html",
            application,
            status=status,
            extent=extent,
            error=error,
        )
