"""Deleting an application: all that it has, batch by batch, and at last the application itself.

Owns the order of the steps. The caller runs each call of a step in a short transaction of its own, so that neither
edges nor other applications wait, and a deletion that was interrupted is continued by the next.

Rules
    from `begin` on no token of the application works; what enrolled at that very moment is removed with the rest
    its domains leave with their orders and certificates, and are remembered as its own (`common.db.ownership`), and
    so are its cname targets
    the application's row goes last: until then its domains' routes stay whole
    a batch locks the application's row first, so that two processes that delete one application take turns
    what a batch changes names the request that asked for the deletion, also where another process continues it
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import asyncpg

from common.actors import caused_by
from common.db import domains, feed, ownership, policies
from common.db.pool import Database
from common.db.session import Connection

_MOST_COUNTED = 1_000_000
_MOST_INTERRUPTED = 100
_DOMAINS_A_BATCH = 50
"""The names of one batch, which holds their locks until it is committed: 15 ms or so."""

Step: TypeAlias = Callable[[Connection, str], Awaitable[int]]
"""Removes a batch of an application's rows. Returns how many were found: none, and the step is done."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The amount of data that an application has, shown before it is deleted. Counts stop at a million."""

    domains: int
    first_domains: tuple[str, ...]
    monitored_domains: int
    pending_deliveries: int


class RemovalStage(NamedTuple):
    """One step of a deletion: `words` name the rows that it removes, for people."""

    words: str
    remove: Step


async def measure(connection: Connection, application_id: str) -> Extent:
    """Count what an application has, and name its first five domains, for the question whether to delete it."""
    row = await connection.fetchrow(
        "select (select count(distinct domain)"
        "  from (select domain from domains where application_id = $1 limit $2) d) as domains,"
        " (select count(*) from (select from monitored_domains where application_id = $1 limit $2) m) as monitored,"
        " (select count(*) from (select from deliveries where application_id = $1 and status = 'pending' limit $2) p)"
        " as pending",
        application_id,
        _MOST_COUNTED,
    )
    assert row is not None, "a select without a table has one row"
    first = await domains.list_names(connection, application_id=application_id, most=5)
    return Extent(row["domains"], tuple(first), row["monitored"], row["pending"])


async def begin(connection: Connection, application_id: str) -> list[str] | None:
    """End the application's access, and return the cname targets that it gives up, or None if it does not exist."""
    row = await connection.fetchrow(
        "update applications set deleting_at = coalesce(deleting_at, now()) where id = $1"
        " returning cname_target, secure_cname_target",
        application_id,
    )
    if row is None:
        return None
    targets = [target for target in row.values() if target]
    await ownership.release_targets(connection, targets, application_id)
    return targets


async def list_interrupted(connection: Connection) -> list[str]:
    """Return the ids of applications whose deletion has begun and has no process removing a batch now, oldest first."""
    rows = await connection.fetch(
        "select id from applications where deleting_at is not null order by deleting_at limit $1"
        " for no key update skip locked",
        _MOST_INTERRUPTED,
    )
    return [row["id"] for row in rows]


async def finish(connection: Connection, application_id: str) -> bool:
    """Delete the application itself, and return whether it is gone: something that was added meanwhile keeps it."""
    try:
        async with connection.transaction():
            await connection.execute("delete from applications where id = $1", application_id)
            await policies.forget_application(connection, application_id)
    except asyncpg.ForeignKeyViolationError:
        return False
    return True


async def _lock(connection: Connection, application_id: str) -> None:
    """Lock the application's row, so that two processes that delete it take turns."""
    await connection.execute("select from applications where id = $1 for no key update", application_id)


async def _remove_domains(connection: Connection, application_id: str) -> int:
    names = await domains.list_names(connection, application_id=application_id, most=_DOMAINS_A_BATCH)
    if names:
        await domains.remove_all(connection, names, application_id)
    return len(names)


async def _remove_monitored(connection: Connection, application_id: str) -> int:
    return await _remove(
        connection,
        "delete from monitored_domains where id in"
        " (select id from monitored_domains where application_id = $1 limit 1000)",
        application_id,
    )


async def _remove_batches(connection: Connection, application_id: str) -> int:
    return await _remove(
        connection,
        "delete from batches where id in (select id from batches where application_id = $1 limit 20)",
        application_id,
    )


