"""Creates and rotates what an application works by in secret. The caller gets each secret once, to show it.

For the API, the dashboard and the command line. Each function is one use case with its entry in the audit log, in the
transaction that the caller opens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from api.rules import application_tokens as minting
from api.rules.application_tokens import SecretChange, ServiceAuthChange
from api.services import application_changes
from common import signatures
from common.db import application_secrets as secret_rows
from common.db import applications as db
from common.db import audit
from common.db.session import Connection
from common.errors import FrontageError
from common.secrets import Keyring


class ServiceAuthRefused(FrontageError):
    """A change of X-Service-Auth that its state does not allow; in words for the person who asked."""


@dataclass(frozen=True, slots=True)
class MadeApplication:
    """The only time that the secrets are readable."""

    id: str
    client_secret: str
    webhook_secret: str


async def make_application(
    connection: Connection,
    keyring: Keyring,
    *,
    name: str,
    cname_target: str,
    secure_cname_target: str | None = None,
    application_url: str | None = None,
    webhook_url: str | None = None,
    organisation_id: str | None = None,
    error_status: db.ErrorStatus = "502",
    is_test: bool = False,
) -> MadeApplication:
    """Make an application with its secrets; settings as `api.rules.application_settings` reads them.

    Raises: `CnameTargetTaken`.
    """
    made = MadeApplication(minting.mint_id(), minting.mint_client_secret(), minting.mint_webhook_secret())
    await application_changes.create(
        connection,
        db.NewApplication(
            id=made.id,
            name=name,
            cname_target=cname_target,
            client_secret=keyring.seal(made.client_secret.encode(), secret_rows.client_secret_identity(made.id)),
            webhook_secret=keyring.seal(made.webhook_secret.encode(), secret_rows.webhook_secret_identity(made.id)),
            secure_cname_target=secure_cname_target,
            application_url=application_url,
            webhook_url=webhook_url,
            organisation_id=organisation_id,
            error_status=error_status,
            is_test=is_test,
        ),
    )
    return made


async def rotate_client_secret(
    connection: Connection, keyring: Keyring, application_id: str, *, keeps_links: bool = False
) -> str | None:
    """Make a new client secret, and return it, or None where there is no such application.

    The one so far works for another `PREVIOUS_SECRET_LIFETIME`. With it end the links, flows and configurations that
    its tokens made, unless `keeps_links`.
    """
    secret = minting.mint_client_secret()
    sealed = keyring.seal(secret.encode(), secret_rows.client_secret_identity(application_id))
    rotated = await secret_rows.rotate_client_secret(
        connection, application_id, sealed, minting.PREVIOUS_SECRET_LIFETIME, keeps_links=keeps_links
    )
    if not rotated:
        return None
    after = {"keep_links": True} if keeps_links else None
    await _record(connection, "application.rotate_client_secret", application_id, after)
    return secret


async def rotate_webhook_secret(connection: Connection, keyring: Keyring, application_id: str) -> str | None:
    """Make a new webhook secret, and return it, or None where there is no such application.

    The one so far signs beside it for `PREVIOUS_SECRET_LIFETIME`.
    """
    secret = minting.mint_webhook_secret()
    sealed = keyring.seal(secret.encode(), secret_rows.webhook_secret_identity(application_id))
    rotated = await secret_rows.rotate_webhook_secret(
        connection, application_id, sealed, minting.PREVIOUS_SECRET_LIFETIME
    )
    if not rotated:
        return None
    await _record(connection, "application.rotate_webhook_secret", application_id)
    return secret


async def switch_service_auth(
    connection: Connection,
    keyring: Keyring,
    application_id: str,
    wanted: ServiceAuthChange | None,
    own_value: str | None = None,
) -> str | None:
    """Change X-Service-Auth, and return the new value, where one was made or given.

    `own_value`: as `application_settings.read_service_auth` returns it; None mints one.

    Raises: `ServiceAuthRefused`.
    """
    before = None if wanted is None else await db.lock_application(connection, application_id)
    if before is None:
        return None
    match wanted:
        case "off":
            await application_changes.change(connection, application_id, service_auth=None, next_service_auth=None)
        case "finish" | "cancel":
            if before.next_service_auth is None:
                raise ServiceAuthRefused("there is no next value: begin with rotate")
            changes = db.ApplicationChanges(next_service_auth=None)
            if wanted == "finish":
                changes["service_auth"] = before.next_service_auth
            await application_changes.change(connection, application_id, **changes)
        case "on" if before.service_auth is not None and own_value is not None:
            raise ServiceAuthRefused("it is on already: rotate it to change its value")
        case "on" | "rotate" if _mints(wanted, is_on=before.service_auth is not None):
            value = own_value or minting.mint_service_auth()
            sealed = keyring.seal(value.encode(), secret_rows.service_auth_identity(application_id))
            is_first = before.service_auth is None
            made = (
                db.ApplicationChanges(service_auth=sealed)
                if is_first
                else db.ApplicationChanges(next_service_auth=sealed)
            )
            await application_changes.change(connection, application_id, **made)
            return value
    return None


async def switch_signature(
    connection: Connection, keyring: Keyring, before: db.Application, wanted: SecretChange | None
) -> str | None:
    """Change the signature, and return the new key, where one was made.

    A key that it replaces signs beside it for a while.
    """
    lifetime = signatures.PREVIOUS_KEY_LIFETIME
    if wanted == "off" and await secret_rows.set_signature_key(connection, before.id, None, lifetime):
        await _record(connection, "application.end_signature", before.id)
    if not _mints(wanted, is_on=before.signature_key is not None):
        return None
    key = signatures.mint_key()
    sealed = keyring.seal(key.encode(), secret_rows.signature_key_identity(before.id))
    if await secret_rows.set_signature_key(connection, before.id, sealed, lifetime):
        await _record(connection, "application.rotate_signature_key", before.id)
    return key


async def _record(
    connection: Connection, action: str, application_id: str, after: Mapping[str, Any] | None = None
) -> None:
    await audit.record(connection, action, application_id, application_id=application_id, after=after)


def _mints(wanted: SecretChange | None, *, is_on: bool) -> bool:
    return wanted == "rotate" or (wanted == "on" and not is_on)
