"""Batches: bulk requests, accepted with all their items at once and worked off afterwards.

Owns the SQL of ``batches`` and ``batch_items``. A batch is claimed work (`monitor.claims`); its items are done one by
one in the order sent, each in a transaction that holds the batch's fence, together with what it does to
``monitored_domains``. So an item's effect and its outcome become true at the same moment, or neither does.

Rules
    an application's batches run in the order they were submitted, one at a time; the next one goes to the end of the
        line of applications
    an item that could not be understood has failed from the beginning
    a batch is over when every item has its outcome, and is remembered for `KEPT_DAYS` from its submission
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import asyncpg

from common import records
from common.actors import current_request_id, earlier_request_ids
from common.db.claim_table import IS_FREE, ClaimTable
from common.db.monitored_domains import CHANNEL, Labels
from common.db.session import Connection
from common.errors import FenceLost
from common.record_sets import Records

KEPT_DAYS = 7

Kind = Literal["create", "delete"]

_TABLE = ClaimTable("batches", key="id")


@dataclass(frozen=True, slots=True)
class Watch:
    """A request to have these records monitored, as `common.monitored_changes.add` does."""

    domain: str
    subdomain: str | None
    records: Records
    labels: Labels


@dataclass(frozen=True, slots=True)
class Unwatch:
    """A request to stop monitoring the name, as `common.monitored_changes.remove` does."""

    domain: str
    subdomain: str | None
    only_if_empty: bool = False


@dataclass(frozen=True, slots=True)
class InvalidItem:
    """An item that cannot be done for `reason`. The names are as sent; None if absent."""

    domain: str | None
    subdomain: str | None
    reason: str


NewItem = Watch | Unwatch | InvalidItem


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a batch that has no outcome yet."""

    number: int
    request: Watch | Unwatch


@dataclass(frozen=True, slots=True)
class Batch:
    """A claimed batch.

    `failures` counts claims that ended in an error since the last item was done; claims of monitors that died do not
    count.
    """

    id: str
    application_id: str
    kind: Kind
    fence: int
    attempts: int
    failures: int
    request_id: str | None = None

    @property
    def key(self) -> str:
        """Return what identifies the claim in its table: the batch's id."""
        return self.id


@dataclass(frozen=True, slots=True)
class FailedItem:
    """An item that failed, and why, in words for the batch's sender."""

    domain: str | None
    subdomain: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """The outcomes of a batch so far; `failed` are in the order sent."""

    application_id: str
    is_over: bool
    succeeded: int
    failed: tuple[FailedItem, ...]


async def submit(connection: Connection, application_id: str, kind: Kind, items: Sequence[NewItem]) -> str:
    """Accept a batch in the caller's transaction, and return its id.

    One that an earlier attempt at the present request submitted, whose answer was lost, is not submitted again.
    """
    if (submitted := await _find_earlier(connection, application_id)) is not None:
        return submitted
    batch_id = f"bat_{secrets.token_hex(16)}"
    await connection.execute(
        "insert into batches (id, application_id, kind, due_at, request_id) values ($1, $2, $3, now(), $4)",
        batch_id,
        application_id,
        kind,
        current_request_id(),
    )
    await connection.execute(
        """
        insert into batch_items (batch_id, number, domain, subdomain, request, reason, outcome)
        select $1, number - 1, domain, subdomain, request, reason, case when reason is not null then 'failed' end
        from unnest($2::text[], $3::text[], $4::jsonb[], $5::text[])
            with ordinality as item (domain, subdomain, request, reason, number)
        """,
        batch_id,
        [item.domain for item in items],
        [item.subdomain for item in items],
        [_as_json(item) for item in items],
        [item.reason if isinstance(item, InvalidItem) else None for item in items],
    )
    await connection.execute("select wake_listeners($1)", CHANNEL)
    return batch_id


async def _find_earlier(connection: Connection, application_id: str) -> str | None:
    attempts = earlier_request_ids()
    if not attempts:
        return None
    batch_id: str | None = await connection.fetchval(
        "select id from batches where application_id = $1 and request_id = any($2)", application_id, list(attempts)
    )
    return batch_id


async def find(connection: Connection, batch_id: str) -> BatchProgress | None:
    """Return the outcomes of the batch so far; None if there is none or it was submitted too long ago."""
    batch = await connection.fetchrow(
        "select application_id, due_at is null as is_over from batches"
        " where id = $1 and submitted_at > now() - make_interval(days => $2)",
        batch_id,
        KEPT_DAYS,
    )
    if batch is None:
        return None
    items = await connection.fetch(
        "select domain, subdomain, outcome, reason from batch_items where batch_id = $1 and outcome is not null"
        " order by number",
        batch_id,
    )
    failed = tuple(
        FailedItem(item["domain"], item["subdomain"], item["reason"]) for item in items if item["outcome"] == "failed"
    )
    return BatchProgress(batch["application_id"], batch["is_over"], len(items) - len(failed), failed)


# As claimed work ------------------------------------------------------------------------------------------


