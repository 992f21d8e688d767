"""Domains of all products: the list, adding one, one enrolled domain, and one monitored name."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from aiohttp import web
from cryptography import x509
from multidict import MultiMapping
from pydantic import ValidationError

from api.dashboard import timeline, traffic
from api.dashboard.access import find_application, name_of
from api.dashboard.application_view import ApplicationView
from api.dashboard.browser import ROOT
from api.dashboard.context import DashboardContext
from api.dashboard.live import stream
from api.dashboard.middlewares import text_of
from api.dashboard.rendering import Flash
from api.dashboard.visitors import visitor_of
from api.errors import FORBIDDEN, INVALID_BODY, NOT_FOUND, Refused
from api.schemas.bodies import Strict, describe, parse_product_domain
from api.schemas.diagnosis import rendered
from api.schemas.evidence import last_check
from api.schemas.list_cursor import from_text, to_text
from api.schemas.monitor_answers import dns_records
from api.schemas.monitor_bodies import UnwatchBody, WatchBody
from api.schemas.power import PowerBody, PowerChange
from api.schemas.secure import SecureBody, SecureChange, SecureRemoval
from api.services.next_step import next_step
from api.services.notices import Notice
from common.accounts import Permission
from common.db import applications, audit, certificates, domain_list, domains, events, orders
from common.db.applications import Application
from common.db.certificates import InService
from common.db.domain_list import PRODUCTS, SORTS, STATUSES, ListKey, Sort, Wanted
from common.db.monitored_domains import MonitoredKey
from common.names import DomainName

_LISTED = 50
_LISTED_APPLICATIONS = 200
_LIVE_SECONDS = 1.0
_NEW_FIELDS = ("domain", "product", "application_url", "redirect_to", "records")


class DomainPages:
    """One a process."""

    def __init__(self, context: DashboardContext) -> None:
        self._context = context
        self._view = ApplicationView(context)

    # The list -------------------------------------------------------------------------------------------------

    async def list_all(self, request: web.Request) -> web.StreamResponse:
        visitor, query = visitor_of(request), request.query
        organisations = visitor.visible_organisation_ids
        async with self._context.database.connection() as connection:
            choices = await applications.list_visible(connection, organisations, most=_LISTED_APPLICATIONS)
            ids = None if organisations is None else await applications.list_visible_ids(connection, organisations)
            chosen = query.get("application") or None
            if chosen is not None:
                application = await applications.get_application(connection, chosen)
                if application is None:
                    raise web.HTTPNotFound
                visitor.require(Permission.VIEW, application.organisation_id)
                ids = [application.id]
                if application.id not in {each.id for each in choices}:
                    choices = [application, *choices]
            wanted = _wanted(query, ids)
            await domain_list.settle_lapsed(connection)
            part = await domain_list.list_part(connection, wanted)
        following = to_text(part.next, wanted.sort)
        filters = {name: query.get(name, "") for name in ("text", "product", "status", "application")}
        return self._context.renderer.page(
            request,
            "domains.html",
            rows=part.rows,
            wanted=wanted,
            filters=filters,
            applications=choices,
            chosen=chosen,
            with_dates=True,
            is_filtered=any(filters.values()),
            next_url=_page_url(filters, wanted, {"after": following}) if following else "",
            first_url=_page_url(filters, wanted, {}) if wanted.after else "",
            sort_url=lambda sort: _page_url(filters, wanted, {"sort": sort}),
            addable=next((each for each in choices if visitor.may_change(each)), None),
        )

    # Adding ---------------------------------------------------------------------------------------------------

    async def get_new(self, request: web.Request) -> web.StreamResponse:
        application = await find_application(self._context, request, Permission.CHANGE)
        values = {name: request.query.get(name, "") for name in _NEW_FIELDS}
        return self._new_page(request, application, values, None)

    async def post_new(self, request: web.Request) -> web.StreamResponse:
        """The very checks of POST /power, /ssl and /monitor/domains."""
        application = await find_application(self._context, request, Permission.CHANGE)
        values = {name: text_of(request, name).strip() for name in _NEW_FIELDS}
        try:
            page, notices = await self._add(application, values)
        except Refused as error:
            return self._new_page(request, application, values, error)
        words = "Added." if not notices else f"Added. {notices[0].hint}"
        return self._context.renderer.redirect(page, Flash(words, "good" if not notices else "warn"))

    async def _add(self, application: Application, values: Mapping[str, str]) -> tuple[str, list[Notice]]:
        """Where the domain's page is, and what visitors do not meet yet. Raises: `Refused`."""
        base = f"{ROOT}/applications/{application.id}"
        given: dict[str, Any] = {"domain": values["domain"]}
        match values["product"]:
            case "power":
                body = _parse(PowerBody, given | {"applicationUrl": values["application_url"]})
                noted = await self._context.power.power(application, body)
            case "secure":
                for name, field in (("applicationUrl", "application_url"), ("redirectTo", "redirect_to")):
                    if values[field]:
                        given[name] = values[field]
                noted = await self._context.secure.secure(application, _parse(SecureBody, given))
            case "monitor":
                watch = _parse(WatchBody, _split(values["domain"]) | {"dnsRecords": _records(values["records"])})
                await self._context.monitor.watch(application, watch)
                name = f"{watch.subdomain}.{watch.domain}" if watch.subdomain else watch.domain
                return f"{base}/monitored/{name}", []
            case _:
                raise web.HTTPBadRequest
        return f"{base}/domains/{_name(values['domain']).text}", noted

    def _new_page(
        self, request: web.Request, application: Application, values: Mapping[str, str], error: Refused | None
    ) -> web.Response:
        return self._view.page(
            request,
            "domain_new.html",
            application,
            status=422 if error else 200,
            values=values,
            error=error,
            servers=[str(each) for each in self._context.settings.service_servers],
        )

    # One domain -----------------------------------------------------------------------------------------------

    async def get(self, request: web.Request) -> web.StreamResponse:
        application = await find_application(self._context, request)
        name = name_of(request)
        async with self._context.database.connection() as connection:
            held = await self._held(connection, application, name)
            # Events carry the registrable name.
            found = await events.list_events(connection, application.id, before=None, limit=50, domain=name.registrable)
            entries = await audit.list_entries(
                connection, before=None, limit=8, application_id=application.id, subject=name.text
            )
            others = [application.organisation_id] if application.organisation_id else None  # operators: any
            targets = await applications.list_visible(connection, others, most=_LISTED_APPLICATIONS)
            shown = await traffic.show(
                connection, application.id, name.text, request.query.get("period"), self._context.clock.now()
            )
        own = [each for each in found if (each.subdomain or "") == (name.subdomain or "")][:8]
        return self._view.page(
            request,
            "domain.html",
            application,
            name=name,
            held=held,
            traffic=shown,
            targets=[each for each in targets if each.id != application.id and not each.deleting_at],
            events=own,
            entries=entries,
            certificate_html=await self._certificate_html(request, application, name),
        )

    async def get_diagnosis(self, request: web.Request) -> web.StreamResponse:
        """A fragment: the diagnosis that ``GET /domains/:domain/diagnosis`` answers with."""
        application = await find_application(self._context, request)
        name = name_of(request)
        found = await self._context.diagnosis.diagnose(application, name)
        now = self._context.clock.now()
        step = next_step(found, now)
        text = self._context.renderer.fragment(
            request, "_diagnosis.html", step=step, facts=rendered(found, step, now), application=application
        )
        return web.Response(text=text, content_type="text/html")

    async def get_live(self, request: web.Request) -> web.StreamResponse:
        """The certificate's part of the page, and the status of each product, whenever they have changed."""
        await find_application(self._context, request)
        name = name_of(request)

        async def render() -> str:
            return await self._certificate_html(request, await find_application(self._context, request), name)

        return await stream(self._context, request, render, every=_LIVE_SECONDS)

    async def post(self, request: web.Request) -> web.StreamResponse:
        application = await find_application(self._context, request, Permission.CHANGE)
        name = name_of(request)
        url = f"{ROOT}/applications/{application.id}/domains/{name.text}"
        try:
            flash = await self._act(request, application, name)
        except Refused as error:
            if error.refusal in (FORBIDDEN, NOT_FOUND):
                raise
            words = (
                error.refusal.message.rstrip(".")
                + "."
                + (f" {error.hint[0].upper()}{error.hint[1:]}." if error.hint else "")
            )
            return self._context.renderer.redirect(url, Flash(words, "bad"))
        async with self._context.database.connection() as connection:
            is_left = any(each.application_id == application.id for each in await domains.find(connection, name.text))
        return self._context.renderer.redirect(
            url if is_left else f"{ROOT}/domains?application={application.id}", flash
        )

    async def _act(self, request: web.Request, application: Application, name: DomainName) -> Flash:
        """Raises: `Refused`."""
        context = self._context
        match text_of(request, "action"):
            case "renew":
                await context.domain_actions.renew(application, name)
                return Flash("The certificate is being renewed. The one so far serves until the new one is live.")
            case "recheck":
                await context.domain_actions.recheck(application, name)
                return Flash("A monitor checks the DNS again now.")
            case "power":
                change = _parse(PowerChange, {"domain": name.text, "applicationUrl": text_of(request, "url").strip()})
                noted = await context.power.update(application, change)
            case "secure":
                given = {"domain": name.text, "redirectTo": text_of(request, "redirect_to").strip()}
                if url := text_of(request, "url").strip():
                    given["applicationUrl"] = url
                _, noted = await context.secure.change(application, _parse(SecureChange, given))
            case "remove_power":
                self._require_typed(request, name)
                noted = await context.power.remove(application, name.text)
            case "remove_secure":
                self._require_typed(request, name)
                noted = await context.secure.remove(application, _parse(SecureRemoval, {"domain": name.text}))
            case "transfer":
                return await self._transfer(request, application, name)
            case "free":
                visitor_of(request).require_operator()
                self._require_typed(request, name)
                await context.domain_actions.free(visitor_of(request), application, name)
                return Flash(f"{name} is free, and no application is remembered as its holder.")
            case _:
                raise web.HTTPBadRequest
        return Flash("Done." if not noted else f"Done. {noted[0].hint}", "good" if not noted else "warn")

    async def _transfer(self, request: web.Request, application: Application, name: DomainName) -> Flash:
        """To an application of the same organisation, by an owner of it; operators move a name to any application.

        Raises: `Refused`.
        """
        visitor = visitor_of(request)
        visitor.require(Permission.OWN, application.organisation_id)
        self._require_typed(request, name)
        url = text_of(request, "url").strip() or None
        target = await self._context.domain_actions.transfer(
            application, name, text_of(request, "to").strip(), url, to_any=visitor.is_operator
        )
        return Flash(f"{name} is {target.name}'s now. Its certificate is being ordered.")

    def _require_typed(self, request: web.Request, name: DomainName) -> None:
        if text_of(request, "typed").strip().lower().rstrip(".") != name.text:
            raise web.HTTPBadRequest

    async def _held(self, connection: Any, application: Application, name: DomainName) -> list[domains.Domain]:
        """The application's own enrolments of the name. Raises: HTTPNotFound."""
        held = [each for each in await domains.find(connection, name.text) if each.application_id == application.id]
        if not held:
            raise web.HTTPNotFound
        return sorted(held, key=lambda each: each.product)

    async def _certificate_html(self, request: web.Request, application: Application, name: DomainName) -> str:
        async with self._context.database.connection() as connection:
            held = await self._held(connection, application, name)
            certificate = await certificates.describe(connection, name.text)
            order = await orders.describe(connection, name.text)
            chain = await certificates.chain_in_service(connection, name.text)
        now = self._context.clock.now()
        return self._context.renderer.fragment(
            request,
            "_certificate.html",
            held=held,
            certificate=certificate,
            order=order,
            steps=timeline.steps(certificate, order, now),
            details=await asyncio.to_thread(_details, chain) if chain else None,
            is_live=_is_live(certificate, now),
        )

    # A monitored name -----------------------------------------------------------------------------------------

    async def get_monitored(self, request: web.Request) -> web.StreamResponse:
        application = await find_application(self._context, request)
        name = name_of(request)
        key = MonitoredKey(application.id, name.registrable, name.subdomain or None)
        try:
            monitored = await self._context.monitor.find(key)
            check = last_check(key, await self._context.monitor.find_last_check(key))
        except Refused as error:
            raise web.HTTPNotFound from error
        async with self._context.database.connection() as connection:
            found = await events.list_events(connection, application.id, before=None, limit=50, domain=key.domain)
            entries = await audit.list_entries(
                connection, before=None, limit=8, application_id=application.id, subject=name.text
            )
        own = [each for each in found if (each.subdomain or None) == key.subdomain]
        missing = dns_records(monitored.records_missing or [])
        return self._view.page(
            request,
            "monitored.html",
            application,
            name=name,
            monitored=monitored,
            records=[(record, record not in missing) for record in dns_records(monitored.dns_records)],
            check=check,
            events=own[:20],
            entries=entries,
        )

    async def post_monitored(self, request: web.Request) -> web.StreamResponse:
        application = await find_application(self._context, request, Permission.CHANGE)
        name = name_of(request)
        if text_of(request, "action") != "remove":
            raise web.HTTPBadRequest
        self._require_typed(request, name)
        body = _parse(UnwatchBody, {"domain": name.registrable, "subdomain": name.subdomain or None})
        await self._context.monitor.unwatch(application, body)
        flash = Flash(f"{name} is checked no more.")
        return self._context.renderer.redirect(f"{ROOT}/domains?application={application.id}", flash)