async def _remove_events(connection: Connection, application_id: str) -> int:
    """Remove a batch of events with their deliveries."""
    return await _remove(
        connection,
        "delete from events where id in (select id from events where application_id = $1 limit 1000)",
        application_id,
    )


async def _remove_sequences(connection: Connection, application_id: str) -> int:
    return await _remove(
        connection,
        "delete from event_sequences where (application_id, domain, subdomain) in (select application_id, domain,"
        " subdomain from event_sequences where application_id = $1 limit 1000)",
        application_id,
    )


async def _remove_shares(connection: Connection, application_id: str) -> int:
    return await _remove(
        connection,
        "delete from shares where id in (select id from shares where application_id = $1 limit 1000)",
        application_id,
    )


async def _remove_status_links(connection: Connection, application_id: str) -> int:
    return await _remove(
        connection,
        "delete from status_links where id in (select id from status_links where application_id = $1 limit 1000)",
        application_id,
    )


async def _remove_configurations(connection: Connection, application_id: str) -> int:
    return await _remove(
        connection,
        "delete from connect_configurations where id in"
        " (select id from connect_configurations where application_id = $1 limit 1000)",
        application_id,
    )


async def _remove_flows(connection: Connection, application_id: str) -> int:
    return await _remove(
        connection,
        "delete from connect_flows where id in (select id from connect_flows where application_id = $1 limit 1000)",
        application_id,
    )


async def _remove_answers(connection: Connection, application_id: str) -> int:
    return await _remove(
        connection,
        "delete from idempotent_requests where (application_id, key) in"
        " (select application_id, key from idempotent_requests where application_id = $1 limit 1000)",
        application_id,
    )


async def _remove(connection: Connection, statement: str, application_id: str) -> int:
    """Run a statement that deletes a batch of the application's rows, and return how many it deleted."""
    return int((await connection.execute(statement, application_id)).removeprefix("DELETE "))


STAGES: Final = (
    RemovalStage("connect flows", _remove_flows),  # first: they enrol domains
    RemovalStage("domains", _remove_domains),
    RemovalStage("monitored domains", _remove_monitored),
    RemovalStage("batches", _remove_batches),
    RemovalStage("events and deliveries", _remove_events),
    RemovalStage("event numbers", _remove_sequences),
    RemovalStage("sharing links", _remove_shares),
    RemovalStage("links to status pages", _remove_status_links),
    RemovalStage("configurations", _remove_configurations),
    RemovalStage("kept answers", _remove_answers),
)


Progress: TypeAlias = Callable[[RemovalStage, int], None]
"""Called after each batch with how many rows of the stage are removed so far, and at the stage's end."""


async def remove_all(database: Database, application_id: str, progress: Progress | None = None) -> dict[str, int]:
    """Remove all that an application has, and at last the application, in short transactions after `begin`.

    Returns how many rows were removed, by the stages' words.
    """
    async with database.connection() as connection:
        request_id = await _find_request_id(connection, application_id)
    removed = {stage.words: 0 for stage in STAGES}
    is_gone = False
    with caused_by(request_id):
        while not is_gone:
            for stage in STAGES:
                await _remove_stage(database, application_id, stage, removed, progress)
            async with database.transaction() as connection:
                await feed.set_request_id(connection)
                is_gone = await finish(connection, application_id)
    return removed


async def _remove_stage(
    database: Database, application_id: str, stage: RemovalStage, removed: dict[str, int], progress: Progress | None
) -> None:
    """Remove all rows of a stage, batch by batch, and count them in `removed`."""
    found = 1
    while found:
        async with database.transaction() as connection:
            await feed.set_request_id(connection)
            await _lock(connection, application_id)
            found = await stage.remove(connection, application_id)
        removed[stage.words] += found
        if progress is not None:
            progress(stage, removed[stage.words])


async def _find_request_id(connection: Connection, application_id: str) -> str | None:
    """Return the id of the request that asked for the deletion, or None where a command did."""
    request_id: str | None = await connection.fetchval(
        "select request_id from audit where subject = $1 and action = 'application.delete' and request_id is not null"
        " order by id desc limit 1",
        application_id,
    )
    return request_id
