"""Switching what works by a secret of its own: who asks gets the secret that was made, once, or none."""

from __future__ import annotations

from common import applications as minting
from common import signatures
from common.cli.application_options import SecretSwitch
from common.db import applications as db
from common.db.session import Connection
from common.secrets import Keyring


async def switch_service_auth(
    connection: Connection, keyring: Keyring, before: db.Application, wanted: SecretSwitch | None
) -> str | None:
    """The new token, where one was made."""
    if wanted is SecretSwitch.OFF:
        await db.update_application(connection, before.id, service_auth=None)
    if not _mints(wanted, is_on=before.service_auth is not None):
        return None
    token = minting.mint_service_auth()
    sealed = keyring.seal(token.encode(), db.service_auth_identity(before.id))
    await db.update_application(connection, before.id, service_auth=sealed)
    return token


async def switch_signature(
    connection: Connection, keyring: Keyring, before: db.Application, wanted: SecretSwitch | None
) -> str | None:
    """The new key, where one was made; one that it replaces signs beside it for a while."""
    if wanted is SecretSwitch.OFF:
        await db.set_signature_key(connection, before.id, None, signatures.PREVIOUS_KEY_LIFETIME)
    if not _mints(wanted, is_on=before.signature_key is not None):
        return None
    key = signatures.mint_key()
    sealed = keyring.seal(key.encode(), db.signature_key_identity(before.id))
    await db.set_signature_key(connection, before.id, sealed, signatures.PREVIOUS_KEY_LIFETIME)
    return key


def _mints(wanted: SecretSwitch | None, *, is_on: bool) -> bool:
    return wanted is SecretSwitch.ROTATE or (wanted is SecretSwitch.ON and not is_on)
