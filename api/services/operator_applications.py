"""Applications as an operator changes them by the command line: all of one command in one transaction, no DNS asked.

Each call takes the caller's rights, which must be an operator's. Settings come as `api.rules.application_settings`
reads them.
"""

from __future__ import annotations

from dataclasses import dataclass

from api.errors import (
    CNAME_TARGET_TAKEN,
    NO_SUCH_APPLICATION,
    NO_SUCH_ORGANISATION,
    SERVICE_AUTH_STATE,
    Refused,
)
from api.rights import Rights
from api.rules.application_tokens import SecretChange, ServiceAuthChange
from api.services import application_changes
from api.services import application_secrets as secrets
from api.services.application_secrets import MadeApplication
from common.accounts import Permission
from common.db.applications import (
    Application,
    ApplicationChanges,
    ErrorStatus,
    get_application,
    list_applications,
    lock_application,
)
from common.db.error_pages import error_page_sizes
from common.db.pool import Database
from common.db.session import Connection
from common.db.target_contests import CnameTargetTaken
from common.db.users import find_organisation
from common.db.webhook_endpoints import Endpoint, get_endpoint, list_endpoints
from common.secrets import Keyring


@dataclass(frozen=True, slots=True)
class NewApplicationSettings:
    """Of an application to be. `organisation`: its id or name."""

    name: str
    cname_target: str
    secure_cname_target: str | None = None
    application_url: str | None = None
    webhook_url: str | None = None
    organisation: str | None = None
    error_status: ErrorStatus = "502"
    is_test: bool = False


@dataclass(frozen=True, slots=True)
class WantedChanges:
    """What is to change; None leaves a thing as it is.

    `organisation`: its id or name, empty for none; `error_page`: empty for ours. `own_service_auth`: the value of
    X-Service-Auth, None to have one made.
    """

    settings: ApplicationChanges
    organisation: str | None = None
    error_page: str | None = None
    service_auth: ServiceAuthChange | None = None
    own_service_auth: str | None = None
    signature: SecretChange | None = None


@dataclass(frozen=True, slots=True)
class MadeSecrets:
    """The only time that the secrets are readable; None for what was not made."""

    service_auth: str | None
    signature_key: str | None


@dataclass(frozen=True, slots=True)
class ShownApplication:
    """An application with what stands beside it. `error_page_bytes`: None for our page."""

    application: Application
    error_page_bytes: int | None
    endpoint: Endpoint