def _wanted(query: MultiMapping[str], ids: list[str] | None) -> Wanted:
    """Unknown values are as good as none: the addresses of lists are kept and passed on."""
    product, status = query.get("product"), query.get("status")
    sort: Sort = next((each for each in SORTS if each == query.get("sort")), "name")
    return Wanted(
        ids,
        text=query.get("text", "").strip().lower().rstrip(".")[:253],
        product=next((each for each in PRODUCTS if each == product), None),
        status=next((each for each in STATUSES if each == status), None),
        sort=sort,
        after=_key(query, sort),
        limit=_LISTED,
    )


def _key(query: MultiMapping[str], sort: Sort) -> ListKey | None:
    try:
        return from_text(query["after"], sort) if "after" in query else None
    except ValueError:
        return None


def _page_url(filters: Mapping[str, str], wanted: Wanted, more: Mapping[str, str]) -> str:
    query = {"sort": wanted.sort, **filters, **more}
    return f"{ROOT}/domains?{urlencode({name: value for name, value in query.items() if value})}"


def _parse(schema: Any, given: Mapping[str, Any]) -> Any:
    """Raises: `Refused` in the words of the API."""
    assert issubclass(schema, Strict)
    try:
        return schema.model_validate({name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        raise Refused(INVALID_BODY, hint=describe(error)) from None


def _name(text: str) -> DomainName:
    return parse_product_domain(text)


def _split(text: str) -> dict[str, str | None]:
    """A whole name as the API takes it: the apex, and what stands before it."""
    name = _name(text)
    return {"domain": name.registrable, "subdomain": name.subdomain or None}


def _records(text: str) -> list[dict[str, Any]]:
    """One record a line: type, host, value, and for MX its priority before the value."""
    found: list[dict[str, Any]] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        record_type, _, rest = line.partition(" ")
        host, _, value = rest.strip().partition(" ")
        record: dict[str, Any] = {"type": record_type.upper(), "host": host, "value": value.strip(), "ttl": 300}
        if record["type"] == "MX":
            record["priority"], _, record["value"] = record["value"].partition(" ")
        found.append(record)
    return found


def _details(chain: str) -> dict[str, str]:
    leaf = x509.load_pem_x509_certificate(chain.encode())
    names = leaf.issuer.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    organisations = leaf.issuer.get_attributes_for_oid(x509.NameOID.ORGANIZATION_NAME)
    issuer = ", ".join(str(each.value) for each in [*names, *organisations]) or leaf.issuer.rfc4514_string()
    return {"issuer": issuer, "serial": f"{leaf.serial_number:x}"}


def _is_live(certificate: InService | None, now: datetime) -> bool:
    return certificate is not None and certificate.live_at is not None and certificate.not_after > now
