"""Assigns listener pairs to workers: plain bookkeeping that decides and returns the work to do. No I/O.

Every pair has one worker of its own. The rules, in the order `plan` applies them:

    a worker is condemned  when its loop has not beaten for HUNG_SECONDS, when it takes START_SECONDS to begin,
                           or when it outlives its time to finish; it is killed, but first:
    a pair is adopted      by the least burdened serving worker while its own worker does not serve
    a pair is released     by its adopter once its own worker serves again
    a worker is admitted   to its pair once it is ready and the roster is open
    a worker is started    for a pair that has none, after a pause that grows while its workers keep failing
    a worker is renewed    (SIGHUP) one at a time: its successor serves first, then the old one finishes, and takes
                           its time
    all finish             (SIGTERM) once every worker is idle or the grace is over; until then all accept
    all leave              (an upgrade) at once, and take their time: others accept by then

The sockets themselves outlive every worker, so no order of these events loses a queued client.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from enum import Enum, auto

from common.retry_pauses import retry_pause_seconds
from edge.process.worker_messages import Adopt, Command, Drain, Finish, Release

HUNG_SECONDS = 2.0
START_SECONDS = 30.0
FINISH_SLACK_SECONDS = 2.0  # beyond its grace a worker needs a moment to be gone
MINIMUM_EXIT_SECONDS = 1.0  # what a worker still gets when the grace of the whole edge is over
STABLE_SECONDS = 10.0  # a worker that served this long was no failure to start
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 10.0


# The work to do ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Start:
    """Start a worker for the pair."""

    worker: int
    pair: int


@dataclass(frozen=True, slots=True)
class Send:
    """Send the worker a command."""

    worker: int
    command: Command


@dataclass(frozen=True, slots=True)
class Kill:
    """Kill the worker."""

    worker: int
    reason: str


@dataclass(frozen=True, slots=True)
class CloseListeners:
    """Close the listeners: all workers were sent `Finish`, and none will accept again."""


Work = Start | Send | Kill | CloseListeners


# What is known -------------------------------------------------------------------------------------------


class WorkerPhase(Enum):
    """The phases of a worker, from its start to its exit."""

    STARTING = auto()
    READY = auto()  # could accept
    SERVING = auto()  # was sent `Adopt`
    FINISHING = auto()  # was sent `Finish`, accepts no more
    CONDEMNED = auto()  # killed, its exit is not seen yet


@dataclass(slots=True)
class TrackedWorker:
    """One process, from its start to its exit; numbers are never used twice."""

    number: int
    pair: int
    started_at: float
    last_beat_at: float
    phase: WorkerPhase = WorkerPhase.STARTING
    ready_from: float | None = None
    finish_by: float | None = None
    is_draining: bool = False
    is_idle: bool = False

    def fault(self, now: float) -> str | None:
        """Return why the worker must be killed, None if it need not be."""
        if self.phase is WorkerPhase.CONDEMNED:
            return None
        if self.phase is WorkerPhase.STARTING:
            return "did not become ready in time" if now - self.started_at > START_SECONDS else None
        if self.finish_by is not None and now > self.finish_by + FINISH_SLACK_SECONDS:
            return "did not finish in time"
        return "its loop stands still" if now - self.last_beat_at > HUNG_SECONDS else None


@dataclass(slots=True)
class _PairState:
    adopter: int | None = None
    failures: int = 0
    not_before: float = 0.0


def pause_seconds(failures: int) -> float:
    """Return how long a pair waits for its next worker after so many failures in a row."""
    return retry_pause_seconds(failures, first=FIRST_PAUSE_SECONDS, longest=LONGEST_PAUSE_SECONDS)


def _minimum_exit_time(until: float, now: float) -> float:
    return max(until, now + MINIMUM_EXIT_SECONDS)


class Roster:
    """The workers of one edge. Owned by the supervisor, which reports events to it and executes `plan`.

    Times are the caller's monotonic clock, in seconds.
    """

    def __init__(self, pairs: int, *, grace_seconds: float, handover_seconds: float) -> None:
        """Begin without workers.

        What still runs in a worker has `grace_seconds` when the edge ends, `handover_seconds` when other workers accept
        in its place.
        """
        self.workers: dict[int, TrackedWorker] = {}
        self.starts = 0
        self._pairs = [_PairState() for _ in range(pairs)]
        self._grace_seconds = grace_seconds
        self._handover_seconds = handover_seconds
        self._to_renew: deque[int] = deque()
        self._is_open = False
        self._is_leaving = False
        self._drain_until: float | None = None
        self._is_closed = False

    def __repr__(self) -> str:
        workers = ", ".join(f"{w.number}@{w.pair} {w.phase.name.lower()}" for w in self.workers.values())
        return f"<Roster {workers or 'empty'}>"

    @property
    def is_prepared(self) -> bool:
        """Return whether every pair has a worker that accepts or could."""
        fit = {w.pair for w in self.workers.values() if w.phase in {WorkerPhase.READY, WorkerPhase.SERVING}}
        return len(fit) == len(self._pairs)

    @property
    def is_full(self) -> bool:
        """Return whether every pair's own worker serves."""
        return all(self._serving_worker(pair) for pair in range(len(self._pairs)))

    @property
    def is_draining(self) -> bool:
        """Return whether the edge ends, or leaves its pairs to others."""
        return self._drain_until is not None

    @property
    def is_over(self) -> bool:
        """Return whether the pairs are closed and no worker is left."""
        return self._is_closed and not self.workers

    # Events ----------------------------------------------------------------------------------------------

    def ready(self, number: int, now: float) -> None:
        """Note that the worker could accept."""
        worker = self.workers.get(number)
        if worker and worker.phase is WorkerPhase.STARTING:
            worker.phase = WorkerPhase.READY
            worker.ready_from = worker.last_beat_at = now

    def beat(self, number: int, now: float, *, is_idle: bool) -> None:
        """Note a worker's heartbeat."""
        if worker := self.workers.get(number):
            worker.last_beat_at, worker.is_idle = now, is_idle

    def exited(self, number: int, now: float) -> None:
        """Note that the worker has exited."""
        worker = self.workers.pop(number, None)
        if worker is None or worker.finish_by is not None:
            return
        pair = self._pairs[worker.pair]
        was_stable = worker.ready_from is not None and now - worker.ready_from >= STABLE_SECONDS
        pair.failures = 0 if was_stable else pair.failures + 1
        pair.not_before = now + pause_seconds(pair.failures)

    def supervisor_stalled(self, now: float) -> None:
        """Forgive missing heartbeats: the supervisor itself stood still meanwhile."""
        for worker in self.workers.values():
            worker.last_beat_at = now

    def renew(self) -> None:
        """Replace every worker that is there now."""
        if not self.is_draining:
            self._to_renew = deque(self.workers)

    def open(self) -> None:
        """Let workers accept from now on."""
        self._is_open = True

    def drain(self, now: float) -> None:
        """End the edge; calling it again changes nothing."""
        if self._drain_until is None or self._is_leaving:
            self._is_leaving = False
            self._end_by(now + self._grace_seconds)

    def leave(self, now: float) -> None:
        """Leave every pair to another generation's workers."""
        if self._drain_until is None:
            self._is_leaving = True
            self._end_by(now + self._handover_seconds)

    # Decisions -------------------------------------------------------------------------------------------

    def plan(self, now: float) -> list[Work]:
        """Return the work that has to be done now, in this order. Each piece is returned once."""
        kills = self._condemn(now)
        work = [*self._admit(), *self._adopt_unattended_pairs(), *kills]
        if self._drain_until is None:
            return [*work, *self._start_missing_workers(now), *self._renew(now)]
        return [*work, *self._wind_up(now, self._drain_until)]

    def _condemn(self, now: float) -> list[Work]:
        work: list[Work] = []
        for worker in self.workers.values():
            reason = worker.fault(now)
            if reason is None and self.is_draining and worker.phase in {WorkerPhase.STARTING, WorkerPhase.READY}:
                reason = "came too late to serve"
            if reason is not None:
                worker.phase = WorkerPhase.CONDEMNED
                work.append(Kill(worker.number, reason))
        return work

    def _admit(self) -> list[Work]:
        admitted = [w for w in self.workers.values() if w.phase is WorkerPhase.READY] if self._is_open else []
        for worker in admitted:
            worker.phase = WorkerPhase.SERVING
        return [Send(worker.number, Adopt(worker.pair)) for worker in admitted]

    def _adopt_unattended_pairs(self) -> list[Work]:
        """Give orphaned pairs an adopter, and let adopters go where the pair's own worker serves."""
        work: list[Work] = []
        for index, pair in enumerate(self._pairs):
            adopter = self._serving(pair.adopter)
            if self._serving_worker(index):
                if adopter:
                    work.append(Send(adopter.number, Release(index)))
                pair.adopter = None
            elif adopter is None:
                adopter = self._least_burdened()
                pair.adopter = adopter.number if adopter else None
                if adopter:
                    work.append(Send(adopter.number, Adopt(index)))
        return work

    def _start_missing_workers(self, now: float) -> list[Work]:
        work: list[Work] = []
        for index, pair in enumerate(self._pairs):
            if now >= pair.not_before and not self._serving_worker(index) and not self._has_starting_worker(index):
                work.append(self._start(index, now))
        return work

    def _renew(self, now: float) -> list[Work]:
        """Replace one worker at a time, and only while no pair lacks its own."""
        while self._to_renew and self._to_renew[0] not in self.workers:
            self._to_renew.popleft()
        if not self._to_renew or not self.is_full:
            return []
        old = self.workers[self._to_renew[0]]
        if old.phase is not WorkerPhase.SERVING or self._has_starting_worker(old.pair):
            return []
        successor = self._serving_worker(old.pair)
        if successor and successor is not old:
            return [self._finish(old, now + self._handover_seconds, now)]
        pair = self._pairs[old.pair]
        return [self._start(old.pair, now)] if now >= pair.not_before else []

    def _wind_up(self, now: float, until: float) -> list[Work]:
        serving = [worker for worker in self.workers.values() if worker.phase is WorkerPhase.SERVING]
        work: list[Work] = []
        for worker in serving:
            if not worker.is_draining:
                worker.is_draining, worker.is_idle = True, False  # its earlier reports do not count
                work.append(Send(worker.number, Drain()))
        if self._is_closed:
            return self._shorten_deadlines(now, until)
        if now < until and not self._is_leaving and not all(worker.is_idle for worker in serving):
            return work
        self._is_closed = True
        finish_by = _minimum_exit_time(until, now)
        return [*work, *(self._finish(worker, finish_by, now) for worker in serving), CloseListeners()]

    def _shorten_deadlines(self, now: float, until: float) -> list[Work]:
        """Shorten the time of workers that were given more than there is by now."""
        finish_by = _minimum_exit_time(until, now)
        late = [
            worker
            for worker in self.workers.values()
            if worker.phase is WorkerPhase.FINISHING and worker.finish_by is not None and worker.finish_by > finish_by
        ]
        return [self._finish(worker, finish_by, now) for worker in late]

    # Small steps -----------------------------------------------------------------------------------------

    def _end_by(self, until: float) -> None:
        self._drain_until = until
        self._to_renew.clear()

    def _start(self, pair: int, now: float) -> Start:
        self.starts += 1
        worker = TrackedWorker(self.starts, pair, started_at=now, last_beat_at=now)
        self.workers[worker.number] = worker
        return Start(worker.number, pair)

    def _finish(self, worker: TrackedWorker, finish_by: float, now: float) -> Send:
        worker.phase, worker.finish_by = WorkerPhase.FINISHING, finish_by
        return Send(worker.number, Finish(finish_by - now))

    def _serving(self, number: int | None) -> TrackedWorker | None:
        worker = self.workers.get(number) if number is not None else None
        return worker if worker and worker.phase is WorkerPhase.SERVING else None

    def _serving_worker(self, pair: int) -> TrackedWorker | None:
        """Return the pair's own serving worker; the newest where a successor stands beside the old one."""
        serving = (w for w in self.workers.values() if w.pair == pair and w.phase is WorkerPhase.SERVING)
        return max(serving, key=lambda worker: worker.number, default=None)

    def _has_starting_worker(self, pair: int) -> bool:
        return any(
            w.pair == pair and w.phase in {WorkerPhase.STARTING, WorkerPhase.READY} for w in self.workers.values()
        )

    def _least_burdened(self) -> TrackedWorker | None:
        burdens = Counter(pair.adopter for pair in self._pairs)
        serving = (worker for worker in self.workers.values() if worker.phase is WorkerPhase.SERVING)
        return min(serving, key=lambda worker: burdens[worker.number], default=None)
