"""An enrolled domain: adding it, its page, and what is done with it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from aiohttp import web
from cryptography import x509

from api.answers.diagnosis import diagnosis_answer
from api.dashboard import domain_rules, timeline, traffic
from api.dashboard.access import find_application, load_application, name_of
from api.dashboard.application_view import ApplicationView, RefusedForm, parse_body, texts
from api.dashboard.browser import ROOT
from api.dashboard.context import DashboardContext
from api.dashboard.live import into, stream
from api.dashboard.middlewares import FORM, text_of
from api.dashboard.rendering import Flash
from api.dashboard.renderings import LivePart
from api.dashboard.visitors import visitor_of
from api.errors import FORBIDDEN, NOT_FOUND, Refused
from api.notices import Notice
from api.schemas.bodies import parse_product_domain
from api.schemas.monitor_bodies import WatchBody
from api.schemas.power import PowerBody, PowerChange
from api.schemas.preparation import PrepareBody
from api.schemas.secure import SecureBody, SecureChange, SecureRemoval
from api.services.next_step import next_step
from common.accounts import Permission
from common.db import (
    applications,
    audit,
    certificates,
    domains,
    events,
    orders,
    own_certificates,
    policies,
    status_links,
)
from common.db.applications import Application
from common.db.certificates import InService
from common.db.session import Connection
from common.enrolment.request import EnrolmentRequest
from common.names import DomainName

_LISTED_APPLICATIONS = 200
_ENTRIES = 8
_FIELDS_OF_NEW = {
    "domain": "domain",
    "applicationUrl": "application_url",
    "redirectTo": "redirect_to",
    "dnsRecords": "records",
    "powerRootPathAccess": "root_path_access",
}
_FIELDS = {
    "reason": "reason",
    "applicationUrl": "url",
    "redirectTo": "redirect_to",
    "powerRootPathAccess": "root_path_access",
    "metadata": "metadata",
    "visitors": "visitors",
    "responsePolicy": "responses",
}
_AWAITS_DNS = ("not_eligible", "nxdomain")
"""Why a domain is refused whose records are still to be set."""
_NEW_FIELDS = ("domain", "product", "prepare", "application_url", "redirect_to", "records", "root_path_access")


class DomainPages:
    """Pages of domains. One instance per process."""

    def __init__(self, context: DashboardContext) -> None:
        self._context = context
        self._view = ApplicationView(context)

    # Adding ---------------------------------------------------------------------------------------------------

    async def get_new(self, request: web.Request) -> web.StreamResponse:
        """Show the form of a new domain."""
        application = await find_application(self._context, request, Permission.CHANGE)
        values = {name: request.query.get(name, "") for name in _NEW_FIELDS}
        return self._new_page(request, application, values, RefusedForm())

    async def post_new(self, request: web.Request) -> web.StreamResponse:
        """Enrol or monitor a domain, by the very checks of POST /power, /ssl and /monitor/domains."""
        application = await find_application(self._context, request, Permission.CHANGE)
        values = {name: text_of(request, name).strip() for name in _NEW_FIELDS}
        try:
            page, notices = await self._add(application, values)
        except Refused as error:
            if error.code in _AWAITS_DNS and values["product"] in ("power", "secure"):
                return await self._await_dns(application, values)
            return self._new_page(request, application, values, RefusedForm.of(values, error, _FIELDS_OF_NEW))
        words = "Added." if not notices else f"Added. {notices[0].hint}"
        return self._context.renderer.redirect(page, Flash(words, "good" if not notices else "warn"))

    async def _add(self, application: Application, values: Mapping[str, str]) -> tuple[str, list[Notice]]:
        """Add the domain. Return the address of its page, and notices of what is not served yet. Raises: `Refused`."""
        base = f"{ROOT}/applications/{application.id}"
        given: dict[str, Any] = {"domain": values["domain"]}
        if values["prepare"] and values["product"] != "monitor":
            return await self._prepare(application, values)
        match values["product"]:
            case "power":
                given |= {"applicationUrl": values["application_url"]}
                if paths := values["root_path_access"].split():
                    given["powerRootPathAccess"] = paths
                body = parse_body(PowerBody, given)
                noted = await self._context.power.power(application, body)
            case "secure":
                for name, field in (("applicationUrl", "application_url"), ("redirectTo", "redirect_to")):
                    if values[field]:
                        given[name] = values[field]
                noted = await self._context.secure.secure(application, parse_body(SecureBody, given))
            case "monitor":
                watch = parse_body(WatchBody, _split(values["domain"]) | {"dnsRecords": _records(values["records"])})
                await self._context.monitor.watch(application, watch)
                name = f"{watch.subdomain}.{watch.domain}" if watch.subdomain else watch.domain
                return f"{base}/monitored/{name}", []
            case _:
                raise web.HTTPBadRequest
        return f"{base}/domains/{_name(values['domain']).text}", noted

    async def _prepare(self, application: Application, values: Mapping[str, str]) -> tuple[str, list[Notice]]:
        """Prepare a domain that serves something already. Raises: `Refused`."""
        wanted = _wanted(values)
        _, noted = await self._context.preparations.prepare(application, wanted)
        return f"{ROOT}/applications/{application.id}/prepared/{wanted.name.text}", noted

    async def _await_dns(self, application: Application, values: Mapping[str, str]) -> web.Response:
        """Keep a domain whose DNS does not lead here yet as pending, and show the record to set. Raises: `Refused`."""
        wanted = _wanted(values)
        await self._context.preparations.prepare(application, wanted, awaits_dns=True)
        page = f"{ROOT}/applications/{application.id}/prepared/{wanted.name.text}"
        return self._context.renderer.redirect(page, Flash("Saved as pending: its DNS does not lead here yet.", "warn"))

    def _new_page(
        self,
        request: web.Request,
        application: Application,
        values: Mapping[str, str],
        refused: RefusedForm,
    ) -> web.Response:
        return self._view.page(
            request,
            "domain_new.html",
            application,
            status=422 if refused else 200,
            values=values,
            refused=refused,
            can_prepare=self._context.settings.acme_dns_zone is not None,
            servers=[str(each) for each in self._context.settings.service_servers],
        )

    # One domain -----------------------------------------------------------------------------------------------

    async def get(self, request: web.Request) -> web.StreamResponse:
        """Show a domain."""
        return await self._page(
            request, await find_application(self._context, request), name_of(request), RefusedForm()
        )

    async def _page(
        self, request: web.Request, application: Application, name: DomainName, refused: RefusedForm
    ) -> web.Response:
        async with self._context.database.connection() as connection:
            held = await self._held(connection, application.id, name)
            policy = await policies.find_in_force(connection, name.text, application.id)
            status_link = await status_links.find(connection, application.id, name.text)
            others = [application.organisation_id] if application.organisation_id else None  # operators: any
            targets = await applications.list_visible(connection, others, most=_LISTED_APPLICATIONS)
            shown = await traffic.show(
                connection, application.id, name.text, request.query.get("period"), self._context.clock.now()
            )
        return self._view.page(
            request,
            "domain.html",
            application,
            status=422 if refused else 200,
            refused=refused,
            name=name,
            held=held,
            response_choices=domain_rules.RESPONSE_CHOICES,
            responses={each.product: domain_rules.response_values(each.response_policy) for each in held},
            records=self._records_of(application, name),
            status_link=status_link,
            status_url=status_link and self._context.status_pages.url(status_link),
            policy=policy,
            traffic=shown,
            targets=[each for each in targets if each.id != application.id and not each.deleting_at],
            shown=await self._context.own_certificates.show(application.id, name),
            activity_html=await self._activity_html(application, name),
            certificate_html=await self._certificate_html(held, name),
        )

    def _records_of(self, application: Application, name: DomainName) -> list[tuple[str, str]]:
        """Return type and value of the records that lead a domain here, those of its kind first."""
        targets = dict.fromkeys((application.cname_target, application.secure_cname_target or application.cname_target))
        names = [("CNAME", target) for target in targets]
        servers = [("AAAA" if ":" in str(each) else "A", str(each)) for each in self._context.settings.service_servers]
        return [*servers, *names] if name.is_root else [*names, *servers]

    async def get_diagnosis(self, request: web.Request) -> web.StreamResponse:
        """Render the diagnosis that ``GET /domains/:domain/diagnosis`` answers with: a fragment."""
        application = await find_application(self._context, request)
        text = await self._diagnosis_html(application, name_of(request))
        return web.Response(text=text, content_type="text/html")

    async def get_live(self, request: web.Request) -> web.StreamResponse:
        """Send the certificate, the status of each product, the diagnosis and what happened."""
        name = name_of(request)

        async def parts() -> tuple[LivePart, ...]:
            application = await find_application(self._context, request)
            given, tenant = (application.id, name), application.organisation_id or ""
            every = self._context.live
            return (
                LivePart(self._certificate, given, tenant, every.certificate),
                LivePart(self._diagnosis, given, tenant, every.diagnosis, after=every.diagnosis),
                LivePart(self._activity, given, tenant, every.activity),
            )

        return await stream(self._context, request, parts)

    async def _certificate(self, application_id: str, name: DomainName) -> str:
        async with self._context.database.connection() as connection:
            held = await self._held(connection, application_id, name)
            policy = await policies.find_in_force(connection, name.text, application_id)
        statuses = self._context.renderer.fragment("_statuses.html", held=held, policy=policy)
        return into("statuses", statuses) + into("certificate-body", await self._certificate_html(held, name))

    async def _diagnosis(self, application_id: str, name: DomainName) -> str:
        application = await load_application(self._context, application_id)
        return into("diagnosis-body", await self._diagnosis_html(application, name))

    async def _activity(self, application_id: str, name: DomainName) -> str:
        application = await load_application(self._context, application_id)
        return into("activity", await self._activity_html(application, name))

    async def post(self, request: web.Request) -> web.StreamResponse:
        """Do what a form of the page asks for."""
        application = await find_application(self._context, request, Permission.CHANGE)
        name = name_of(request)
        url = f"{ROOT}/applications/{application.id}/domains/{name.text}"
        try:
            flash = await self._act(request, application, name)
        except Refused as error:
            if error.refusal in (FORBIDDEN, NOT_FOUND):
                raise
            refused = RefusedForm.of(texts(request), error, _FIELDS)
            if refused.values["action"] in (
                "renew",
                "recheck",
                "request",
                "use_ours",
                "end_status_link",
            ):  # buttons: there is nothing to mend, nor to send again
                return self._context.renderer.redirect(url, Flash(f"{refused.message} {refused.hint}", "bad"))
            return await self._page(request, application, name, refused)
        async with self._context.database.connection() as connection:
            is_left = any(each.application_id == application.id for each in await domains.find(connection, name.text))
        return self._context.renderer.redirect(
            url if is_left else f"{ROOT}/domains?application={application.id}", flash
        )

    async def _act(self, request: web.Request, application: Application, name: DomainName) -> Flash:
        """Do what the form asks for; return what to tell the visitor. Raises: `Refused`."""
        context, done = self._context, "Saved."
        noted: Sequence[Notice] = ()
        match text_of(request, "action"):
            case "renew":
                noted = await context.domain_actions.renew(application, name)
                done = "The certificate is being renewed. The one so far serves until the new one is live."
            case "bring":
                chain, key = text_of(request, "certificate"), text_of(request, "private_key").strip() or None
                noted = await context.own_certificates.bring(application.id, name, chain, key)
                done = "Visitors get this certificate now."
            case "request":
                await context.own_certificates.request(application.id, name)
                done = "The request is below: have your authority sign it."
            case "use_ours":
                noted = await context.own_certificates.remove(application.id, name)
                done = "Visitors get our certificate now."
            case "recheck":
                noted = await context.domain_actions.recheck(application, name)
                done = "The DNS is checked again now." if not noted else "The DNS will be checked again."
            case "power":
                noted = await context.power.update(application, await self._power_change(request, application, name))
            case "secure":
                given: dict[str, Any] = {"domain": name.text, "redirectTo": text_of(request, "redirect_to").strip()}
                if url := text_of(request, "url").strip():
                    given["applicationUrl"] = url
                given |= domain_rules.read(request)
                _, noted = await context.secure.change(application, parse_body(SecureChange, given))
            case "remove_power":
                self._view.require_typed(request, name)
                noted, done = await context.power.remove(application, name.text), f"Power of {name} has ended."
            case "remove_secure":
                self._view.require_typed(request, name)
                noted = await context.secure.remove(application, parse_body(SecureRemoval, {"domain": name.text}))
                done = f"Secure of {name} has ended."
            case "status_link":
                await context.status_pages.make(application, name)
                done = "The link is below, beside the DNS records."
            case "end_status_link":
                await context.status_pages.revoke(application, name)
                done = "The link works no longer."
            case "transfer":
                return await self._transfer(request, application, name)
            case "free":
                done = await self._act_as_operator(request, application, name, "free")
            case "block":
                done = await self._act_as_operator(request, application, name, "block")
            case "unblock":
                done = await self._act_as_operator(request, application, name, "unblock")
            case _:
                raise web.HTTPBadRequest
        return Flash(done if not noted else f"{done} {noted[0].hint}", "good" if not noted else "warn")

    async def _act_as_operator(
        self, request: web.Request, application: Application, name: DomainName, action: str
    ) -> str:
        """Free a name, or block it at every edge, or end that; return what to tell the visitor. Raises: `Refused`."""
        visitor, actions = visitor_of(request), self._context.domain_actions
        match action:
            case "free":
                visitor.require_operator()
                self._view.require_typed(request, name)
                await actions.free(visitor, application, name)
                return f"{name} is free, and no application is remembered as its holder."
            case "block":
                reason, is_legal = text_of(request, "reason"), text_of(request, "status") == "451"
                await actions.block(visitor, application, name, reason, is_legal=is_legal)
                return f"{name} is blocked: every request is answered with the reason."
        await actions.unblock(visitor, application, name)
        return f"{name} is no longer blocked."

    async def _power_change(self, request: web.Request, application: Application, name: DomainName) -> PowerChange:
        """Read the change of a powered domain.

        The root paths are in it only where they differ from those that apply, which can be the application's.
        """
        given: dict[str, Any] = {"domain": name.text, "applicationUrl": text_of(request, "url").strip()}
        given |= domain_rules.read(request)
        if "root_path_access" not in request[FORM]:  # of a page from before an upgrade
            return parse_body(PowerChange, given)
        paths = text_of(request, "root_path_access").split()
        async with self._context.database.connection() as connection:
            held = await self._held(connection, application.id, name)
        if any(each.product == "power" and list(each.root_path_access) != paths for each in held):
            given["powerRootPathAccess"] = paths
        return parse_body(PowerChange, given)

    async def _transfer(self, request: web.Request, application: Application, name: DomainName) -> Flash:
        """To an application of the same organisation, by an owner of it; operators move a name to any application.

        Raises: `Refused`.
        """
        visitor = visitor_of(request)
        visitor.require(Permission.OWN, application.organisation_id)
        self._view.require_typed(request, name)
        url = text_of(request, "url").strip() or None
        actions = self._context.domain_actions
        to = text_of(request, "to").strip()
        target = await actions.transfer(application, name, to, url, to_any=visitor.is_operator)
        done = f"{name} is {target.name}'s now."
        for notice in await actions.find_stray_dns(target, name):
            return Flash(f"{done} {notice.hint}", "warn")
        return Flash(f"{done} Its certificate is being ordered.")

    async def _held(self, connection: Connection, application_id: str, name: DomainName) -> list[domains.Domain]:
        """Return the application's own enrolments of the name. Raises: HTTPNotFound."""
        held = [each for each in await domains.find(connection, name.text) if each.application_id == application_id]
        if not held:
            raise web.HTTPNotFound
        return sorted(held, key=lambda each: each.product)

    async def _diagnosis_html(self, application: Application, name: DomainName) -> str:
        found = await self._context.diagnosis.diagnose(application, name)
        now = self._context.clock.now()
        step = next_step(found, now)
        facts = diagnosis_answer(found, step, now)
        return self._context.renderer.fragment("_diagnosis.html", step=step, facts=facts, application=application)

    async def _activity_html(self, application: Application, name: DomainName) -> str:
        async with self._context.database.connection() as connection:
            # Events carry the registrable name.
            found = await events.list_events(connection, application.id, before=None, limit=50, domain=name.registrable)
            entries = await audit.list_entries(
                connection, before=None, limit=_ENTRIES, application_id=application.id, subject=name.text
            )
        own = [each for each in found if (each.subdomain or "") == (name.subdomain or "")][:_ENTRIES]
        return self._context.renderer.fragment("_activity.html", application=application, events=own, entries=entries)

    async def _certificate_html(self, held: list[domains.Domain], name: DomainName) -> str:
        async with self._context.database.connection() as connection:
            certificate = await certificates.describe(connection, name.text)
            own = await own_certificates.find(connection, name.text)
            order = await orders.describe(connection, name.text)
            chain = await certificates.chain_in_service(connection, name.text)
        now = self._context.clock.now()
        return self._context.renderer.fragment(
            "_certificate.html",
            held=held,
            certificate=certificate,
            own=own,
            order=order,
            steps=timeline.steps(certificate, order, now),
            waits_until=order.waits_until(now) if order else None,
            details=await asyncio.to_thread(_details, chain) if chain else None,
            is_live=_is_live(certificate, now),
        )


def _name(text: str) -> DomainName:
    return parse_product_domain(text)


def _split(text: str) -> dict[str, str | None]:
    """Split a whole name as the API takes it: the apex, and what stands before it."""
    name = _name(text)
    return {"domain": name.registrable, "subdomain": name.subdomain or None}


def _records(text: str) -> list[dict[str, Any]]:
    """Read one record a line: type, host, value, and for MX its priority before the value."""
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


def _wanted(values: Mapping[str, str]) -> EnrolmentRequest:
    """Return what the form of a new domain asks for. Raises: `Refused`."""
    product = values["product"]
    given: dict[str, Any] = {"product": product, "applicationUrl": values["application_url"] or None}
    if product == "power" and (paths := values["root_path_access"].split()):
        given["powerRootPathAccess"] = paths
    if product == "secure" and values["redirect_to"]:
        given["redirectTo"] = values["redirect_to"]
    return parse_body(PrepareBody, given).as_request(_name(values["domain"]))
