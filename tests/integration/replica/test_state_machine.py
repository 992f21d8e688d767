"""Whatever happens in whatever order, the replica ends equal to Postgres.

Hypothesis interleaves transactions of two writers (all five kinds; inserts, updates, deletions, renames; the feed's
lock taken early or at commit), catch-ups, crashes before and after each write to LMDB, cancelled catch-ups, purged
tombstones, restores into another database, and roll-backs of the same one that nothing but the checksum can tell.
"""

from __future__ import annotations

import asyncio
import io
import secrets
import tempfile
from collections.abc import Coroutine
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any
from unittest.mock import patch

import asyncpg
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from common.db import feed
from common.db.session import Connection, SessionTimeouts, open_session
from edge.replica import replicator as replicator_module
from edge.replica.store import Copy, Update
from tests.conftest import TEMPLATE, execute_at, in_database
from tests.waiting import let_run

from . import parts

# in the order of their references
TABLES = ("applications", "error_pages", "domains", "certificates", "orders", "feed_shards", "changes")
TIMEOUTS = SessionTimeouts(lock_seconds=0.1)
WRITER_COUNT = 3
WRITERS = st.integers(0, WRITER_COUNT - 1)
SHARDS = 2
"""So few that transactions meet in one, too: there they wait for each other."""
NUMBERS = st.integers(0, 5)

# Each is about a writer's application, one of its domains, another one, and a number.
OPERATIONS = {
    "set application": "insert into applications"
    " (id, name, cname_target, client_secret, webhook_secret, application_url)"
    " values ('{app}', '', '{app}', '', '', '{other}')"
    " on conflict (id) do update set application_url = excluded.application_url",
    "name application": "update applications set name = '{other}' where id = '{app}'",
    "rename application": "update applications set id = '{app}-{number}', cname_target = '{app}-{number}'"
    " where id = '{app}'",
    "drop applications": "delete from applications where id like '{app}%'",
    "set route": "insert into domains (domain, product, application_id, application_url)"
    " values ('{one}', 'power', '{app}', '{other}')"
    " on conflict (domain, product) do update set application_url = excluded.application_url",
    "set second route": "insert into domains (domain, product, application_id, redirect_to)"
    " values ('{one}', 'secure', '{app}', '{other}') on conflict do nothing",
    "rename routes": "update domains set domain = '{other}' where domain = '{one}'",
    "drop routes": "delete from domains where domain = '{one}'",
    "set certificate": "insert into certificates"
    " (domain, application_id, issuer, chain, private_key, not_before, not_after)"
    " values ('{one}', '{app}', 'internal', '{other}', '\\x00ff', now(), now())"
    " on conflict (domain, application_id) do update set chain = excluded.chain, released_at = null",
    "release certificate": "update certificates set released_at = now() where domain = '{one}'",
    "rename certificate": "update certificates set domain = '{other}' where domain = '{one}'",
    "drop certificate": "delete from certificates where domain = '{one}'",
    "set order": "insert into orders (domain, application_id, hold_until)"
    " values ('{one}', '{app}', to_timestamp({number}))"
    " on conflict (domain) do update set state = 'running', hold_until = excluded.hold_until",
    "claim order": "update orders set attempts = attempts + 1, fence = fence + 1 where domain = '{one}'",
    "finish order": "update orders set state = 'issued' where domain = '{one}'",
    "rename order": "update orders set domain = '{other}' where domain = '{one}'",
    "drop order": "delete from orders where domain = '{one}'",
    "set error page": "insert into error_pages (application_id, html) values ('{app}', '{number}')"
    " on conflict (application_id) do update set html = excluded.html",
    "drop error page": "delete from error_pages where application_id = '{app}'",
    "switch maintenance": "update applications set maintenance = not maintenance where id = '{app}'",
}
WORK = st.lists(st.tuples(st.sampled_from(sorted(OPERATIONS)), NUMBERS, NUMBERS), min_size=1, max_size=8)


class Crashed(Exception):
    """The process died here."""


class Crash:
    """Dies at the n-th write to LMDB, before or after it."""

    def __init__(self, at: int, *, is_after: bool) -> None:
        self._left = at
        self._is_after = is_after

    def wrap(self, kind: type[Any], names: tuple[str, ...]) -> type[Any]:
        crash = self

        def dying(name: str) -> Any:
            def method(self: Any, *arguments: Any) -> Any:
                crash._left -= 1
                if crash._left == 0 and not crash._is_after:
                    raise Crashed
                result = getattr(kind, name)(self, *arguments)
                if crash._left == 0:
                    raise Crashed
                return result

            return method

        return type(kind.__name__, (kind,), {name: dying(name) for name in names})


