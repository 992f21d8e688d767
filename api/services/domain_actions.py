"""Manual domain operations, for the API and the dashboard alike.

They renew a certificate, check the DNS now, give a domain to another application, free or block its name.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from api.errors import NOT_BLOCKED, NOT_ENROLLED, NOT_RENEWABLE, NOT_TRANSFERABLE, Refused, invalid_parameter
from api.notices import Notice
from api.rights import Rights
from api.rules.application_settings import InvalidSetting, read_application_url
from api.rules.application_tokens import is_id
from api.services import domain_operations
from api.services import ownership_hints as hints
from api.services.enrolment import find_issuer
from common.accounts import Permission
from common.addresses import AddressPolicy
from common.db import applications, certificates, domains, orders, ownership, policies
from common.db.applications import Application
from common.db.pool import Database
from common.db.session import Connection
from common.enrolment import changes
from common.enrolment.domain_claims import DomainClaims
from common.enrolment.request import cname_target_of
from common.enrolment.transfer import NotTransferable, transfer
from common.errors import DatabaseUnavailable
from common.names import DomainName

RECHECK_PAUSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class DomainActions:
    """Manual domain operations. One instance per process; each call takes the caller's application."""

    database: Database
    policy: AddressPolicy
    claims: DomainClaims

    async def renew(self, application: Application, name: DomainName) -> list[Notice]:
        """Have the certificate renewed; return a notice where no monitor renews now. Raises: `Refused`."""
        try:
            async with self.database.transaction() as connection:
                await domain_operations.renew(connection, name.text, application.id, most_a_day=orders.RENEWALS_A_DAY)
        except orders.NotRenewable as error:
            raise Refused(NOT_RENEWABLE, hint=str(error)) from error
        return await find_issuer(self.database)

    async def recheck(self, application: Application, name: DomainName) -> list[Notice]:
        """Have the DNS checked; return a notice where no monitor checks now. Raises: `Refused`."""
        async with self.database.transaction() as connection:
            await domain_operations.recheck(connection, name.text, application.id, pause_seconds=RECHECK_PAUSE_SECONDS)
        return await find_issuer(self.database)

    async def free(self, rights: Rights, application: Application, name: DomainName) -> None:
        """End the application's hold of the name, and forget who held it before. Raises: `Refused`."""
        rights.require_operator(Permission.OWN)
        async with self.database.transaction() as connection:
            await self._require_held(connection, application, name)
            await changes.revoke_ownership(connection, name.text, application.id, "released")
            await ownership.forget(connection, name.text)

    async def block(
        self, rights: Rights, application: Application, name: DomainName, reason: str, *, is_legal: bool
    ) -> None:
        """Have every edge answer all requests of the name with the reason. Raises: `Refused`."""
        rights.require_operator(Permission.OWN)
        text = domain_operations.read_reason(reason)
        async with self.database.transaction() as connection:
            await certificates.lock_domain(connection, name.text)
            await self._require_held(connection, application, name)
            await domain_operations.set_policy(connection, "domain", name.text, text, is_legal=is_legal)

    async def unblock(self, rights: Rights, application: Application, name: DomainName) -> None:
        """Have the edges serve the name again. Raises: `Refused`, also where it is not blocked."""
        rights.require_operator(Permission.OWN)
        async with self.database.transaction() as connection:
            await self._require_held(connection, application, name)
            if not await domain_operations.end_policy(connection, "domain", name.text):
                raise Refused(NOT_BLOCKED)

    async def _require_held(self, connection: Connection, application: Application, name: DomainName) -> None:
        """Refuse a name that the application does not hold. Raises: `Refused`."""
        if not any(each.application_id == application.id for each in await domains.find(connection, name.text)):
            raise Refused(NOT_ENROLLED)

    async def transfer(
        self, application: Application, name: DomainName, to: str, url: str | None, *, to_any: bool = False
    ) -> Application:
        """Give the domain to the application with the id `to`, and return it. Raises: `Refused`.

        Without `to_any`, that is one of the same organisation, and a suspended application keeps what it has.
        """
        try:
            if url is not None:
                read_application_url(url, self.policy)
        except InvalidSetting as error:
            raise Refused(invalid_parameter("applicationUrl"), hint=str(error)) from error
        try:
            async with self.database.transaction() as connection:
                target = await applications.get_application(connection, to) if is_id(to) else None
                is_ours = target is not None and target.organisation_id == application.organisation_id
                if target is None or not (to_any or (is_ours and application.organisation_id is not None)):
                    raise NotTransferable("there is no application with that id in its organisation")
                await self._require_held(connection, application, name)
                if not to_any and await policies.find(connection, "application", application.id) is not None:
                    raise NotTransferable(f"application {application.id} is suspended: only operators transfer from it")
                await transfer(connection, name, target, url, holder=application.id)
        except NotTransferable as error:
            raise Refused(NOT_TRANSFERABLE, hint=str(error)) from error
        return target

    async def find_stray_dns(self, application: Application, name: DomainName) -> list[Notice]:
        """Return a notice, or none, where the DNS does not lead to the application that a transfer gave the name to."""
        with contextlib.suppress(DatabaseUnavailable):
            async with self.database.connection() as connection:
                is_powered = any(each.product == "power" for each in await domains.find(connection, name.text))
            target = application.cname_target if is_powered else cname_target_of(application, "secure")
            findings = (await self.claims.assess(application, name, target)).findings
            if not findings.is_pointed:
                servers = self.claims.service_targets.service_servers
                return [Notice("dns_elsewhere", hints.stray(findings, name, application.id, target, servers))]
        return []
