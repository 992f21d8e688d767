"""What the tests of the check are made of: a name server, an application that watches, a monitor that checks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from ipaddress import ip_network
from random import Random
from typing import Any

from bench.lab.server import NameServer
from common import monitored_changes
from common.addresses import AddressPolicy
from common.clock import SystemClock
from common.db import checks
from common.db.listener import Listener
from common.db.monitored_domains import CHANNEL, Labels, MonitoredKey
from common.db.pool import Database
from common.host_ports import HostPort
from common.records import parse_record
from monitor.checks.checking import Checking
from tests.beside import beside
from tests.waiting import until

from .. import parts
from ..parts import APPLICATION, fetch

LOOPBACK = AddressPolicy((ip_network("127.0.0.0/8"),), ())
BASE_URL = "https://frontage.test"
HOUR = 3600.0

__all__ = ["APPLICATION", "BASE_URL", "HOUR", "LOOPBACK", "fetch", "until"]


def a(host: str = "@", value: str = "192.0.2.1") -> dict[str, Any]:
    return {"type": "A", "host": host, "value": value, "ttl": 300}


def record(kind: str, host: str, value: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "host": host, "value": value, "ttl": 300, **more}


def address_of(server: NameServer) -> HostPort:
    return HostPort(server.host, server.port)


async def add_application(database: Database) -> None:
    """One with a webhook, so that its events have deliveries."""
    await parts.add_application(database)
    async with database.transaction() as connection:
        await connection.execute("update applications set webhook_url = 'https://partner.example/hook'")


async def watch(
    database: Database, domain: str, records: Iterable[dict[str, Any]], *, subdomain: str | None = None
) -> None:
    """What POST and PUT do."""
    async with database.transaction() as connection:
        parsed = tuple(map(parse_record, records))
        await monitored_changes.add(
            connection, MonitoredKey(APPLICATION, domain, subdomain), parsed, Labels("user-1", "job-1")
        )


def make_checking(
    database: Database,
    *servers: HostPort,
    interval_seconds: float = HOUR,
    authority_port: int = 53,
    checks_per_second: float = 1000.0,
    poll_seconds: float = 5.0,
    **more: float,
) -> Checking:
    return Checking(
        database,
        SystemClock(),
        Random(1),
        servers=servers,
        policy=LOOPBACK,
        interval_seconds=interval_seconds,
        base_url=BASE_URL,
        on_events=lambda: None,
        authority_port=authority_port,
        checks_per_second=checks_per_second,
        poll_seconds=poll_seconds,
        **more,
    )


@asynccontextmanager
async def running(*checkings: Checking, dsn: str | None = None) -> AsyncIterator[None]:
    listeners = [] if dsn is None else [Listener(dsn, checking.wake, channel=CHANNEL) for checking in checkings]
    async with beside(*(checking.run() for checking in checkings), *(listener.run() for listener in listeners)):
        yield


async def row_of(database: Database, domain: str, subdomain: str | None = None) -> dict[str, Any]:
    rows = await fetch(
        database,
        "select * from monitored_domains join checks using (id)"
        " where domain = $1 and subdomain is not distinct from $2",
        domain,
        subdomain,
    )
    return rows[0]


async def check_now(database: Database, checking: Checking, *domains: str) -> None:
    """Have them checked once more (all of them, if none is named), and wait for it."""
    due = (
        "update checks set due_at = now() from monitored_domains of_it where checks.id = of_it.id"
        " and (of_it.domain = any($1) or cardinality($1::text[]) = 0) returning checks.id, last_checked_at"
    )
    async with database.transaction() as connection:
        before = {row["id"]: row["last_checked_at"] for row in await connection.fetch(due, list(domains))}
    checking.wake()

    async def is_checked() -> bool:
        rows = await fetch(database, "select id, last_checked_at from monitored_domains where id = any($1)", [*before])
        now = {row["id"]: row["last_checked_at"] for row in rows}
        return all(now[each] not in (None, before[each]) for each in before)

    await until(is_checked, seconds=120)


async def check_until_known(database: Database, checking: Checking, *domains: str) -> None:
    """As `check_now`; a domain of which a question had no answer in time, as on a busy machine, is checked again."""
    await check_now(database, checking, *domains)
    async with asyncio.timeout(120):
        while unknown := await fetch(
            database,
            "select domain from monitored_domains join checks using (id) where attempts > 0"
            " and (domain = any($1) or cardinality($1::text[]) = 0)",
            list(domains),
        ):
            await check_now(database, checking, *(row["domain"] for row in unknown))


async def claim(database: Database, *, most: int = 1, lease_seconds: float = 0) -> list[checks.Check]:
    """Take what is due as a monitor does, but for having it done."""
    async with database.transaction() as connection:
        due = await checks.find_due(connection, most=most)
        return await checks.claim(connection, due[:most], lease_seconds=lease_seconds)


async def events_of(database: Database, domain: str | None = None) -> list[dict[str, Any]]:
    """Type and fields of what was recorded, in order."""
    rows = await fetch(
        database,
        "select type, domain, subdomain, sequence, fields from events"
        " where $1::text is null or domain = $1 order by domain, sequence",
        domain,
    )
    return [dict(row) for row in rows]


async def told(database: Database, domain: str | None = None) -> list[tuple[str, list[str]]]:
    """Each event in short: its kind, and the hosts of what was missing."""
    return [
        (
            event["type"].removeprefix("domain.record_"),
            [r["host"] for r in event["fields"]["data"]["records_non_propagated"]],
        )
        for event in await events_of(database, domain)
    ]