@dataclass(frozen=True, slots=True)
class OperatorApplications:
    """Use cases of applications by the command line."""

    database: Database
    keyring: Keyring

    async def list_all(self, rights: Rights) -> list[ShownApplication]:
        """Return all applications, oldest first. Raises: `Refused`."""
        rights.require_operator()
        async with self.database.connection() as connection:
            sizes, endpoints = await error_page_sizes(connection), await list_endpoints(connection)
            return [
                ShownApplication(each, sizes.get(each.id), endpoints.get(each.id, Endpoint()))
                for each in await list_applications(connection)
            ]

    async def show(self, rights: Rights, application_id: str) -> ShownApplication:
        """Return the application. Raises: `Refused`."""
        rights.require_operator()
        async with self.database.connection() as connection:
            application = await get_application(connection, application_id)
            if application is None:
                raise _unknown(application_id)
            sizes, endpoint = await error_page_sizes(connection), await get_endpoint(connection, application_id)
            return ShownApplication(application, sizes.get(application_id), endpoint)

    async def find_by_target(self, rights: Rights, target: str) -> Application | None:
        """Return the application that has the cname target. Raises: `Refused`."""
        rights.require_operator()
        async with self.database.connection() as connection:
            found = await list_applications(connection)
        return next((each for each in found if target in (each.cname_target, each.secure_cname_target)), None)

    async def create(self, rights: Rights, new: NewApplicationSettings) -> MadeApplication:
        """Make an application, with its secrets. Raises: `Refused`."""
        rights.require_operator(Permission.OWN)
        async with self.database.transaction() as connection:
            try:
                return await secrets.make_application(
                    connection,
                    self.keyring,
                    name=new.name,
                    cname_target=new.cname_target,
                    secure_cname_target=new.secure_cname_target,
                    application_url=new.application_url,
                    webhook_url=new.webhook_url,
                    organisation_id=await _organisation_id(connection, new.organisation),
                    error_status=new.error_status,
                    is_test=new.is_test,
                )
            except CnameTargetTaken as error:
                raise Refused(CNAME_TARGET_TAKEN, hint=str(error)) from error

    async def change(self, rights: Rights, application_id: str, wanted: WantedChanges) -> MadeSecrets:
        """Make all of the changes, or none. Return the secrets that were made. Raises: `Refused`."""
        rights.require_operator(Permission.OWN)
        async with self.database.transaction() as connection:
            before = await _lock(connection, application_id)
            changes = wanted.settings
            if wanted.organisation is not None:
                changes["organisation_id"] = await _organisation_id(connection, wanted.organisation)
            try:
                await application_changes.change(connection, application_id, **changes)
            except CnameTargetTaken as error:
                raise Refused(CNAME_TARGET_TAKEN, hint=str(error)) from error
            if wanted.error_page is not None:
                await application_changes.set_error_page(connection, application_id, wanted.error_page or None)
            return await self._switch(connection, before, wanted)

    async def _switch(self, connection: Connection, before: Application, wanted: WantedChanges) -> MadeSecrets:
        """Change the secrets. Raises: `Refused`."""
        own = wanted.own_service_auth
        try:
            value = await secrets.switch_service_auth(connection, self.keyring, before.id, wanted.service_auth, own)
        except secrets.ServiceAuthRefused as error:
            raise Refused(SERVICE_AUTH_STATE, hint=str(error)) from error
        key = await secrets.switch_signature(connection, self.keyring, before, wanted.signature)
        return MadeSecrets(None if own else value, key)

    async def rotate_client_secret(self, rights: Rights, application_id: str, *, keeps_links: bool) -> str:
        """Make a new client secret; the one so far works for another day. Raises: `Refused`."""
        rights.require_operator(Permission.OWN)
        async with self.database.transaction() as connection:
            secret = await secrets.rotate_client_secret(
                connection, self.keyring, application_id, keeps_links=keeps_links
            )
        return _found(secret, application_id)

    async def rotate_webhook_secret(self, rights: Rights, application_id: str) -> str:
        """Make a new webhook secret; the one so far signs beside it for a day. Raises: `Refused`."""
        rights.require_operator(Permission.OWN)
        async with self.database.transaction() as connection:
            secret = await secrets.rotate_webhook_secret(connection, self.keyring, application_id)
        return _found(secret, application_id)

    async def begin_removal(self, rights: Rights, application_id: str) -> None:
        """Begin to delete the application: its tokens open nothing from then on. Raises: `Refused`."""
        rights.require_operator(Permission.OWN)
        async with self.database.transaction() as connection:
            await application_changes.begin_removal(connection, application_id)


async def _lock(connection: Connection, application_id: str) -> Application:
    """Return the application, locked. Raises: `Refused`."""
    application = await lock_application(connection, application_id)
    if application is None:
        raise _unknown(application_id)
    return application


async def _organisation_id(connection: Connection, text: str | None) -> str | None:
    """Return the id of the organisation with this id or name; None for no text. Raises: `Refused`."""
    if not text:
        return None
    organisation = await find_organisation(connection, text)
    if organisation is None:
        raise Refused(NO_SUCH_ORGANISATION, hint=f"there is no organisation {text[:100]}")
    return organisation.id


def _found(secret: str | None, application_id: str) -> str:
    """Return the secret, where there is the application. Raises: `Refused`."""
    if secret is None:
        raise _unknown(application_id)
    return secret


def _unknown(application_id: str) -> Refused:
    return Refused(NO_SUCH_APPLICATION, hint=f"there is no application {application_id}")
