"""What the tests of events and deliveries are made of: applications with a webhook, events, and what became of them."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_network
from random import Random
from typing import Any

from api.rules import application_tokens as minting
from bench.lab.sink import WebhookSink
from common.addresses import AddressPolicy
from common.clock import SystemClock
from common.db import deliveries, events, webhook_endpoints
from common.db.application_secrets import webhook_secret_identity
from common.db.applications import NewApplication, create_application
from common.db.deliveries import ClaimedDelivery
from common.db.events import EventType, NewEvent
from common.db.pool import Database
from common.dns import Resolver
from common.host_ports import HostPort
from common.ip_addresses import Network
from common.secrets import Keyring
from monitor.claims import Runner
from monitor.webhooks.deliveries import make_runner as runner_of_deliveries
from monitor.webhooks.sender import Sender
from tests.beside import beside
from tests.waiting import until

LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
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


async def note_answer(database: Database, application_id: str = APPLICATION) -> None:
    """The application's endpoint has answered: it may have several deliveries at once."""
    async with database.transaction() as connection:
        await connection.execute(
            "insert into webhook_endpoints (application_id) values ($1) on conflict do nothing", application_id
        )
        await webhook_endpoints.note_success(connection, application_id)


async def record(database: Database, event: NewEvent | None = None) -> str:
    async with database.transaction() as connection:
        return await events.record(connection, event or an_event())


async def delivery_of(database: Database, event_id: str, application_id: str = APPLICATION) -> deliveries.Delivery:
    async with database.connection() as connection:
        [delivery] = await deliveries.list_deliveries(
            connection, application_id, before=None, limit=1, event_id=event_id
        )
    return delivery


class HastyRandom(Random):
    """Chance that makes every retry due almost at once."""

    def uniform(self, a: float, b: float) -> float:
        return 1e-6


def a_sender(allowed: Sequence[Network] = LOOPBACK) -> Sender:
    resolver = Resolver([HostPort("127.0.0.1", 9)], AddressPolicy(LOOPBACK, ()))
    return Sender(resolver, AddressPolicy(allowed, ()))


def make_runner(
    database: Database,
    keyring: Keyring,
    *,
    hurry: bool = True,
    sender: Sender | None = None,
    lease_seconds: float = 10.0,
    poll_seconds: float = 0.1,
) -> Runner[ClaimedDelivery]:
    """A monitor's deliveries; in a `hurry`, without the waiting between attempts."""
    return runner_of_deliveries(
        database,
        sender or a_sender(),
        keyring,
        SystemClock(),
        HastyRandom() if hurry else Random(),
        lease_seconds=lease_seconds,
        poll_seconds=poll_seconds,
    )


@asynccontextmanager
async def delivering(
    database: Database,
    keyring: Keyring,
    *,
    hurry: bool = True,
    allowed: Sequence[Network] = LOOPBACK,
    poll_seconds: float = 0.1,
) -> AsyncIterator[Runner[ClaimedDelivery]]:
    runner = make_runner(database, keyring, hurry=hurry, sender=a_sender(allowed), poll_seconds=poll_seconds)
    async with beside(runner.run()):
        yield runner


async def fetch(database: Database, statement: str, *values: object) -> list[dict[str, Any]]:
    async with database.connection() as connection:
        return [dict(row) for row in await connection.fetch(statement, *values)]


async def until_status(
    database: Database, event_id: str, status: str, *, application_id: str = APPLICATION, seconds: float = 20.0
) -> None:
    async def has_status() -> bool:
        return (await delivery_of(database, event_id, application_id)).status == status

    await until(has_status, seconds=seconds)


async def until_failures(database: Database, event_id: str, count: int) -> None:
    async def has_failed() -> bool:
        return (await delivery_of(database, event_id)).failures >= count

    await until(has_failed)


async def settle(database: Database) -> None:
    """Until a monitor has had every chance to do what it should not: another's event went through it meanwhile."""
    witness = f"witness-{secrets.token_hex(4)}"
    async with WebhookSink.serve() as sink:
        async with database.transaction() as connection:
            await connection.execute(
                "insert into applications (id, name, cname_target, client_secret, webhook_secret, webhook_url)"
                " select $1, $1, $1, '', '', $2",
                witness,
                sink.url,
            )
            event_id = await events.record(connection, an_event(application_id=witness))

        async def was_claimed() -> bool:
            rows = await fetch(database, "select attempts from deliveries where event_id = $1", event_id)
            return bool(rows[0]["attempts"])

        await until(was_claimed)
