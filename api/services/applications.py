"""Applications: their settings and secrets, and making, listing and deleting them, for the API and the dashboard alike.

Rules
    a secret is in the answer that made it, and in no other
    a change of secrets needs a token that the current client secret signed: a previous secret that leaked, and that a
        rotation is about to end, cannot keep the application; or the API key of a user with the role that the
        dashboard asks for
    deleting needs an owner's API key or session: a developer can make a client secret, and sign a token with it
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Required, TypedDict, TypeVar, cast

from pydantic.alias_generators import to_camel

from api.errors import (
    CNAME_TARGET_TAKEN,
    FORBIDDEN,
    NOT_FOUND,
    SERVICE_AUTH_STATE,
    TOO_MANY_APPLICATIONS,
    Refused,
    invalid_parameter,
)
from api.rights import Rights
from api.rules import application_settings as rules
from api.rules.application_settings import InvalidSetting
from api.rules.application_tokens import SecretChange, is_id
from api.schemas.application import (
    ApplicationChange,
    ApplicationCreation,
    OperatorChange,
    ServiceAuthSwitch,
)
from api.schemas.response_policy import ResponsePolicyBody
from api.services import application_changes
from api.services import application_secrets as secrets
from api.services import ownership_hints as hints
from common.accounts import Permission
from common.addresses import AddressPolicy
from common.db import application_removal, audit, error_pages
from common.db.applications import (
    MOST_OF_ORGANISATION,
    Application,
    ApplicationChanges,
    ErrorStatus,
    count_of_organisation,
    get_application,
    list_visible,
)
from common.db.pool import Database
from common.db.session import Connection
from common.db.target_contests import CnameTargetTaken, TargetContest
from common.db.users import get_organisation
from common.enrolment.ownership import OwnNames
from common.enrolment.target_claims import TargetClaims
from common.secrets import Keyring

_Value = TypeVar("_Value")


class NewSettings(TypedDict, total=False):
    """Of an application to be, as `api.rules.application_settings` reads them."""

    name: Required[str]
    cname_target: Required[str]
    secure_cname_target: str | None
    application_url: str | None
    webhook_url: str | None
    error_status: ErrorStatus
    is_test: bool


@dataclass(frozen=True, slots=True)
class ApplicationService:
    """Applications. One instance per process; each call takes the application or the caller's rights."""

    database: Database
    keyring: Keyring
    policy: AddressPolicy
    own_names: OwnNames
    target_claims: TargetClaims

    async def list_part(self, rights: Rights, *, text: str, after: tuple[str, str], most: int) -> list[Application]:
        """Return the applications that the user may see, by name, after this name and id.

        With `text` in lower case, those that have it in their name, id or cname target.
        """
        async with self.database.connection() as connection:
            return await list_visible(connection, rights.visible_organisation_ids, text=text, after=after, most=most)

    async def create(
        self, rights: Rights, organisation_id: str | None, settings: NewSettings
    ) -> secrets.MadeApplication:
        """Make an application. Without an organisation, only operators see it.

        Raises: `Refused`, `CnameTargetTaken`.
        """
        rights.require(Permission.OWN, organisation_id)
        async with self.database.transaction() as connection:
            if organisation_id is not None:
                await self._refuse_organisation(connection, rights, organisation_id)
            return await secrets.make_application(connection, self.keyring, organisation_id=organisation_id, **settings)

    async def create_from(self, rights: Rights, body: ApplicationCreation) -> Application:
        """Make an application of a body, unless an earlier attempt at the request has. Raises: `Refused`."""
        async with self.database.connection() as connection:
            earlier = await audit.find_earlier(connection, "application.create")
        made_id = await self._make_from(rights, body) if earlier is None else earlier.subject
        async with self.database.connection() as connection:
            found = await get_application(connection, made_id)
        if found is None:
            raise Refused(NOT_FOUND)
        return found

    async def _make_from(self, rights: Rights, body: ApplicationCreation) -> str:
        """Make an application of a body, and return its id. Raises: `Refused`."""
        read = self._read(body)
        settings: NewSettings = {
            "name": read["name"],
            "cname_target": read["cname_target"],
            "secure_cname_target": read.get("secure_cname_target"),
            "application_url": read.get("application_url"),
            "webhook_url": read.get("webhook_url"),
            "error_status": read.get("error_status", "502"),
            "is_test": body.test,
        }
        try:
            return (await self.create(rights, _organisation_of(rights, body), settings)).id
        except CnameTargetTaken as error:
            raise Refused(CNAME_TARGET_TAKEN, hint=hints.taken_target(error, None)) from error

    async def change_by_operator(self, rights: Rights, application: Application, body: OperatorChange) -> None:
        """Change what only operators change. Raises: `Refused`."""
        rights.require_operator(Permission.OWN)
        changes: ApplicationChanges = {}
        if body.tier is not None:
            changes["tier"] = body.tier
        if body.connect is not None:
            changes["connect"] = body.connect
        async with self.database.transaction() as connection:
            if body.organisation_id is not None:
                changes["organisation_id"] = body.organisation_id or None
                if body.organisation_id and not await _is_organisation(connection, body.organisation_id):
                    raise Refused(invalid_parameter("organisationId"), hint="there is no such organisation")
            await application_changes.change(connection, application.id, **changes)

    async def read(self, application: Application) -> tuple[Application, str | None]:
        """Return the application as it is now, and its error page. Raises: `Refused` when it was deleted meanwhile."""
        async with self.database.connection() as connection:
            found = await get_application(connection, application.id)
            page = await error_pages.get_error_page(connection, application.id)
        if found is None:
            raise Refused(FORBIDDEN)
        return found, page

    async def measure(self, application: Application) -> application_removal.Extent:
        """Count what is left of an application."""
        async with self.database.connection() as connection:
            return await application_removal.measure(connection, application.id)

    async def change(self, application: Application, body: ApplicationChange) -> None:
        """Change settings of an application. Raises: `Refused`."""
        changes = self._read(body)
        if changes.get("webhook_url", application.webhook_url) == application.webhook_url:
            changes.pop("webhook_url", None)  # setting it, even to what it is, begins the endpoint anew
        page = None
        if body.error_page:
            page = _setting("errorPage", partial(rules.read_error_page, body.error_page.encode()))

        async def store(proven: Collection[TargetContest]) -> None:
            async with self.database.transaction() as connection:
                await application_changes.change(connection, application.id, proven=proven, **changes)
                if body.error_page is not None:
                    await application_changes.set_error_page(connection, application.id, page)

        try:
            await self.target_claims.store(application, store)
        except CnameTargetTaken as error:
            raise Refused(CNAME_TARGET_TAKEN, hint=hints.taken_target(error, application.id)) from error

    async def rotate_client_secret(self, application: Application, *, keeps_links: bool) -> str:
        """Make a new client secret. Raises: `Refused`."""
        async with self.database.transaction() as connection:
            secret = await secrets.rotate_client_secret(
                connection, self.keyring, application.id, keeps_links=keeps_links
            )
        return _made(secret)

    async def rotate_webhook_secret(self, application: Application) -> str:
        """Make a new webhook secret. Raises: `Refused`."""
        async with self.database.transaction() as connection:
            secret = await secrets.rotate_webhook_secret(connection, self.keyring, application.id)
        return _made(secret)

    async def switch_signature(self, application: Application, wanted: SecretChange) -> str | None:
        """Sign requests or not; return the new key, where one was made. Raises: `Refused`."""
        async with self.database.transaction() as connection:
            before = await get_application(connection, application.id)
            if before is None:
                raise Refused(FORBIDDEN)
            return await secrets.switch_signature(connection, self.keyring, before, wanted)

    async def switch_service_auth(self, application: Application, body: ServiceAuthSwitch) -> str | None:
        """Send X-Service-Auth or not; return the new value, where one was made. Raises: `Refused`."""
        given, own_value = body.value, None
        if given is not None:
            if body.action not in ("on", "rotate"):
                raise Refused(invalid_parameter("value"), hint="it goes with on and rotate")
            own_value = _setting("value", lambda: rules.read_service_auth(given))
        try:
            async with self.database.transaction() as connection:
                value = await secrets.switch_service_auth(
                    connection, self.keyring, application.id, body.action, own_value
                )
        except secrets.ServiceAuthRefused as error:
            raise Refused(SERVICE_AUTH_STATE, hint=str(error)) from error
        return None if own_value is not None else value

    async def begin_removal(self, application: Application, name: str) -> None:
        """Its tokens open nothing from then on. Raises: `Refused`."""
        if name != application.name:
            raise Refused(invalid_parameter("name"), hint="send the application's name, so that no other is deleted")
        async with self.database.transaction() as connection:
            await application_changes.begin_removal(connection, application.id)

    async def _refuse_organisation(self, connection: Connection, rights: Rights, organisation_id: str) -> None:
        """Refuse an organisation that cannot have another application. Raises: `Refused`.

        That is one that does not exist, or that has as many applications as it may.
        """
        if not await _is_organisation(connection, organisation_id):
            raise Refused(invalid_parameter("organisationId"), hint="there is no such organisation")
        count = await count_of_organisation(connection, organisation_id)
        if count >= MOST_OF_ORGANISATION and not rights.is_operator:
            hint = f"an organisation makes {MOST_OF_ORGANISATION} at most; an operator may give it more"
            raise Refused(TOO_MANY_APPLICATIONS, hint=hint)

    def _read(self, body: ApplicationChange | ApplicationCreation) -> ApplicationChanges:
        """Read the changes of a body. Raises: `Refused`."""
        readers: Mapping[str, Callable[[Any], Any]] = {
            "name": rules.read_name,
            "cname_target": self._cname_target,
            "secure_cname_target": _or_none(self._cname_target),
            "application_url": _or_none(lambda text: rules.read_application_url(text, self.policy)),
            "webhook_url": _or_none(lambda text: rules.read_webhook_url(text, self.policy)),
            "root_path_access": rules.read_root_paths,
            "send_host": str,
            "origin_server_name": _or_none(rules.read_server_name),
            "origin_verify": bool,
            "maintenance": bool,
            "http2": bool,
            "minimum_tls": str,
            "error_status": str,
            "response_policy": ResponsePolicyBody.stored,
            "metadata_fields": rules.read_metadata_fields,
            "buffer_uploads_bytes": _or_none(lambda size: rules.read_upload_size(str(size))),
        }
        changes: dict[str, Any] = {}
        for name, read in readers.items():
            if (given := getattr(body, name, None)) is not None:
                changes[name] = _setting(to_camel(name), partial(read, given))
        return cast("ApplicationChanges", changes)

    def _cname_target(self, text: str) -> str:
        return rules.read_cname_target(text, self.own_names)


async def _is_organisation(connection: Connection, organisation_id: str) -> bool:
    return is_id(organisation_id) and await get_organisation(connection, organisation_id) is not None


def _organisation_of(rights: Rights, body: ApplicationCreation) -> str | None:
    """Return the organisation that was sent, or the only one that the user owns. Raises: `Refused`."""
    if body.organisation_id:
        return body.organisation_id
    owned = [each.organisation.id for each in rights.memberships if each.role == "owner"]
    if not rights.is_operator and len(owned) != 1:
        hint = "send the organisation that the application belongs to: you own more than one" if owned else None
        raise Refused(invalid_parameter("organisationId") if owned else FORBIDDEN, hint=hint)
    return owned[0] if len(owned) == 1 else None


def _setting(name: str, read: Callable[[], _Value]) -> _Value:
    """Read a setting. Raises: `Refused` that names the field."""
    try:
        return read()
    except InvalidSetting as error:
        raise Refused(invalid_parameter(name), hint=str(error)) from error


def _or_none(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda given: read(given) if given else None


def _made(secret: str | None) -> str:
    """Return the secret. Raises: `Refused` when the application was deleted meanwhile."""
    if secret is None:
        raise Refused(FORBIDDEN)
    return secret