# Each application's first batch that is not over, from one application to the next by the index: the others wait.
_FIRST = """
    with recursive first as (
        (select application_id, id, due_at, lease_until from batches where due_at is not null
            order by application_id, number limit 1)
        union all
        select next.* from first cross join lateral (
            select application_id, id, due_at, lease_until from batches
            where due_at is not null and application_id > first.application_id
            order by application_id, number limit 1) next
    )
"""

_CLAIM = f"""
    {_FIRST}, due as materialized (
        select id from batches
        where id in (select id from first where due_at <= now() and {IS_FREE} order by due_at limit $1)
            and due_at <= now() and {IS_FREE}
        for update skip locked
    )
    update batches set {ClaimTable.taken("$2")}
    from due where batches.id = due.id
    returning batches.id, application_id, kind, fence, attempts, failures, request_id
"""


async def claim(connection: Connection, /, *, most: int, lease_seconds: float) -> list[Batch]:
    """Claim at most `most` batches for `lease_seconds`: of each application its first that is not over."""
    return [Batch(**row) for row in await connection.fetch(_CLAIM, most, lease_seconds)]


extend = _TABLE.extend


async def postpone(connection: Connection, batch: Batch, /, *, delay_seconds: float, last_error: str) -> None:
    """End the claim after an error of ours, and make the batch due again in `delay_seconds`."""
    await _TABLE.try_write(
        connection,
        batch,
        "lease_until = null, last_error = $3, failures = failures + 1,"
        " due_at = clock_timestamp() + make_interval(secs => $4)",
        last_error,
        delay_seconds,
    )


async def next_due_seconds(connection: Connection, /) -> float | None:
    """Return in how many seconds the next batch that need not wait for another is due, or None if there is none."""
    seconds: float | None = await connection.fetchval(
        f"{_FIRST} select extract(epoch from min(due_at) - clock_timestamp())::float8 from first where {IS_FREE}"
    )
    return seconds


async def hold(connection: Connection, batch: Batch) -> None:
    """Lock the claimed batch until the transaction ends.

    Raises: `FenceLost`.
    """
    if not await connection.fetchval(
        "select true from batches where id = $1 and fence = $2 and lease_until is not null for no key update",
        batch.id,
        batch.fence,
    ):
        raise FenceLost(f"batch {batch.id} was claimed by another monitor")


async def next_item(connection: Connection, batch: Batch) -> Item | None:
    """Return the first item that has no outcome yet, or None. The caller holds the batch."""
    row = await connection.fetchrow(
        "select number, domain, subdomain, request from batch_items where batch_id = $1 and outcome is null"
        " order by number limit 1",
        batch.id,
    )
    return None if row is None else Item(row["number"], _request(batch.kind, row))


async def record_outcome(connection: Connection, batch: Batch, item: Item, *, failure: str | None) -> None:
    """Record that the item succeeded, or why it failed. The caller holds the batch.

    The commit does not wait for the disk (seen: 5 ms an item, 1.5 without): a server that crashes forgets the outcome
    and what the item did together, and `record_over` makes all of them durable.
    """
    await connection.execute("set local synchronous_commit = off")
    await connection.execute(
        "update batch_items set outcome = case when $3::text is null then 'succeeded' else 'failed' end, reason = $3"
        " where batch_id = $1 and number = $2",
        batch.id,
        item.number,
        failure,
    )
    if batch.attempts > 1:
        await connection.execute("update batches set attempts = 1, failures = 0 where id = $1", batch.id)


async def record_over(connection: Connection, batch: Batch) -> None:
    """End a batch whose items all have their outcome, so that the application's next batch may run.

    The caller holds the batch.
    """
    await connection.execute(
        "update batches set due_at = null, lease_until = null, attempts = 0, failures = 0, last_error = null"
        " where id = $1",
        batch.id,
    )
    await connection.execute(
        """
        with next as (
            update batches set due_at = greatest(due_at, clock_timestamp()) where id = (
                select id from batches where application_id = $2 and due_at is not null order by number limit 1)
            returning id
        )
        select wake_listeners($1) from next
        """,
        CHANNEL,
        batch.application_id,
    )


# What an item asks for, between its acceptance and its turn -------------------------------------------------


def _as_json(item: NewItem) -> dict[str, Any]:
    """Return what the item asks for, as it is stored until its turn."""
    match item:
        case Watch(records=watched, labels=labels):
            return {"records": [records.as_json(record) for record in watched], "labels": asdict(labels)}
        case Unwatch(only_if_empty=only_if_empty):
            return {"only_if_empty": only_if_empty}
        case InvalidItem():
            return {}


def _request(kind: Kind, row: asyncpg.Record) -> Watch | Unwatch:
    """Return the request that `_as_json` stored."""
    domain, subdomain, stored = row["domain"], row["subdomain"], row["request"]
    if kind == "delete":
        return Unwatch(domain, subdomain, stored["only_if_empty"])
    watched = tuple(map(records.from_json, stored["records"]))
    return Watch(domain, subdomain, watched, Labels(**stored["labels"]))
