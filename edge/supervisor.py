"""The supervisor: replicates, keeps the workers running, and tells each what to do.

It owns the listening sockets, the worker processes and the writer of the replica, and does what the roster
decides. It must not accept, nor open a certificate's key. Created by the edge's ``__main__``; everything it
started is gone when `run` returns.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from common.errors import OperatorError
from common.logs import get_logger
from common.metrics import Aggregate, Family
from common.settings import Settings
from edge.listeners import Listeners
from edge.supervisor_health import Health
from edge.supervisor_roster import CloseGates, Kill, Roster, Start, Tell, Work
from edge.worker_control import Beat, Begin, Ready, Report, Wake
from edge.worker_process import WorkerProcess

TICK_SECONDS = 0.25
OVERSLEPT_SECONDS = 1.0
GRACE_SECONDS = 10.0
REPLICATION_PAUSE_SECONDS = 1.0

log = get_logger("edge.supervisor")


class Replica(Protocol):
    """The writer's side of the replica: `edge.replica.replicator.Replicator`."""

    @property
    def version(self) -> int | None:
        """None while nothing was ever loaded."""

    @property
    def connected(self) -> bool: ...

    @property
    def age_seconds(self) -> float | None: ...

    @property
    def held_copy(self) -> Any: ...

    async def run(self) -> None: ...

    def accept_held_copy(self) -> bool: ...

    def check_readers(self) -> None: ...

    def close(self) -> None: ...