class ReplicaFollowsPostgres(RuleBasedStateMachine):
    def __init__(self, server_dsn: str) -> None:
        super().__init__()
        self.server_dsn = server_dsn
        self.runner = asyncio.Runner()
        self.state_dir = Path(tempfile.mkdtemp(prefix="frontage-replica-"))
        self.name = f"machine_{secrets.token_hex(6)}"
        self.dsn = in_database(server_dsn, self.name)
        self.writers: list[Connection] = []
        self.transactions: list[Any] = [None] * WRITER_COUNT
        self.saved: dict[str, bytes] | None = None
        self.admin: Connection
        self.run(self.create_database())
        self.replicator = parts.make_replicator(self.dsn, self.state_dir)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    @initialize()
    def begin(self) -> None:
        for index in range(WRITER_COUNT):
            self.write_and_commit(
                index, [("set application", 0, 0), *(("set route", number, number) for number in range(6))]
            )
        self.back_up()
        self.catch_up()

    # Writers ---------------------------------------------------------------------------------------------

    @rule(index=WRITERS, operations=WORK)
    def write(self, index: int, operations: list[tuple[str, int, int]]) -> None:
        self.run(self.write_all(index, operations))

    @rule(index=WRITERS, operations=WORK)
    def write_and_commit(self, index: int, operations: list[tuple[str, int, int]]) -> None:
        self.write(index, operations)
        self.commit(index)

    @rule(index=WRITERS, operations=WORK, at=st.integers(0, 40))
    def write_during_a_catch_up(self, index: int, operations: list[tuple[str, int, int]], at: int) -> None:
        self.run(self.commit_during_catch_up(index, operations, at))

    async def commit_during_catch_up(self, index: int, operations: list[tuple[str, int, int]], at: int) -> None:
        await self.write_all(index, operations)
        task = asyncio.create_task(self.replicator.catch_up())
        await let_run(at)
        await self.end(index)
        await task

    async def write_all(self, index: int, operations: list[tuple[str, int, int]]) -> None:
        writer = self.writers[index]
        if self.transactions[index] is None:
            self.transactions[index] = writer.transaction()
            await self.transactions[index].start()
        for name, one, other in operations:
            statement = OPERATIONS[name].format(
                app=f"app-{index}", one=f"d{one}.w{index}.example", other=f"d{other}.w{index}.example", number=other
            )
            try:
                async with writer.transaction():
                    await writer.execute(statement)
            except asyncpg.IntegrityConstraintViolationError:
                continue  # that row was not to be had; we go on
            except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
                await self.end(index, rolls_back=True)  # it took the feed early, and so meets the others' locks here
                return

    @rule(index=WRITERS)
    def take_the_feed_early(self, index: int) -> None:
        """The deferred triggers run now, and their versions exist, unseen, while others catch up."""
        if self.transactions[index] is not None:
            self.run(self.fire_triggers(index))

    @rule(index=WRITERS)
    def commit(self, index: int) -> None:
        self.run(self.end(index))

    @rule(index=WRITERS)
    def roll_back(self, index: int) -> None:
        self.run(self.end(index, rolls_back=True))

    async def fire_triggers(self, index: int) -> None:
        try:
            await self.writers[index].execute("set constraints all immediate")
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
            await self.end(index, rolls_back=True)

    async def end(self, index: int, *, rolls_back: bool = False) -> None:
        """A writer that meets another's lock on its shard of the feed gives up: its COMMIT rolls back."""
        transaction, self.transactions[index] = self.transactions[index], None
        if transaction is not None:
            with suppress(asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
                await (transaction.rollback() if rolls_back else transaction.commit())

    @rule()
    def purge_tombstones(self) -> None:
        self.run(self.purge())

    async def purge(self) -> None:
        with suppress(asyncpg.LockNotAvailableError):
            async with self.admin.transaction():
                await feed.purge_tombstones(self.admin, older_than=timedelta(0))

    # Restores --------------------------------------------------------------------------------------------

    @rule()
    def back_up(self) -> None:
        self.saved = self.run(self.read_tables())

    @rule()
    def restore_as_another_database(self) -> None:
        self.run(self.restore_elsewhere())

    @rule()
    def roll_back_in_place(self) -> None:
        self.run(self.write_tables())

    @rule(forgotten=WORK, instead=WORK, index=WRITERS)
    def fork_history(
        self, forgotten: list[tuple[str, int, int]], instead: list[tuple[str, int, int]], index: int
    ) -> None:
        """Rolled back, and other changes made since: the same identity, and perhaps the same version."""
        self.back_up()
        self.write_and_commit(index, forgotten)
        self.catch_up()
        self.roll_back_in_place()
        self.write_and_commit(index, instead)

    async def restore_elsewhere(self) -> None:
        await self.drop_database()
        await self.create_database()
        await self.write_tables()

    async def read_tables(self) -> dict[str, bytes]:
        tables = {}
        async with self.admin.transaction(isolation="repeatable_read", readonly=True):
            for table in TABLES:
                output = io.BytesIO()
                await self.admin.copy_from_table(table, output=output)
                tables[table] = output.getvalue()
        return tables

    async def write_tables(self) -> None:
        """As a restore does, with triggers off; open transactions do not survive it."""
        assert self.saved is not None
        for index in range(WRITER_COUNT):
            await self.end(index, rolls_back=True)
        async with self.admin.transaction():
            await self.admin.execute("set local session_replication_role = replica")
            for table in reversed(TABLES):
                await self.admin.execute(f"delete from {table}")
            for table in TABLES:
                await self.admin.copy_to_table(table, source=io.BytesIO(self.saved[table]))

    # The replicator --------------------------------------------------------------------------------------

    @rule()
    def catch_up(self) -> None:
        before = parts.replica_contents(self.replicator)
        self.run(self.replicator.catch_up())
        if self.replicator.held_copy is not None:
            assert parts.replica_contents(self.replicator) == before

    @rule()
    def accept(self) -> None:
        """Without a precondition: whether a copy is held depends on time and on transaction ids, and Hypothesis refuses
        stories that are not the same when they are told again.
        """
        is_held = self.replicator.held_copy is not None
        assert self.replicator.accept_held_copy() == is_held

    @rule(steps=st.integers(0, 40))
    def cancel_a_catch_up(self, steps: int) -> None:
        self.run(self.cancel_after(steps))

    async def cancel_after(self, steps: int) -> None:
        task = asyncio.create_task(self.replicator.catch_up())
        await let_run(steps)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    @rule(at=st.integers(1, 5), is_after=st.booleans())
    def crash(self, at: int, is_after: bool) -> None:
        crash = Crash(at, is_after=is_after)
        with (
            patch.object(replicator_module, "Update", crash.wrap(Update, ("begin", "put", "commit"))),
            patch.object(replicator_module, "Copy", crash.wrap(Copy, ("__init__", "put", "swap"))),
            suppress(Crashed),
        ):
            self.run(self.replicator.catch_up())
        self.restart()

    @rule()
    def restart(self) -> None:
        self.replicator.close()
        self.replicator = parts.make_replicator(self.dsn, self.state_dir)
        contents = parts.replica_contents(self.replicator)
        assert self.replicator.store.state.checksum == parts.checksum(contents)

    @rule()
    def settle(self) -> None:
        """Nothing more happens: now they must be equal."""
        self.run(self.catch_up_and_compare())

    async def catch_up_and_compare(self) -> None:
        await self.replicator.catch_up()
        for _ in range(2):  # what was held may be of a history since forgotten: then its successor is held too
            if self.replicator.accept_held_copy():
                await self.replicator.catch_up()
        await parts.assert_equal(self.replicator, self.admin)

    # Life ------------------------------------------------------------------------------------------------

    async def create_database(self) -> None:
        await execute_at(self.server_dsn, f"create database {self.name} template {TEMPLATE} strategy file_copy")
        self.admin = await open_session(self.dsn, "admin", TIMEOUTS)
        self.writers = [await open_session(self.dsn, "writer", TIMEOUTS) for _ in range(WRITER_COUNT)]
        self.transactions = [None] * WRITER_COUNT
        await self.admin.execute(
            "create or replace function feed_shard() returns smallint language sql volatile as"
            f" 'select (pg_current_xact_id()::text::bigint % {SHARDS})::smallint'"
        )

    async def drop_database(self) -> None:
        for session in (*self.writers, self.admin):
            session.terminate()
        await execute_at(self.server_dsn, f"drop database {self.name} with (force)")

    def teardown(self) -> None:
        try:
            self.settle()
        finally:
            self.replicator.close()
            self.run(self.drop_database())
            self.runner.close()
            rmtree(self.state_dir)


@pytest.mark.timeout(600)  # finding the smallest failing story takes its time
def test_replica_ends_equal_to_postgres(server_dsn: str) -> None:
    run_state_machine_as_test(
        partial(ReplicaFollowsPostgres, server_dsn),  # type: ignore[arg-type]
        settings=settings(max_examples=20, stateful_step_count=50),
    )
