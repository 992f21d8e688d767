"""Claims: the one pattern for everything due (orders, checks, deliveries and batch items).

The row itself is the job. It carries ``due_at, lease_until, fence, attempts`` and its aggregate's query module
carries the SQL, as a `Queue`; this module owns when to claim, how long, and what to do with failures.

Rules
    A row is claimed with FOR UPDATE SKIP LOCKED when it is due and no lease stands on it. Claiming commits a new
    fence and a short lease before any work begins, and counts an attempt.
    Work writes its outcome only ``where fence = <its own> and lease_until is not null``, and ends the lease with it;
    it raises `FenceLost` when that meets no row: another has the row, or a commit whose answer was lost has written it.
    The lease is extended while the work runs. After a crash at any step it lapses, and another worker claims the row.
    So a step may run twice, and only the writes under the last fence count.
    NOTIFY is a wake-up and may be lost: the next due time and a slow poll find the work as well.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from random import Random
from typing import Generic, Protocol, TypeVar

from common.actors import caused_by
from common.db.outages import level_of
from common.db.pool import Connection, Database
from common.errors import DatabaseUnavailable, FenceLost, FrontageError
from common.logs import get_logger
from common.retry_pauses import retry_pause_seconds
from common.tracing import Span, Tracer

_log = get_logger("monitor.claims")

LEASE_SECONDS = 10.0
POLL_SECONDS = 5.0
OUTAGE_PAUSE_SECONDS = 0.5
_SHORTEST_PAUSE_SECONDS = 0.05
_OVERDUE_PAUSE_SECONDS = 0.2  # a row that is due and cannot be had just now would have us spin
_INTERNAL = "an internal error, described in Frontage's log; it is tried again"


class Claim(Protocol):
    """A row taken for a while. Immutable."""

    @property
    def key(self) -> str:
        """Return the key of the row."""

    @property
    def fence(self) -> int:
        """Return the fence that the claim was committed with."""

    @property
    def attempts(self) -> int:
        """Return how often the row was claimed since it last succeeded, this time included."""


C = TypeVar("C", bound=Claim)


class Queue(Protocol[C]):
    """The SQL of one table of claims; each function is one statement on the caller's connection."""

    async def claim(self, connection: Connection, /, *, most: int, lease_seconds: float) -> list[C]:
        """Take up to `most` due rows, the longest due first."""

    async def extend(self, connection: Connection, claims: Collection[C], /, *, lease_seconds: float) -> set[str]:
        """Lease the claims that still run for `lease_seconds` from now, and return the keys still ours."""

    async def postpone(self, connection: Connection, claim: C, /, *, delay_seconds: float, last_error: str) -> None:
        """Note a failed attempt and end the lease; the row is due again after the delay."""

    async def next_due_seconds(self, connection: Connection, /) -> float | None:
        """Return the seconds until the next row without a lease is due, or None if there is none.

        Negative when the row is overdue.
        """


class WorkFailed(FrontageError):
    """An attempt came to nothing, in words for the row's owner. It is repeated, not before `retry_after_seconds`."""

    def __init__(self, words: str, *, retry_after_seconds: float = 0.0) -> None:
        super().__init__(words)
        self.retry_after_seconds = retry_after_seconds


def backoff_seconds(attempts: int, random: Random, *, first: float = 1.0, longest: float = 3600.0) -> float:
    """Return the pause after that many attempts, in seconds.

    Half of it is random, so that rows which failed together do not come back together.
    """
    return retry_pause_seconds(max(attempts, 1), first=first, longest=longest) * random.uniform(0.5, 1.0)


T = TypeVar("T")


