"""What the tests of events and deliveries are made of: applications with a webhook, events, and what became of them."""

from __future__ import annotations

from typing import Any

from common import applications as minting
from common.db import deliveries, events
from common.db.applications import NewApplication, create_application, webhook_secret_identity
from common.db.events import EventType, NewEvent
from common.db.pool import Database
from common.secrets import Keyring

APPLICATION = "app-one"
OTHER_APPLICATION = "app-two"
DOMAIN = "customer.example"


async def add_application(
    database: Database, keyring: Keyring, webhook_url: str | None, application_id: str = APPLICATION
) -> str:
    """Returns the webhook secret."""
    secret = minting.mint_webhook_secret()
    async with database.transaction() as connection:
        await create_application(
            connection,
            NewApplication(
                application_id,
                name=application_id,
                cname_target=f"{application_id}.partner.example",
                client_secret=b"",
                webhook_secret=keyring.seal(secret.encode(), webhook_secret_identity(application_id)),
                webhook_url=webhook_url,
            ),
        )
    return secret


def an_event(
    event_type: EventType = "domain.record_missing",
    *,
    domain: str | None = DOMAIN,
    subdomain: str | None = None,
    application_id: str = APPLICATION,
    **fields: Any,
) -> NewEvent:
    return NewEvent(application_id, event_type, domain, subdomain, {"user_id": None} | fields)


async def record(database: Database, event: NewEvent | None = None) -> str:
    async with database.transaction() as connection:
        return await events.record(connection, event or an_event())


async def delivery_of(database: Database, event_id: str, application_id: str = APPLICATION) -> deliveries.Delivery:
    async with database.connection() as connection:
        [delivery] = await deliveries.list_deliveries(
            connection, application_id, before=None, limit=1, event_id=event_id
        )
    return delivery