class Supervisor:
    """Runs the edge from the first worker's start to the last one's exit."""

    def __init__(
        self,
        settings: Settings,
        *,
        service: str,
        listeners: Listeners,
        replica: Callable[[Callable[[int], None]], Replica],
        announce: Callable[[], None],
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        """`service` names what workers compose (see `edge.worker`); `replica` gets the callback to call with
        each version applied; `announce` is called once, when the edge first serves. The listeners and the replica
        are ours to close.
        """
        self._settings = settings
        self._service = service
        self._listeners = listeners
        self._gates = listeners.gates
        self._descriptors = listeners.descriptors
        self._replica = replica(self._wake_workers)
        self._announce = announce
        self._is_announced = False
        self._roster = Roster(len(self._gates), grace_seconds=grace_seconds)
        self._processes: dict[int, WorkerProcess] = {}
        self._lives: set[asyncio.Task[None]] = set()
        self._measured = Aggregate()
        self._failures = 0
        self._news = asyncio.Event()

    # Life ------------------------------------------------------------------------------------------------

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set, then drain.

        Raises: `OperatorError` when the edge cannot begin to serve.
        """
        replication = asyncio.create_task(self._replicate(), name="replication")
        try:
            await self._supervise(stop, replication)
        finally:
            self._listeners.close()
            tasks = [replication, *self._lives]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._replica.close()

    def renew_workers(self) -> None:
        """Replace every worker by a fresh one, without losing a connection."""
        log.info("renewing workers")
        self._roster.renew()
        self._news.set()

    async def _supervise(self, stop: asyncio.Event, replication: asyncio.Task[None]) -> None:
        before = time.monotonic()
        while not self._roster.is_over:
            now = time.monotonic()
            if now - before > OVERSLEPT_SECONDS:
                self._roster.overslept(now)
            if stop.is_set():
                self._roster.drain(now)
            if replication.done():
                replication.result()
            for work in self._roster.plan(now):
                self._do(work)
            self._announce_when_ready()
            before = now
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_SECONDS):
                    await self._news.wait()
            self._news.clear()

    def _announce_when_ready(self) -> None:
        if not self._is_announced and self._is_ready():
            self._is_announced = True
            log.info("the edge serves", workers=len(self._gates), version=self._replica.version)
            self._announce()

    async def _replicate(self) -> None:
        """A replicator that fails takes nobody down: what it stored is served on.

        Raises: `OperatorError`, which is for the operator, but only before anything was served.
        """
        while True:
            try:
                await self._replica.run()
            except OperatorError as error:
                if not self._is_announced:
                    raise
                log.error("replication stopped", error=str(error))
            except Exception:
                log.exception("replication failed")
            await asyncio.sleep(REPLICATION_PAUSE_SECONDS)

    # Workers ---------------------------------------------------------------------------------------------

    def _do(self, work: Work) -> None:
        match work:
            case Start(worker, gate):
                self._start(worker, gate)
            case Tell(worker, order):
                log.info("telling a worker", worker=worker, order=str(order))
                self._processes[worker].tell(order)
            case Kill(worker, reason):
                log.error("killing a worker", worker=worker, pid=self._processes[worker].pid, reason=reason)
                self._processes[worker].kill()
            case CloseGates():
                self._listeners.close()

    def _start(self, worker: int, gate: int) -> None:
        begin = Begin(self._service, self._settings, gate, self._gates)
        try:
            process = WorkerProcess(worker, begin, self._descriptors, self._on_report)
        except OSError as error:
            log.error("a worker cannot be started", gate=gate, error=str(error))
            self._roster.exited(worker, time.monotonic())
            return
        log.info("worker started", worker=worker, gate=gate, pid=process.pid)
        self._processes[worker] = process
        life = asyncio.create_task(self._live(process), name=f"worker {worker}")
        self._lives.add(life)
        life.add_done_callback(self._lives.discard)

    async def _live(self, process: WorkerProcess) -> None:
        try:
            status = await process.run()
        except Exception:
            log.exception("a worker was lost", worker=process.number)
            status = -1
        log.info("worker exited", worker=process.number, pid=process.pid, status=status)
        self._failures += status != 0
        del self._processes[process.number]
        self._measured.retire(process.number)
        self._roster.exited(process.number, time.monotonic())
        self._news.set()
        self._replica.check_readers()  # a killed reader would pin old pages for ever

    def _on_report(self, number: int, report: Report) -> None:
        now = time.monotonic()
        match report:
            case Ready():
                self._roster.ready(number, now)
                self._news.set()
            case Beat(is_idle, families):
                self._roster.beat(number, now, is_idle=is_idle)
                self._measured.report(number, families)

    def _wake_workers(self, _version: int) -> None:
        wake = Wake()
        for process in self._processes.values():
            process.tell(wake)

    # The admin port's view -------------------------------------------------------------------------------

    def _is_ready(self) -> bool:
        return self._roster.is_full and not self._roster.is_draining and self._replica.version is not None

    def health(self) -> Health:
        workers = [
            {"gate": worker.gate, "pid": self._processes[number].pid, "state": worker.phase.name.lower()}
            for number, worker in self._roster.workers.items()
            if number in self._processes
        ]
        replica = {
            "version": self._replica.version,
            "age_seconds": self._replica.age_seconds,
            "connected": self._replica.connected,
            "held_copy": self._replica.held_copy,
        }
        return Health(self._is_ready(), {"workers": workers, "replica": replica})

    def accept_held_copy(self) -> bool:
        """False when no copy is held."""
        return self._replica.accept_held_copy()

    def measurements(self) -> list[Family]:
        serving = sum(worker["state"] == "serving" for worker in self.health().details["workers"])
        own = [
            Family.of("frontage_edge_workers_serving", "Workers that accept.", "gauge", serving),
            Family.of("frontage_edge_worker_starts", "Workers started.", "counter", self._roster.starts),
            Family.of("frontage_edge_worker_failures", "Workers that died.", "counter", self._failures),
            Family.of(
                "frontage_edge_replica_connected",
                "Whether Postgres is followed.",
                "gauge",
                self._replica.connected,
            ),
        ]
        if self._replica.version is not None:
            own.append(Family.of("frontage_edge_replica_version", "Version applied.", "gauge", self._replica.version))
        if self._replica.age_seconds is not None:
            age = self._replica.age_seconds
            own.append(Family.of("frontage_edge_replica_age_seconds", "Since the last catch-up.", "gauge", age))
        return [*own, *self._measured.families()]
