"""The API's services for a command: it acts with an operator's rights, and prints what they refuse in their words."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from common.errors import OperatorError

if TYPE_CHECKING:
    from api.errors import Refused
    from api.services.account_key import AccountKeyService
    from api.services.domain_operations import OperatorOperations
    from api.services.ended_domains import EndedDomains
    from api.services.flow_list import FlowListService
    from api.services.installation import InstallationService
    from api.services.operator_applications import OperatorApplications
    from api.services.operator_domains import OperatorDomains
    from api.services.organisations import OrganisationService
    from api.services.own_certificates import OwnCertificateService
    from api.services.preparations import PreparationService
    from api.services.replacements import ReplacementService
    from api.services.status_pages import StatusPages
    from api.services.users import UserService
    from api.services.webhooks import WebhookService
    from common.db.applications import Application
    from common.db.pool import Database
    from common.enrolment.domain_claims import DomainClaims
    from common.secrets import Keyring
    from common.settings import Settings

T = TypeVar("T")


class CommandRefused(OperatorError):
    """What a service refused. `code` is for programs."""

    def __init__(self, words: str, code: str | None) -> None:
        super().__init__(words)
        self.code = code


@dataclass(frozen=True, slots=True)
class CommandServices:
    """Services of one command, each made when it is asked for: a command imports the one that it needs."""

    settings: Settings
    database: Database
    keyring: Keyring

    @property
    def users(self) -> UserService:
        """Return the service of users."""
        from api.services.users import UserService

        return UserService(self.database, self.settings.base_url)

    @property
    def operations(self) -> OperatorOperations:
        """Return the operations by hand on names and applications."""
        from api.services.domain_operations import OperatorOperations

        return OperatorOperations(self.database)

    @property
    def domains(self) -> OperatorDomains:
        """Return the service that lists and describes domains."""
        from api.services.operator_domains import OperatorDomains

        return OperatorDomains(self.database)

    @property
    def replacements(self) -> ReplacementService:
        """Return the service that lists and replaces certificates."""
        from api.services.replacements import ReplacementService

        return ReplacementService(self.database)

    @property
    def account_key(self) -> AccountKeyService:
        """Return the service that changes the key of the ACME accounts."""
        from api.services.account_key import AccountKeyService

        return AccountKeyService(self.database)

    @property
    def own_certificates(self) -> OwnCertificateService:
        """Return the service of certificates that partners bring."""
        from api.services.own_certificates import OwnCertificateService
        from common.clock import SystemClock

        return OwnCertificateService(self.database, self.keyring, SystemClock())

    @property
    def preparations(self) -> PreparationService:
        """Return the service of prepared domains."""
        from api.services.preparations import PreparationService
        from common.addresses import tenant_policy
        from common.enrolment.preparing import Preparing

        return PreparationService(Preparing(self._claims, tenant_policy(self.settings)), self.settings)

    @property
    def status_pages(self) -> StatusPages:
        """Return the service of the pages that show customers how a domain is."""
        from api.services.status_pages import StatusPages

        return StatusPages(self.database, self.preparations, self.settings.base_url)

    @property
    def ended_domains(self) -> EndedDomains:
        """Return the service that lists ended domains."""
        from api.services.ended_domains import EndedDomains

        return EndedDomains(self.database, self._claims)

    @property
    def _claims(self) -> DomainClaims:
        """Return what asks the DNS whose a domain is, and where it leads."""
        from common.addresses import tenant_policy
        from common.dns import Resolver
        from common.edge_probe import HttpEdgeProbe, probing_policy
        from common.enrolment.delegations import Delegations
        from common.enrolment.domain_claims import DomainClaims
        from common.enrolment.eligibility import ServiceTargets
        from common.enrolment.ownership import OwnNames

        settings = self.settings
        return DomainClaims(
            self.database,
            Resolver(settings.dns_servers, tenant_policy(settings)),
            ServiceTargets.of(settings),
            OwnNames.of(settings),
            HttpEdgeProbe(self.keyring, probing_policy(settings)),
            Delegations(self.database, settings.acme_dns_zone),
        )

    @property
    def applications(self) -> OperatorApplications:
        """Return the service of applications for operators."""
        from api.services.operator_applications import OperatorApplications

        return OperatorApplications(self.database, self.keyring)

    @property
    def installation(self) -> InstallationService:
        """Return the service of the installation's state."""
        from api.rules.plain_text import find_exposure
        from api.services.installation import InstallationService
        from common.clock import SystemClock
        from common.db.ca_ledger import Limits

        limits, exposure = Limits.of(self.settings), find_exposure(self.settings)
        return InstallationService(self.database, limits, exposure, SystemClock())

    @property
    def webhooks(self) -> WebhookService:
        """Return the service of webhooks."""
        from api.services.webhooks import WebhookService

        return WebhookService(self.database)

    @property
    def flows(self) -> FlowListService:
        """Return the service that lists flows."""
        from api.services.flow_list import FlowListService
        from common.clock import SystemClock

        return FlowListService(self.database, SystemClock())

    async def application(self, application_id: str) -> Application:
        """Return the application. Raises: `Refused`."""
        from api.errors import NO_SUCH_APPLICATION, Refused
        from common.db.applications import get_application

        async with self.database.connection() as connection:
            application = await get_application(connection, application_id)
        if application is None:
            raise Refused(NO_SUCH_APPLICATION, hint=f"there is no application {application_id}")
        return application

    @property
    def organisations(self) -> OrganisationService:
        """Return the service of organisations."""
        from api.services.organisations import OrganisationService

        return OrganisationService(self.database, self.settings.base_url)


def run_with_services(work: Callable[[CommandServices], Awaitable[T]]) -> T:
    """Do `work` with services whose keys are known to open what the database holds.

    Raises: `OperatorError`, `DatabaseUnavailable`.
    """
    from common.settings import load

    return asyncio.run(_run(load(os.environ), work))


async def _run(settings: Settings, work: Callable[[CommandServices], Awaitable[T]]) -> T:
    from api.cli.database import open_database
    from api.errors import Refused

    async with open_database(settings) as (database, keyring):
        try:
            return await work(CommandServices(settings, database, keyring))
        except Refused as error:
            raise refused(error) from error


def refused(error: Refused) -> CommandRefused:
    """Return the error of a command for what a service refused: its hint, or else the message of the API."""
    from api import errors

    instead = {errors.WEBHOOK_DISABLED: "the webhook is disabled: `frontage webhook enable` enables it"}
    lists = {
        errors.NO_SUCH_ORGANISATION: "`frontage organisation list` prints them",
        errors.NO_SUCH_USER: "`frontage user list` prints them",
        errors.NO_SUCH_APPLICATION: "`frontage app list` prints them",
        errors.NO_SUCH_KEY: "`frontage user keys` prints them",
        errors.NO_SUCH_PASSKEY: "`frontage user passkeys` prints them",
    }
    words = instead.get(error.refusal) or error.hint or error.refusal.message
    where = "give --application-url" if error.code == "no_origin" else lists.get(error.refusal)
    return CommandRefused(f"{words}: {where}" if where else words, error.code)
