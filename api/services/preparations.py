"""Preparing domains: moving in without a gap, for the API, the dashboard and the command line alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from api.errors import NOT_PREPARABLE, NOT_PREPARED, PREPARED_ALREADY, TOO_MANY_PREPARED, Refused
from api.notices import Notice
from api.services.enrolment import find_issuer
from api.services.enrolment_refusals import to_refused
from common.db import audit, certificates, domains, orders, preparations
from common.db.applications import Application
from common.db.certificates import InService
from common.db.domains import Product
from common.db.orders import OrderState
from common.db.pool import Database
from common.db.preparations import Preparation, Wanted
from common.enrolment import preparing
from common.enrolment.outcome import EnrolmentCode, EnrolmentRefused, RefusedInside
from common.enrolment.preparing import Preparing
from common.enrolment.request import EnrolmentRequest, cname_target_of
from common.names import DomainName, parse_enrollable
from common.settings import Settings

_ASKED_PAUSE_SECONDS = 2.0

RecordState = Literal["found", "missing", "later"]


@dataclass(frozen=True, slots=True)
class RecordToSet:
    """A record for the domain's owner to set. ``later``: once the domain is prepared, and not before."""

    type: Literal["CNAME", "A", "AAAA"]
    host: str
    value: str
    state: RecordState


@dataclass(frozen=True, slots=True)
class PreparedDomain:
    """A preparation with the records to set and the certificate so far. `next_step` is a sentence."""

    preparation: Preparation
    records: tuple[RecordToSet, ...]
    certificate: InService | None
    next_step: str

    @property
    def domain(self) -> str:
        """Return the domain's name."""
        return self.preparation.domain


