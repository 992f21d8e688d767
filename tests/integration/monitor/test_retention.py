"""Retention: every expired row goes, in bounded batches found by an index, whatever happens to another step."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from random import Random
from typing import Any, cast

import asyncpg
import pytest

from common.clock import SystemClock
from common.db import delegations, events
from common.db.pool import Database, SessionTimeouts, open_pool
from common.db.retention import GROWTH, STEPS, RetentionBatch, RetentionStep
from common.db.session import Connection, open_session
from common.errors import DatabaseUnavailable
from common.metrics import Family
from monitor.retention import Retention
from tests import rows
from tests.query_plans import nodes
from tests.timeouts import UNHURRIED

APPLICATION = "app"


@pytest.fixture
async def connection(dsn: str) -> AsyncIterator[Connection]:
    session = await open_session(dsn, "frontage tests", UNHURRIED)
    await rows.add_application(session, APPLICATION)
    yield session
    session.terminate()


def retention(database: Database, *steps: RetentionStep) -> Retention:
    return Retention(database, SystemClock(), Random(1), steps=steps or STEPS)


async def sweep(database: Database) -> None:
    await retention(database).sweep()


async def add_old_events(connection: Connection, count: int) -> None:
    await connection.execute(
        "insert into events (application_id, type, fields, created_at)"
        " select $1, 'webhook.test', '{}', now() - interval '31 days' from generate_series(1, $2)",
        APPLICATION,
        count,
    )


def values(families: list[Family], name: str) -> dict[str, float]:
    [family] = [family for family in families if family.name == f"frontage_retention_{name}"]
    return {step: numbers[0] for (step,), numbers in family.samples.items()}


async def test_step_that_fails_does_not_stop_the_others(connection: Connection, dsn: str) -> None:
    await add_old_events(connection, 3)
    async with (
        connection.transaction(),
        open_pool(dsn, size=2, application_name="sweeper", timeouts=SessionTimeouts(lock_seconds=0.05)) as database,
    ):
        await connection.execute("lock table enrolments in access exclusive mode")
        swept = retention(database)
        await swept.sweep()
    assert await connection.fetchval("select count(*) from events") == 0
    assert values(swept.families(), "failures")["enrolments"] == 1
    assert values(swept.families(), "failures")["events"] == 0


async def test_error_that_is_no_outage_is_raised_after_the_other_steps(
    connection: Connection, database: Database
) -> None:
    await add_old_events(connection, 3)
    await connection.execute("alter table enrolments rename to renamed")
    with pytest.raises(asyncpg.UndefinedTableError):
        await sweep(database)
    assert await connection.fetchval("select count(*) from events") == 0


async def test_steps_take_turns_and_report(connection: Connection, database: Database) -> None:
    """2,500 events are three batches; a batch of another step comes between them."""
    await add_old_events(connection, 2500)
    await connection.execute(
        "insert into events (application_id, type, fields, created_at)"
        " values ($1, 'webhook.test', '{}', now() - interval '2 days')",
        APPLICATION,
    )
    order: list[str] = []

    def watched(step: RetentionStep) -> RetentionStep:
        async def erase(connection: Connection, most: int) -> RetentionBatch:
            order.append(step.name)
            return await step.erase(connection, most)

        return RetentionStep(step.name, erase, step.oldest, step.batch_rows)

    by_name = {step.name: step for step in STEPS}
    swept = retention(database, watched(by_name["events"]), watched(by_name["shares"]))
    await swept.sweep()
    assert order == ["events", "shares", "events", "events"]
    families = swept.families()
    assert values(families, "rows_erased") == {"events": 2500, "shares": 0}
    assert values(families, "last_success_timestamp_seconds").keys() == {"events", "shares"}
    assert values(families, "seconds")["events"] > 0
    assert values(families, "oldest_row_seconds") == {"events": pytest.approx(2 * 86400, abs=60)}


async def test_batch_that_takes_too_long_is_tried_again_with_fewer_rows(database: Database) -> None:
    sizes: list[int] = []

    async def erase(_: Connection, most: int) -> RetentionBatch:
        sizes.append(most)
        if most > 100:
            raise DatabaseUnavailable("the database did not answer in time")
        return RetentionBatch(0, 0)

    await retention(database, RetentionStep("slow", erase, "select now()")).sweep()
    assert sizes == [1000, 250, 62]


async def test_enrolments_that_no_limit_counts_are_erased_the_last_of_a_name_too(
    connection: Connection, database: Database
) -> None:
    await connection.execute(
        "insert into enrolments (domain, product, enrolled_at) values"
        " ('gone', 'power', now() - interval '31 days'), ('kept', 'power', now() - interval '29 days'),"
        " ('kept', 'power', now() - interval '31 days')"
    )
    await sweep(database)
    rows = await connection.fetch("select domain from enrolments")
    assert [row["domain"] for row in rows] == ["kept"]


async def test_sequences_are_erased_once_nothing_needs_them(connection: Connection, database: Database) -> None:
    for domain, subdomain in (
        ("enrolled.example", "shop"),
        ("monitored.example", None),
        ("told.example", None),
        ("gone.example", "shop"),
    ):
        await events.record(
            connection, events.NewEvent(APPLICATION, "domain.power", domain, subdomain, {"power_status": "success"})
        )
    await connection.execute("delete from events where domain <> 'told.example'")
    await connection.execute(
        "insert into domains (domain, product, application_id, application_url)"
        " values ('shop.enrolled.example', 'power', $1, 'https://origin.example')",
        APPLICATION,
    )
    await connection.execute(
        "insert into monitored_domains (id, application_id, domain, dns_records)"
        " values ('m', $1, 'monitored.example', '[]')",
        APPLICATION,
    )
    await sweep(database)
    assert await connection.fetchval("select count(*) from event_sequences") == 4  # not yet due
    await connection.execute("update event_sequences set review_at = now() - interval '1 second'")
    await sweep(database)
    rows = await connection.fetch("select domain, review_at > now() as is_later from event_sequences order by domain")
    assert [tuple(row) for row in rows] == [
        ("enrolled.example", True),
        ("monitored.example", True),
        ("told.example", True),
    ]


async def test_labels_are_erased_once_no_name_of_theirs_was_had_for_a_while(
    connection: Connection, database: Database
) -> None:
    for domain in ("enrolled.example", "wild.example", "prepared.example", "former.example", "gone.example"):
        await delegations.mint(connection, domain, APPLICATION)
    for statement in (
        "insert into domains (domain, product, application_id, application_url)"
        " select name, 'power', $1, 'https://origin.example'"
        " from unnest(array['enrolled.example', '*.wild.example']) name",
        "insert into preparations (domain, application_id, product, expires_at)"
        " values ('*.prepared.example', $1, 'power', now() + interval '1 day')",
        "insert into former_holders (domain, application_id) values ('former.example', $1)",
    ):
        await connection.execute(statement, APPLICATION)
    await sweep(database)
    assert await connection.fetchval("select count(*) from acme_delegations") == 5  # not yet due
    await connection.execute("update acme_delegations set review_at = now() - interval '1 second'")
    await delegations.mint(connection, "gone.example", APPLICATION)
    await sweep(database)
    assert await connection.fetchval("select count(*) from acme_delegations where review_at > now()") == 5, (
        "it is shown"
    )
    await connection.execute("update acme_delegations set review_at = now() - interval '1 second'")
    await sweep(database)
    rows = await connection.fetch("select domain from acme_delegations where review_at > now() order by domain")
    assert [row["domain"] for row in rows] == ["enrolled.example", "former.example", "prepared.example", "wild.example"]


async def test_sweeps_do_not_wait_for_rows_that_others_have_locked(connection: Connection, dsn: str) -> None:
    await add_old_events(connection, 4)
    async with (
        connection.transaction(),
        open_pool(dsn, size=2, application_name="sweeper", timeouts=SessionTimeouts(lock_seconds=0.05)) as database,
    ):
        await connection.execute("select from events order by created_at limit 1 for update")
        await sweep(database)
    assert await connection.fetchval("select count(*) from events") == 1


class Explaining:
    """A connection that keeps the plan of each statement, a tree of nodes, before it executes it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.plans: list[dict[str, Any]] = []

    def __getattr__(self, method: str) -> Callable[..., Awaitable[Any]]:
        async def run(statement: str, *arguments: Any) -> Any:
            plan = await self._connection.fetchval(f"explain (format json) {statement}", *arguments)
            self.plans.append(plan[0]["Plan"])
            return await getattr(self._connection, method)(statement, *arguments)

        return run


