"""Many domains at once, straight into Postgres: rows by COPY, the change feed by one statement.

The feed's triggers write an entry a row, each under the feed's lock; for a million rows that takes minutes. Here they
are off within one transaction that holds the lock from its beginning, and the same entries, digests and checksum are
made with the same SQL functions over all rows at once, before anybody can see any of it. Every edge that copies or
catches up afterwards proves the result: its own checksum must be the feed's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice

import aiohttp
import asyncpg

from common.db.certificates import key_identity
from common.errors import OperatorError
from common.host_ports import HostPort
from common.secrets import Keyring

_BATCH_ROWS = 20_000
_APPLIED_SECONDS = 30.0
_POLL_SECONDS = 0.02
_ISSUER = "bench"

_FEED = """
    with entries as materialized (
        select kind, key, feed_digest(kind, key, content) as digest, row_number() over () as number
        from feed_entries e
        where kind in ('route', 'certificate')
            and not exists (select from changes c where c.kind = e.kind and c.key = e.key)
    ), listed as (
        insert into changes (kind, key, shard, version, deleted, digest)
        select kind, key, 0, feed_shards.version + number, false, digest from entries, feed_shards where shard = 0
    ), counted as (
        update feed_shards set
            version = version + (select count(*) from entries),
            checksum = checksum # (select coalesce(bit_xor(digest), 0) from entries)
        where shard = 0
    )
    select version + (select count(*) from entries) from feed
"""


@dataclass(frozen=True, slots=True)
class EnrolledDomain:
    """One powered domain with its certificate; PEM, the chain leaf first. The domain must never have been enrolled."""

    domain: str
    application_id: str
    application_url: str
    chain: str
    private_key: str


@dataclass(frozen=True, slots=True)
class BulkEnrolment:
    """The result of an enrolment. `version` is the feed's, with everything in it."""

    domains: int
    version: int
    rows_seconds: float
    feed_seconds: float


async def enrol(dsn: str, keyring: Keyring, enrolments: Iterable[EnrolledDomain]) -> BulkEnrolment:
    """Enrol all domains in one transaction."""
    connection = await asyncpg.connect(dsn)
    try:
        async with connection.transaction():
            start = time.perf_counter()
            await connection.execute("select from feed_shards where shard = 0 for update")
            await _set_triggers(connection, "disable")
            count = await _copy_rows(connection, keyring, iter(enrolments))
            copied = time.perf_counter()
            version = await connection.fetchval(_FEED)
            await _set_triggers(connection, "enable")
            await connection.execute("select pg_notify('frontage_changes', '')")
        return BulkEnrolment(count, version, copied - start, time.perf_counter() - copied)
    finally:
        await connection.close()


async def until_applied(admin: HostPort, version: int) -> None:
    """Wait until the edge with this admin port serves that version of the feed.

    Raises: `OperatorError` when it does not in time.
    """
    deadline = time.monotonic() + _APPLIED_SECONDS
    async with aiohttp.ClientSession(f"http://{admin}") as session:
        while time.monotonic() < deadline:
            async with session.get("/readyz") as response:
                if ((await response.json())["replica"]["version"] or 0) >= version:
                    return
            await asyncio.sleep(_POLL_SECONDS)
    raise OperatorError(f"the edge did not learn of the new domains within {_APPLIED_SECONDS:g} seconds")


async def _set_triggers(connection: asyncpg.Connection[asyncpg.Record], state: str) -> None:
    for table in ("domains", "certificates"):
        await connection.execute(f"alter table {table} {state} trigger follow")


async def _copy_rows(
    connection: asyncpg.Connection[asyncpg.Record], keyring: Keyring, enrolments: Iterable[EnrolledDomain]
) -> int:
    now = datetime.now(UTC)
    not_before, not_after = now - timedelta(hours=1), now + timedelta(days=30)
    count = 0
    while batch := list(islice(enrolments, _BATCH_ROWS)):
        count += len(batch)
        await connection.copy_records_to_table(
            "domains",
            columns=("domain", "product", "application_id", "application_url"),
            records=((each.domain, "power", each.application_id, each.application_url) for each in batch),
        )
        await connection.copy_records_to_table(
            "certificates",
            columns=(
                *("domain", "application_id", "issuer", "chain", "private_key"),
                *("not_before", "not_after", "live_at"),
            ),
            records=(
                (
                    *(each.domain, each.application_id, _ISSUER, each.chain),
                    keyring.seal(each.private_key.encode(), key_identity(each.domain)),
                    *(not_before, not_after, now),
                )
                for each in batch
            ),
        )
    return count