@dataclass(frozen=True, slots=True)
class PreparationService:
    """Prepares domains. One instance per process; each call takes the caller's application."""

    preparing: Preparing
    settings: Settings
    most_waiting: int = preparations.MOST_WAITING

    @property
    def _database(self) -> Database:
        return self.preparing.claims.database

    async def prepare(
        self, application: Application, request: EnrolmentRequest, *, awaits_dns: bool = False
    ) -> tuple[PreparedDomain, list[Notice]]:
        """Prepare the domain, or keep it prepared for another 30 days; with `awaits_dns` it is pending until then.

        Raises: `Refused`.
        """
        await self.check(application, request, awaits_dns=awaits_dns)
        wanted = Wanted(request.name.text, request.product, request.settings)
        if not awaits_dns:
            await self.preparing.claims.delegations.find_record(request.name.text, application.id)
        await self._store(application, wanted, partial(preparing.request, awaits_dns=awaits_dns))
        return await self.find(application, request.name), await find_issuer(self._database)

    async def prepare_new(self, application: Application, request: EnrolmentRequest, *, keeps_enrolled: bool) -> bool:
        """Prepare a domain that is not prepared, as `preparing.request_new` does. Raises: `Refused`."""
        await self.check(application, request)
        wanted = Wanted(request.name.text, request.product, request.settings)
        await self.preparing.claims.delegations.find_record(request.name.text, application.id)
        return await self._store(application, wanted, partial(preparing.request_new, keeps_enrolled=keeps_enrolled))

    async def _store(self, application: Application, wanted: Wanted, request: Callable[..., Awaitable[bool]]) -> bool:
        """Store what is asked for; return False where `request`, which stores it, does not. Raises: `Refused`."""
        async with self._database.transaction() as connection:
            try:
                if not await request(connection, application.id, wanted, most_waiting=self.most_waiting):
                    return False
            except preparations.TooManyWaiting as error:
                hint = (
                    f"{self.most_waiting:,} of its domains wait for their records: have these set, or end some"
                    " by DELETE /domains/:domain/prepare"
                )
                raise Refused(TOO_MANY_PREPARED, hint=hint) from error
            except RefusedInside as error:
                raise _served_already(wanted.domain) from error
            after = {"product": wanted.product, **wanted.settings.given()}
            await audit.record(connection, "domain.prepare", wanted.domain, application_id=application.id, after=after)
        return True

    async def check(self, application: Application, request: EnrolmentRequest, *, awaits_dns: bool = False) -> None:
        """Check the rules that need no DNS. Raises: `Refused` for a domain that cannot be prepared."""
        if self.preparing.claims.delegations.zone is None and not awaits_dns:
            raise Refused(NOT_PREPARABLE, hint="the operator of this service sets FRONTAGE_ACME_DNS_ZONE first")
        refused = await self.preparing.check(application, request)
        if refused is not None and refused.code is EnrolmentCode.ENROLLED:
            raise _served_already(request.name.text)
        if refused is not None:
            raise to_refused(application, request, refused)

    async def has(self, application: Application, name: DomainName) -> bool:
        """Return whether the application has prepared the domain."""
        async with self._database.connection() as connection:
            return await preparations.find(connection, name.text, application.id) is not None

    async def is_enrolled(self, application: Application, name: DomainName) -> bool:
        """Return whether the application has the domain, wherever its DNS leads."""
        async with self._database.connection() as connection:
            return any(each.application_id == application.id for each in await domains.find(connection, name.text))

    async def find(self, application: Application, name: DomainName) -> PreparedDomain:
        """Return how far the domain is, and have a monitor look at its DNS. Raises: `Refused`."""
        async with self._database.connection() as connection:
            found = await preparations.find(connection, name.text, application.id)
            if found is None:
                raise Refused(NOT_PREPARED, hint=f"POST /domains/{name}/prepare prepares it")
            await preparations.note_question(connection, name.text, application.id, pause_seconds=_ASKED_PAUSE_SECONDS)
        return await self._describe(application, found)

    async def list_page(self, application: Application, *, after: str, most: int) -> list[PreparedDomain]:
        """Return the application's next prepared domains after the domain `after`, in the order of their names."""
        async with self._database.connection() as connection:
            found = await preparations.list_page(connection, application.id, after=after, most=most)
        return [await self._describe(application, each) for each in found]

    async def _describe(self, application: Application, found: Preparation) -> PreparedDomain:
        certificate, order = None, None
        if found.state != "waiting":
            async with self._database.connection() as connection:
                certificate = await certificates.describe(connection, found.domain)
                order = await orders.describe(connection, found.domain)
        records = await self.records(application, found)
        return PreparedDomain(found, records, certificate, self._next_step(application, found, records, order))

    async def end(self, application: Application, name: DomainName) -> None:
        """Prepare the domain no longer: what was enrolled for it ends. Raises: `Refused`."""
        async with self._database.transaction() as connection:
            state = await preparing.end(connection, application.id, name.text)
            if state is None:
                raise Refused(NOT_PREPARED)
            if state == "active":
                raise Refused(PREPARED_ALREADY, hint="it is served: DELETE /power or DELETE /ssl ends that")
            await audit.record(connection, "domain.unprepare", name.text, application_id=application.id)

    async def records(self, application: Application, found: Preparation) -> tuple[RecordToSet, ...]:
        """Return the records of a prepared domain: the delegation of its challenge, and those that lead it here."""
        is_turned = found.state == "active"
        if found.awaits_dns:
            state: RecordState = "found" if is_turned or found.reason else "missing"
            return self.leading_records(application, parse_enrollable(found.domain), found.product, state)
        record = await self.preparing.claims.delegations.find_record(found.domain, application.id)
        seen: RecordState = "found" if found.delegated_at is not None else "missing"
        turned: RecordState = "found" if is_turned else "missing" if found.state == "prepared" else "later"
        first = () if record is None else (RecordToSet("CNAME", record.host, record.value, seen),)
        return (*first, *self.leading_records(application, parse_enrollable(found.domain), found.product, turned))

    def leading_records(
        self, application: Application, name: DomainName, product: Product, state: RecordState
    ) -> tuple[RecordToSet, ...]:
        """Return the records that lead a domain here: a CNAME, or our addresses where it is a root."""
        if not name.is_root:
            return (RecordToSet("CNAME", name.text, cname_target_of(application, product), state),)
        addresses = sorted(self.preparing.claims.service_targets.service_servers)
        return tuple(RecordToSet("AAAA" if ":" in each else "A", name.text, each, state) for each in addresses)

    def _next_step(
        self,
        application: Application,
        found: Preparation,
        records: tuple[RecordToSet, ...],
        order: OrderState | None,
    ) -> str:
        match found.state:
            case "waiting" if found.reason is not None:
                request = EnrolmentRequest(found.product, parse_enrollable(found.domain))
                refused = to_refused(application, request, EnrolmentRefused(EnrolmentCode(found.reason)))
                seen = "DNS leads here" if found.awaits_dns else "delegation is seen"
                return f"The {seen}, and the domain waits: {refused.hint or refused.refusal.message}."
            case "waiting" if found.awaits_dns:
                turn = " and ".join(f"{each.type} {each.value}" for each in records)
                return f"Point {found.domain} to {turn}. The domain is added by itself once that is seen."
            case "waiting":
                record = records[0]
                return f"Set the {record.type} record {record.host} to {record.value}. Visitors notice nothing of it."
            case "issuing" if order is not None and order.last_error is not None:
                return f"The certificate is ordered again by itself: {order.last_error}."
            case "issuing":
                return "The certificate is being obtained: wait a few seconds."
            case "prepared":
                turn = " and ".join(f"{each.type} {each.value}" for each in records[1:])
                return f"See the site as it will be: {self.try_out(found.domain)}. Then point {found.domain} to {turn}."
            case "active":
                return "The DNS leads here, and visitors are served. There is nothing left to do."

    def try_out(self, domain: str) -> str:
        """Return the curl command that asks an edge for the domain directly, without DNS."""
        domain = parse_enrollable(domain).visited_host
        url = self.settings.https_url(domain)
        port = url.removeprefix(f"https://{domain}").strip("/:") or "443"
        servers = self.settings.service_servers
        address = str(servers[0]) if servers else self.settings.edge_https.host
        return f"curl --resolve {domain}:{port}:{address} {url}"


def _served_already(domain: str) -> Refused:
    return Refused(PREPARED_ALREADY, hint=f"{domain} is enrolled, and its DNS leads here")
