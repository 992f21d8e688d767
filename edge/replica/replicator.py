"""The replicator: keeps this node's replica equal to Postgres; its lease (`edge.replica.lease`) reports the version.

Woken by notifications and by a slow poll, it catches up in one snapshot of the feed; wake-ups during a catch-up lead
to exactly one more. With FEED_URL it follows another server, a standby, which notifies no client: it polls that one.
Whatever Postgres does (gone, frozen, restored, another one), the replica serves what it last knew. LMDB's work, fsync
included, happens in one thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from functools import partial
from typing import TypeVar

import lmdb

from common.clock import Clock
from common.db.edge_nodes import LEASE_SECONDS, Condition, EdgeTraffic, FailedUpgrade, UnusableCertificates
from common.db.feed import FeedEntry, Snapshot, open_snapshot, read_head
from common.db.hosts import with_any_server
from common.db.listener import CHANNEL
from common.db.outages import level_of
from common.db.pool import refuse_transaction_pooler
from common.db.schema import check_schema
from common.db.session import DEFAULT_TIMEOUTS, Connection, SessionTimeouts, is_gone, open_session, translate_errors
from common.errors import DatabaseUnavailable, OperatorError
from common.logs import get_logger
from common.origin_faults import FailingOrigin
from common.retry_pauses import retry_pause_seconds
from common.secrets import Keyring
from common.settings import Settings
from edge.replica.cadence import Cadence
from edge.replica.catching_up import HeldCopy, Step, is_mass_removal, next_step
from edge.replica.certificate_keys import CertificateUse, is_key_missing
from edge.replica.condition import condition_of
from edge.replica.directory import replica_path
from edge.replica.lease import EdgeLease
from edge.replica.requests_applied import RequestsApplied
from edge.replica.store import Copy, Store, Update

_NAME = "frontage edge"
_MOST_LOGGED = 50
_POLL_SECONDS = 2.0  # also the heartbeat of the session that listens
_POLL_ANSWER_SECONDS = 2.0
_LAG_SECONDS = 5.0
_PROOF_SECONDS = 1.0  # as often as the lease
_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 2.0
_FLAGS_SECONDS = 0.5
_UNATTENDED_SECONDS = 3.0

_log = get_logger("edge.replica")
_T = TypeVar("_T")


class Replicator:
    """Follows the feed. One a node, owned by the supervisor: `run` as a task, `close` after the last reader.

    The replica's directory is made and locked by the constructor, so that workers started after it can read.
    """

    def __init__(
        self,
        settings: Settings,
        dsn_provider: Callable[[], str],
        on_applied: Callable[[int], None],
        clock: Clock,
        *,
        poll_seconds: float = _POLL_SECONDS,
        timeouts: SessionTimeouts = DEFAULT_TIMEOUTS,
        keyring: Keyring | None = None,
        software_version: str = "",
        proof_seconds: float = _PROOF_SECONDS,
        lease_seconds: float = LEASE_SECONDS,
        lag_seconds: float = _LAG_SECONDS,
    ) -> None:
        """Make or open the replica, and lock it.

        `keyring`: the keys of the workers; without them the condition has no report on keys. `software_version` is
        reported with the lease. `on_applied` is called in the loop with each version committed to the replica.
        `lag_seconds`: how far a standby may be behind before that is reported.

        Raises: `OperatorError` when the replica cannot be written by this process.
        """
        self._dsn_provider = dsn_provider
        self._on_applied = on_applied
        self._clock = clock
        self._cadence = Cadence(poll_seconds, is_notified=settings.feed_url is None)
        self._timeouts = timeouts
        self._proof_seconds = proof_seconds
        self._lag_seconds = lag_seconds
        self.store = Store(replica_path(settings.state_dir))
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="replica")
        self._lease = EdgeLease(
            self.store, dsn_provider, clock, timeouts, self._read_state, software_version, seconds=lease_seconds
        )
        self._session: Connection | None = None
        self._is_server_tried = False
        self._wake = asyncio.Event()
        self._is_reached = False
        self._equal_at: float | None = None
        self._cut_off_at = clock.monotonic()  # the last time; the store may say so from an earlier life
        self._held: tuple[HeldCopy, Copy] | None = None
        self._is_accepted = False
        self._is_damaged = False
        self._proven_at: float | None = None
        self.damages = 0  # copies made because what was stored was not what was written
        self._settings = settings
        self._keyring = keyring
        self.reader = self.store.reader()
        self._latest_certificate: dict[str, bytes] = {}
        self._write_error: str | None = None
        self._use = CertificateUse()

    # What others see -------------------------------------------------------------------------------------

    @property
    def version(self) -> int | None:
        """Return the version served, None while nothing was ever copied."""
        state = self.store.state
        return None if state.identity is None else state.version

    @property
    def connected(self) -> bool:
        """Return whether the feed is followed: notifications arrive at once, or polls are answered."""
        return self._is_reached and self._session is not None and not is_gone(self._session)

    @property
    def age_seconds(self) -> float | None:
        """Return the time since the replica was last seen to equal Postgres; None if not in this process' life.

        A standby that is followed does not know whether it is behind: the primary must have confirmed it, too.
        """
        equal_at, current_at = self._equal_at, self._lease.current_at
        if self._settings.feed_url is None:
            current_at = equal_at
        if equal_at is None or current_at is None:
            return None
        return self._clock.monotonic() - min(equal_at, current_at)

    @property
    def proof_age_seconds(self) -> float | None:
        """Return the time since all that is stored was last read and found to be what was written; None: not yet."""
        return None if self._proven_at is None else self._clock.monotonic() - self._proven_at

    @property
    def held_copy(self) -> HeldCopy | None:
        """Return the copy that waits for an operator's confirmation."""
        return None if self._held is None else self._held[0]

    @property
    def condition(self) -> Condition:
        """Return whether this edge can serve and follows the feed."""
        return condition_of(
            key_file=self._settings.key_file,
            lacks_key=self._lacks_key(),
            use=self._use,
            write_error=self._write_error,
            replica=replica_path(self._settings.state_dir),
            held=self.held_copy,
            admin=str(self._settings.edge_admin),
            lags=self._is_lagging(self._lag_seconds),
        )

    def report_failing(self, origins: tuple[FailingOrigin, ...]) -> None:
        """Show in the lease, from its next renewal on, that this edge cannot reach these origins."""
        self._lease.failing_origins = origins

    def report_failed_upgrade(self, failure: FailedUpgrade | None) -> None:
        """Show in the lease, from its next renewal on, that the last upgrade failed; None: it did not."""
        self._lease.failed_upgrade = failure

    def report_traffic(self, traffic: EdgeTraffic) -> None:
        """Show this in the lease, from its next renewal on, as the traffic of the last minute."""
        self._lease.traffic = traffic

    def report_certificates(self, use: CertificateUse) -> None:
        """Show in the condition and the lease what the workers make of the certificates."""
        self._use = use
        self._lease.unusable = UnusableCertificates(use.unusable, use.example)

    def _read_state(self) -> tuple[Condition, datetime | None]:
        """Return the condition, and since when a copy has been held back."""
        held = self.held_copy
        return self.condition, None if held is None else held.held_at

    def _lacks_key(self) -> bool:
        if self._keyring is None:
            return False
        return is_key_missing(self._keyring, {**self.reader.sample_certificates(), **self._latest_certificate})

    def accept_held_copy(self) -> bool:
        """Let the held copy serve; False when none is held."""
        self._is_accepted = self._held is not None
        self.wake()
        return self._is_accepted

    def check_readers(self) -> None:
        """Free what killed readers had reserved, which would pin old pages for ever; done before each catch-up."""
        self.store.environment.reader_check()

    def wake(self) -> None:
        """Catch up soon."""
        self._wake.set()

    def keep_lease(self) -> None:
        """Keep the lease when `run` ends: another writer follows at once, and the node serves on."""
        self._lease.is_kept = True

    def close(self) -> None:
        """Close the replica, after `run` has ended."""
        self._drop_session()
        self._thread.shutdown()
        self.store.close()

    # Life ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Follow the feed until cancelled.

        At its end readers are cut off, until a later writer has caught up: an upgrade's workers serve meanwhile, and
        hold handshakes of names that are enrolled between the two.

        Raises: `OperatorError` for what an operator must put right, but only while there is nothing to serve.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._follow(), name="replica follower")
                tasks.create_task(self._lease.run(), name="replica lease")
                tasks.create_task(self._publish_flags(), name="replica flags")
                tasks.create_task(self._prove(), name="replica proof")
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        finally:
            self._is_reached = False
            self._drop_session()
            with suppress(lmdb.Error):
                await self._in_thread(partial(self.store.set_flags, is_cut_off=True, is_unattended=False))

    async def _follow(self) -> None:
        """Catch up at each wake-up, and when a poll finds a difference.

        A commit beside another one may not notify (`common.db.feed.wake_listeners`).
        """
        failures = 0
        self._wake.set()
        while True:
            now = self._clock.monotonic()
            pause = retry_pause_seconds(failures, first=_FIRST_PAUSE_SECONDS, longest=_LONGEST_PAUSE_SECONDS)
            await _wait(self._wake, self._cadence.pause_seconds(now, self.version) if self._is_reached else pause)
            await asyncio.sleep(self._cadence.rest_seconds(self._clock.monotonic(), self._lease.pace_seconds))
            is_poll = self._is_reached and not self._wake.is_set()
            self._wake.clear()
            self._cadence.looks(self._clock.monotonic())
            try:
                if not (is_poll and await self._is_equal()):
                    await self.catch_up()
            except (DatabaseUnavailable, OperatorError, lmdb.Error) as error:
                if isinstance(error, lmdb.Error):
                    self._write_error = str(error)
                    self._lease.report_soon()
                if isinstance(error, OperatorError) and self.version is None:
                    raise
                if self._is_reached or not failures:
                    words = "cannot follow the change feed: what is known is served on"
                    _log.log(level_of(error), words, error=str(error))
                self._is_reached = False
                failures += 1
            else:
                self._is_reached = True
                self._write_error = None
                failures = 0

    # Catching up -----------------------------------------------------------------------------------------

    async def _is_equal(self) -> bool:
        """Return whether nothing is to be done; one statement, which also shows that the session lives."""
        if self._session is None or is_gone(self._session) or self._held is not None or self._is_damaged:
            return False
        try:
            with translate_errors(self._session):
                head = await read_head(self._session, timeout_seconds=_POLL_ANSWER_SECONDS)
        except BaseException:
            self._drop_session()
            raise
        if next_step(self.store.state, head) is not Step.NOTHING:
            return False
        self._note_equal()
        return True

    def _note_equal(self) -> None:
        self._equal_at = self._clock.monotonic()
        if self._settings.feed_url is None:
            self._lease.note_reached()

    async def catch_up(self) -> None:
        """Make the replica equal to one moment of the feed, or hold a copy that an operator must look at."""
        self.check_readers()
        if self._is_accepted and self._held is not None:
            await self._serve_copy(self._held[1])
        async with self._snapshot() as snapshot:
            step = Step.COPY if self._is_damaged else next_step(self.store.state, snapshot.head)
            if step is Step.CHANGES and not await self._apply_changes(snapshot):
                _log.error("the replica had left the feed: copying afresh", version=self.version)
                step = Step.COPY
            if step is Step.COPY and not await self._copy(snapshot):
                return
        self._held, self._is_accepted = None, False
        self._note_equal()

    async def _apply_changes(self, snapshot: Snapshot) -> bool:
        """Apply changes. Return False, with nothing applied, when they do not lead to the feed's checksum."""
        update = Update(self.store)
        requests = RequestsApplied()
        applied: list[str] = []
        count = 0
        try:
            await self._in_thread(update.begin)
            async for entries in snapshot.changes(self.store.state.positions):
                await self._in_thread(update.put, entries)
                self._note_certificates(entries)
                requests.note(entries)
                applied += [f"{each.kind} {each.key}" for each in entries[: _MOST_LOGGED - len(applied)]]
                count += len(entries)
            is_equal = await self._in_thread(update.commit, snapshot.head)
        finally:
            self._thread.submit(update.abort)  # not awaited: it must happen even if we are cancelled
        if is_equal:
            self._announce()
            if count:
                _log.debug("applied changes", changes=applied, count=count, version=self.version)
            for request_id, keys in requests.shown():
                _log.info("applied a request's changes", request_id=request_id, keys=keys, version=self.version)
        return is_equal

    async def _copy(self, snapshot: Snapshot) -> bool:
        """Copy the feed. Return False when the copy is held."""
        if self._held is not None and self._held[0].is_still_current(snapshot.head, self._clock.monotonic()):
            return False
        self._held = None
        copy = await self._in_thread(Copy, self.store, snapshot.head)
        async for entries in snapshot.everything():
            await self._in_thread(copy.put, entries)
        routes, removed = self.store.state.routes, copy.removed_routes
        if is_mass_removal(routes, removed):
            head, now = snapshot.head, self._clock.monotonic()
            held_at = self._clock.now()
            self._held = HeldCopy(head.identity, head.version, head.checksum, routes, removed, held_at, now), copy
            _log.error("a copy is held: it would remove many routes", routes=routes, removed=removed)
            return False
        await self._serve_copy(copy)
        return True

    async def _serve_copy(self, copy: Copy) -> None:
        self._held, self._is_accepted = None, False
        state = await self._in_thread(copy.swap)
        self._is_damaged = False
        if state.skew:
            _log.error("the feed's checksum is not that of its tables: were triggers off?", version=state.version)
        _log.info("serving a fresh copy", version=state.version, routes=state.routes)
        self._announce()

    def _note_certificates(self, entries: list[FeedEntry]) -> None:
        for entry in entries:
            if entry.kind == "certificate" and entry.content is not None:
                self._latest_certificate = {entry.key: entry.content.encode()}

    def _announce(self) -> None:
        self._on_applied(self.store.state.version)
        self._lease.report_soon()

    async def _in_thread(self, work: Callable[..., _T], *arguments: object) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    async def _prove(self) -> None:
        """Read what is stored again and again; what is not what was written is copied afresh."""
        while True:
            if self.version is not None and not self._is_damaged:
                found = await self._in_thread(self.store.prove)
                if found:
                    self._proven_at = self._clock.monotonic()
                elif found is False:
                    self._is_damaged = True
                    self.damages += 1
                    _log.error("the replica is not what was written to it: copying afresh", version=self.version)
                    self.wake()
            await asyncio.sleep(self._proof_seconds)

    # Postgres --------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _snapshot(self) -> AsyncIterator[Snapshot]:
        """Yield a snapshot of the feed, on the session kept for it; one that failed is replaced the next time."""
        if self._session is None or is_gone(self._session):
            self._session = await self._open_session()
        try:
            with translate_errors(self._session):
                async with open_snapshot(self._session) as snapshot:
                    yield snapshot
        except BaseException:
            self._drop_session()
            raise

    async def _open_session(self) -> Connection:
        feed_url = self._settings.feed_url
        if feed_url is not None:
            try:
                session = await open_session(with_any_server(feed_url), _NAME, self._timeouts)
            except OperatorError as error:
                raise OperatorError(str(error).replace("DATABASE_URL", "FEED_URL")) from error
        else:
            dsn = self._dsn_provider()
            if not self._is_server_tried:
                await refuse_transaction_pooler(dsn, _NAME, self._timeouts)
                self._is_server_tried = True
            session = await open_session(dsn, _NAME, self._timeouts)
        try:
            with translate_errors(session):
                await check_schema(session)
                session.add_termination_listener(self._on_session_end)
                if feed_url is None:
                    await session.add_listener(CHANNEL, lambda *_: self.wake())
        except BaseException:
            session.terminate()
            raise
        return session

    def _on_session_end(self, ended: object) -> None:
        if ended is self._session:  # else we have ended it
            self.wake()

    def _drop_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.terminate()

    # What readers must know ------------------------------------------------------------------------------

    async def _publish_flags(self) -> None:
        """Keep readers informed of what this node misses.

        They answer every HTTP-01 challenge (`edge.routing.certificates`) and hold handshakes of unknown names
        (`edge.tls.shared`) from the moment that the connection to Postgres is lost, or our lease has lapsed, until the
        replica has caught up, and while a copy waits for the operator; they hold no handshake for an order while no
        monitor obtains certificates.

        A monitor that is restarted is missed for `_UNATTENDED_SECONDS` without consequence; of monitors, an edge
        without Postgres knows nothing new.
        """
        while True:
            now = self._clock.monotonic()
            has_lapsed = now - self._lease.reached_at > self._lease.seconds
            has_lost_connection = not self.connected and self._equal_at is not None
            is_late = has_lost_connection or self._is_lagging(0) or self._is_behind
            is_cut_off = has_lapsed or is_late or self._held is not None
            if is_cut_off and not self.store.is_cut_off:
                self._cut_off_at = now
            is_unattended = self._lease.reached_at - self._lease.attended_at > _UNATTENDED_SECONDS
            if (is_cut_off, is_unattended) != (self.store.is_cut_off, self.store.is_unattended):
                with suppress(lmdb.Error):  # a full disk: `_follow` meets it, too, and reports it
                    await self._in_thread(
                        partial(self.store.set_flags, is_cut_off=is_cut_off, is_unattended=is_unattended)
                    )
                    self._on_applied(self.store.state.version)
            await asyncio.sleep(_FLAGS_SECONDS)

    def _is_lagging(self, seconds: float) -> bool:
        """Return whether the standby that this node follows has been behind the primary for longer."""
        since = self._lease.lagging_since
        return self._settings.feed_url is not None and since is not None and self._clock.monotonic() - since > seconds

    @property
    def _is_behind(self) -> bool:
        """Return whether the replica has not been equal to the feed since it was cut off.

        A new lease does not show that.
        """
        return self.store.is_cut_off and (self._equal_at is None or self._equal_at < self._cut_off_at)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
