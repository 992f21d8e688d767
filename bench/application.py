"""The application that a bench's domains belong to."""

from __future__ import annotations

from api.rules import application_tokens as minting
from common.db import applications
from common.db.application_secrets import client_secret_identity, webhook_secret_identity
from common.db.pool import Database
from common.secrets import Keyring


async def make_application(
    database: Database, keyring: Keyring, *, name: str, cname_target: str, webhook_url: str | None = None
) -> tuple[str, str]:
    """Create an application, and return its id and its client secret."""
    new_id, secret = minting.mint_id(), minting.mint_client_secret()
    async with database.transaction() as connection:
        await applications.create_application(
            connection,
            applications.NewApplication(
                id=new_id,
                name=name,
                cname_target=cname_target,
                webhook_url=webhook_url,
                client_secret=keyring.seal(secret.encode(), client_secret_identity(new_id)),
                webhook_secret=keyring.seal(minting.mint_webhook_secret().encode(), webhook_secret_identity(new_id)),
            ),
        )
    return new_id, secret