async def test_each_step_finds_its_rows_by_an_index(connection: Connection) -> None:
    """Where the planner may not read tables whole, it does not have to, and has nothing to sort."""
    await connection.execute("set enable_seqscan = off; set enable_bitmapscan = off")
    for step in STEPS:
        if step.name in ("edge_nodes", "monitor_nodes"):
            continue  # one row for each edge, and for each start of a monitor
        explaining = Explaining(connection)
        async with connection.transaction():
            await step.erase(cast("Connection", explaining), 10)
        table = "changes" if step.name == "tombstones" else step.name
        [plan] = [plan for plan in explaining.plans if any(node.get("Relation Name") == table for node in nodes(plan))]
        for node in nodes(plan):
            below = {each.get("Relation Name") for each in nodes(node)}
            is_whole = node["Node Type"] == "Seq Scan" or "Sort" in node["Node Type"]
            assert not (is_whole and table in below), json.dumps(plan, indent=1)


@pytest.mark.parametrize("reviewed", ["event_sequences", "acme_delegations"])
async def test_review_reads_no_table_whole_when_many_have_expired(connection: Connection, reviewed: str) -> None:
    """With many to review, the planner would rather hash all enrolled and all monitored names than look up a few."""
    await connection.execute("set session_replication_role = replica")
    for statement in (
        "insert into domains (domain, product, application_id, application_url)"
        " select 'd' || n, 'power', 'app', 'https://origin.example'",
        "insert into monitored_domains (id, application_id, domain, dns_records)"
        " select 'm' || n, 'app', 'd' || n, '[]'",
        "insert into event_sequences (application_id, domain, review_at)"
        " select 'app', 'e' || n, now() - interval '1 day'",
        "insert into acme_delegations (application_id, domain, label, review_at)"
        " select 'app', 'e' || n, lpad(translate(n::text, '0189', 'wxyz'), 32, 'a'), now() - interval '1 day'",
        "insert into preparations (domain, application_id, product, expires_at) select 'p' || n, 'app', 'power', now()",
        "insert into former_holders (domain, application_id) select 'f' || n, 'app'",
    ):
        await connection.execute(f"{statement} from generate_series(1, 3000) n")
    await connection.execute("analyze")
    [step] = [step for step in STEPS if step.name == reviewed]
    async with connection.transaction():
        assert await step.erase(connection, 10) == RetentionBatch(10, 10)
        # Of a table, what is counted here are the rows that were read without an index.
        tables = [reviewed, "domains", "monitored_domains", "events", "preparations", "former_holders"]
        assert not await connection.fetchval(
            "select sum(pg_stat_get_xact_tuples_returned(t::regclass)) from unnest($1::text[]) t", tables
        )


async def test_tables_that_steps_sweep_are_vacuumed_early(connection: Connection) -> None:
    """A batch is found behind the index entries of the rows erased before it, until a vacuum takes these away."""
    rows = await connection.fetch("select relname, reloptions from pg_class where reloptions is not null")
    vacuumed_early = {row["relname"] for row in rows if "autovacuum_vacuum_scale_factor=0.02" in row["reloptions"]}
    swept = {"changes" if step.name == "tombstones" else step.name for step in STEPS}
    erased_with_others = {"batch_items", "deliveries"}
    assert (swept | erased_with_others) - {"edge_nodes", "monitor_nodes"} <= vacuumed_early


async def test_what_bounds_each_table_is_written_down(connection: Connection) -> None:
    rows = await connection.fetch("select tablename from pg_tables where schemaname = 'public'")
    assert {row["tablename"] for row in rows} == set(GROWTH)