async def retry_until_available(write: Callable[[], Awaitable[T]], *, seconds: float = 60.0) -> T:
    """Repeat the write of an outcome until Postgres is available.

    The write ends the lease that it asks for, so repeating it is safe.

    Raises: `DatabaseUnavailable` when the outage lasts longer than `seconds`.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while True:
        try:
            return await write()
        except DatabaseUnavailable:
            if loop.time() >= deadline:
                raise
            await asyncio.sleep(OUTAGE_PAUSE_SECONDS)


async def write_when_available(database: Database, write: Callable[[Connection], Awaitable[None]]) -> None:
    """Run the write of an outcome in a transaction of its own, through an outage; it is fenced.

    Raises: `FenceLost`, `DatabaseUnavailable`.
    """

    async def once() -> None:
        async with database.transaction() as connection:
            await write(connection)

    await retry_until_available(once)


class Runner(Generic[C]):
    """Claims due rows and has them performed, a bounded number at a time.

    Created by a role's wiring; its ``__main__`` runs `run` as a task and ends it by cancelling. `perform` writes its
    own outcome; what it raises is dealt with here. Mutable state: `_held`, the claims being worked on by task, whether
    the last claim left something due, and how many have ended since.
    """

    def __init__(
        self,
        database: Database,
        queue: Queue[C],
        perform: Callable[[C], Awaitable[None]],
        *,
        concurrency: int,
        random: Random,
        refill: int = 1,
        lease_seconds: float = LEASE_SECONDS,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        """Create a runner that performs at most `concurrency` claims at once.

        With `refill`, a runner that had to leave something due claims again when so many have ended: where work is
        quick and plentiful, a claim is then worth its statement.
        """
        self._database = database
        self._queue = queue
        self._perform = perform
        self._concurrency = concurrency
        self._random = random
        self._refill = refill
        self._is_more_due = False
        self._ended_since = 0
        self._lease_seconds = lease_seconds
        self._poll_seconds = poll_seconds
        self._wake = asyncio.Event()
        self._held: dict[asyncio.Task[None], C] = {}
        self._record_span: Callable[[float, str | None, C, bool], None] | None = None

    def __repr__(self) -> str:
        return f"<Runner holds {sorted(claim.key for claim in self._held.values())} of {self._concurrency}>"

    def trace(self, name: str, tracer: Tracer) -> None:
        """Have each claim's work exported as a span of that name."""

        def record(began: float, request_id: str | None, claim: C, is_done: bool) -> None:
            seconds = max(0.0, time.time() - began)
            attributes: dict[str, str | int] = {"frontage.key": claim.key, "frontage.attempts": claim.attempts}
            span = Span(
                name, began, seconds, request_id, is_request=False, has_failed=not is_done, attributes=attributes
            )
            tracer.record(span)

        self._record_span = record

    @property
    def held(self) -> int:
        """Return how many claims are being worked on."""
        return len(self._held)

    def wake(self) -> None:
        """Search for due work at once. Cheap, never blocks, may be called for nothing."""
        self._wake.set()

    async def run(self) -> None:
        """Work until cancelled; then stop the work and end its leases, so that another worker takes it at once."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._claim_for_ever(), name="claims: claim")
                tasks.create_task(self._extend_for_ever(), name="claims: extend leases")
        finally:
            await self._hand_back()

    async def _claim_for_ever(self) -> None:
        while True:
            self._wake.clear()
            try:
                pause = await self._claim_due()
            except DatabaseUnavailable as error:
                _log.log(level_of(error), "cannot claim work", error=str(error))
                pause = OUTAGE_PAUSE_SECONDS
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()

    async def _claim_due(self) -> float:
        """Start what is due, and return how many seconds may pass without a wake-up before the next search."""
        poll = self._poll_seconds * self._random.uniform(0.5, 1.0)
        free = self._concurrency - len(self._held)
        if not free:
            return poll
        self._ended_since = 0
        claims = await self._claim(free)
        for claim in claims:
            self._start(claim)
        self._is_more_due = len(claims) == free
        if self._is_more_due:
            return poll
        async with self._database.connection() as connection:
            due = await self._queue.next_due_seconds(connection)
        self._is_more_due = due is not None and due <= 0
        if self._is_more_due:
            return min(poll, _OVERDUE_PAUSE_SECONDS)
        return poll if due is None else min(poll, max(due, _SHORTEST_PAUSE_SECONDS))

    async def _claim(self, most: int) -> list[C]:
        """Claim up to `most` due rows. When cancelled, end the leases of what was claimed meanwhile.

        A commit under way may take effect after the cancellation.
        """
        claiming = asyncio.create_task(self._claim_now(most), name="claims: claim now")
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            with suppress(FrontageError):
                if claims := await claiming:
                    await self._extend(claims, 0.0)
            raise

    async def _claim_now(self, most: int) -> list[C]:
        async with self._database.transaction() as connection:
            return await self._queue.claim(connection, most=most, lease_seconds=self._lease_seconds)

    def _start(self, claim: C) -> None:
        task = asyncio.create_task(self._work(claim), name=f"claims: {claim.key}")
        self._held[task] = claim
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._held[task]
        self._ended_since += 1
        if self._is_more_due and self._ended_since >= self._refill:
            self.wake()

    async def _work(self, claim: C) -> None:
        request_id: str | None = getattr(claim, "request_id", None)
        began = time.time()
        with caused_by(request_id):
            is_done = await self._perform_or_postpone(claim)
        if self._record_span is not None:
            self._record_span(began, request_id, claim, is_done)

    async def _perform_or_postpone(self, claim: C) -> bool:
        """Perform the claim; postpone it when it fails. Return whether it was done."""
        try:
            await self._perform(claim)
            return True
        except FenceLost:
            _log.info("work was taken over", key=claim.key, fence=claim.fence)
        except DatabaseUnavailable as error:
            self._log_failure(claim, error)
        except WorkFailed as error:
            _log.warning("work failed", key=claim.key, attempts=claim.attempts, error=str(error))
            await self._postpone(claim, str(error), error.retry_after_seconds)
        except Exception:  # noqa: BLE001 - the task's root
            _log.exception("work failed unexpectedly", key=claim.key, attempts=claim.attempts)
            await self._postpone(claim, _INTERNAL, 0.0)
        return False

    async def _postpone(self, claim: C, words: str, at_least_seconds: float) -> None:
        """Record a failed attempt; the row is due again after a pause that grows with the attempts."""
        delay = max(at_least_seconds, backoff_seconds(claim.attempts, self._random))

        async def write(connection: Connection) -> None:
            await self._queue.postpone(connection, claim, delay_seconds=delay, last_error=words)

        try:
            await write_when_available(self._database, write)
        except DatabaseUnavailable as error:
            self._log_failure(claim, error)
        self.wake()  # the sleep in progress does not know of this due time

    def _log_failure(self, claim: C, error: DatabaseUnavailable) -> None:
        words = "work failed, and is claimed again after its lease"
        _log.log(level_of(error), words, key=claim.key, error=str(error))

    async def _extend_for_ever(self) -> None:
        """Extend the leases of running work, and cancel work whose row another worker has taken."""
        while True:
            await asyncio.sleep(self._lease_seconds / 3)
            held = dict(self._held)
            if not held:
                continue
            try:
                kept = await self._extend(list(held.values()), self._lease_seconds)
            except DatabaseUnavailable:
                continue  # the write of the outcome checks the fence
            for task, claim in held.items():
                if claim.key not in kept and task.cancel():
                    _log.info("work was taken over", key=claim.key, fence=claim.fence)

    async def _extend(self, claims: Sequence[C], lease_seconds: float) -> set[str]:
        async with self._database.transaction() as connection:
            return await self._queue.extend(connection, claims, lease_seconds=lease_seconds)

    async def _hand_back(self) -> None:
        """Cancel running work and end its leases."""
        held = dict(self._held)
        for task in held:
            task.cancel()
        await asyncio.gather(*held, return_exceptions=True)
        if held:
            with suppress(DatabaseUnavailable):
                await self._extend(list(held.values()), 0.0)
