"""The supervisor: keeps the workers of one generation running, and takes the active role on command.

It owns the worker processes, executes the commands of the upgrade parent and the decisions of the roster. It must not
accept connections, nor open a certificate's key. Created by `edge.process.supervisor_process`; everything it started
is gone when `run` returns.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import asdict
from itertools import islice, zip_longest
from typing import Any, Protocol

from common.builds import Build
from common.db.edge_nodes import FailedUpgrade
from common.errors import OperatorError
from common.logs import get_logger
from common.machine_metrics import measure_machine
from common.metrics import Aggregate, Family
from common.origin_faults import FailingOrigin, OriginIdentity
from common.settings import Settings
from common.traffic import TrafficReport
from edge.dns.service import DnsService
from edge.process.active_role import ActiveRole, Replica
from edge.process.generation_messages import Prepared, Report, Serving, StoodBack
from edge.process.health import EdgeHealth, View
from edge.process.listeners import Listeners
from edge.process.recent_traffic import RecentTraffic
from edge.process.roster import CloseListeners, Kill, Roster, Send, Start, Work
from edge.process.worker_messages import Beat, Compose, DomainCounts, Ready, Recovered, Wake
from edge.process.worker_messages import Report as WorkerReport
from edge.process.worker_process import WorkerProcess
from edge.replica.certificate_keys import CertificateUse, worst_use
from edge.upstream.breaker import MOST_REPORTED

TICK_SECONDS = 0.25
INACTIVE_TICK_SECONDS = 0.05  # the active generation wakes its own workers only; ours are woken by this tick
OVERSLEPT_SECONDS = 1.0
LAST_REPORT_SECONDS = 3.0

log = get_logger("edge.process.supervisor")


class TrafficSink(Protocol):
    """`edge.replica.traffic_reporter.TrafficReporter`, or a stand-in."""

    def add(self, report: TrafficReport) -> None:
        """Take a worker's counts."""

    async def run(self) -> None:
        """Report until `finish` is called; a failure is not raised."""

    def finish(self) -> None:
        """Have `run` end when it has written what was added last: no worker is left."""


class Supervisor:
    """Runs a generation from the first worker's start to the last one's exit."""

    def __init__(
        self,
        settings: Settings,
        *,
        service: str,
        listeners: Listeners,
        replica: Callable[[Callable[[int], None]], Replica],
        traffic: TrafficSink,
        build: Build,
        report: Callable[[Report], None],
    ) -> None:
        """Prepare to run; nothing is started.

        `service` names what workers compose (see `edge.process.worker`); `replica` gets the callback to call with each
        version applied, and is called whenever the active role is taken; `traffic` gets what the workers counted, in
        the active role or not; `report` sends to the upgrade parent. The creator closes the listeners; they are closed
        here once all workers have been sent `Finish`.
        """
        self._settings = settings
        self._service = service
        self._listeners = listeners
        self._pairs = listeners.pairs
        self._descriptors = listeners.descriptors
        view = View(self.health, self.measurements, self.accept_held_copy)
        self._dns = DnsService(settings, listeners.dns)
        self._active_role = ActiveRole(lambda: replica(self._wake_workers), view, listeners.admin, self._dns)
        self._traffic = traffic
        self._build = build
        self._recent_traffic = RecentTraffic()
        self._report = report
        self._is_begun = False
        self._is_open = False
        self._stop = asyncio.Event()  # replaced in `run`
        self._aim: Report | None = None
        self._failed_upgrade: FailedUpgrade | None = None
        self._roster = Roster(
            len(self._pairs),
            grace_seconds=settings.edge_drain_timeout_seconds,
            handover_seconds=settings.edge_upgrade_drain_seconds,
        )
        self._processes: dict[int, WorkerProcess] = {}
        self._lives: set[asyncio.Task[None]] = set()
        self._measured = Aggregate()
        self._failing: dict[int, list[FailingOrigin]] = {}  # as each worker last reported
        self._certificates: dict[int, CertificateUse] = {}  # as each worker last reported
        self._failures = 0
        self._news = asyncio.Event()

    # What the upgrade parent commands ------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Have workers that could accept."""
        self._is_begun = True
        self._aim = Prepared()
        self._news.set()

    def take_over(self) -> None:
        """Take the active role, and then accept."""
        self._aim = Serving()
        self._active_role.take(self._news.set)
        self._news.set()

    async def stand_back(self) -> None:
        """Give up the active role; the workers accept on."""
        self._aim = None
        await self._active_role.release(is_handed_over=True)
        self._report(StoodBack())

    def leave(self) -> None:
        """Leave every pair to another generation."""
        self._roster.leave(time.monotonic())
        self._news.set()

    def renew_workers(self) -> None:
        """Replace every worker by a fresh one, without losing a connection."""
        self._roster.renew()
        self._news.set()

    def upgrade_failed(self, failure: FailedUpgrade) -> None:
        """Show that the generation that was to follow did not serve."""
        self._failed_upgrade = failure
        self._news.set()

    # Life ------------------------------------------------------------------------------------------------

    async def run(self, stop: asyncio.Event) -> None:
        """Do as ordered until `stop` is set, then drain, after EDGE_SHUTDOWN_DELAY_SECONDS; or until it has left.

        Raises: `OperatorError` when it cannot begin to serve.
        """
        self._stop = stop
        reporting = asyncio.create_task(self._traffic.run(), name="traffic")
        try:
            await self._supervise(stop)
        finally:
            self._listeners.close()
            for task in self._lives:
                task.cancel()
            await asyncio.gather(*self._lives, return_exceptions=True)
            await self._active_role.release(is_handed_over=False)
            self._traffic.finish()
            await asyncio.wait({reporting}, timeout=LAST_REPORT_SECONDS)
            reporting.cancel()
            await asyncio.wait({reporting})

    async def _supervise(self, stop: asyncio.Event) -> None:
        before = time.monotonic()
        drain_at: float | None = None
        while not self._roster.is_over:
            now = time.monotonic()
            if now - before > OVERSLEPT_SECONDS:
                self._roster.supervisor_stalled(now)
            if stop.is_set():
                self._is_begun = True
                drain_at = drain_at or now + (self._settings.edge_shutdown_delay_seconds if self._is_open else 0)
                if now >= drain_at:
                    self._roster.drain(now)
            self._check_active_role()
            for work in self._roster.plan(now) if self._is_begun else ():
                self._do(work)
            self._report_when_reached()
            before = now
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pause_seconds()):
                    await self._news.wait()
            self._news.clear()

    def _check_active_role(self) -> None:
        self._active_role.check()
        if self._active_role.replica is None:
            self._wake_workers()
            return
        replica = self._active_role.replica
        replica.report_failing(merge_failing(self._failing.values()))
        replica.report_failed_upgrade(self._failed_upgrade)
        replica.report_traffic(self._recent_traffic.read(time.monotonic()))
        replica.report_certificates(worst_use(self._certificates.values()))
        if isinstance(self._aim, Serving):
            self._is_begun = True  # not before: only now there is a replica for sure
            if _can_serve(replica):
                self._open()

    def _open(self) -> None:
        """Let workers accept; until then the ports are closed. Harmless when they do.

        Raises: `OperatorError`.
        """
        if not self._is_open:
            self._is_open = True
            self._listeners.listen()
            if self._settings.edge_worker_by_address:
                self._listeners.spread_by_address()
            self._roster.open()

    def _report_when_reached(self) -> None:
        match self._aim:
            case Prepared():
                if self._failures:
                    raise OperatorError("a worker ended before it could accept: the log has the reason")
                is_reached = self._roster.is_prepared
            case Serving():
                is_reached = self._is_ready()
                self._active_role.is_established |= is_reached
            case _:
                return
        if is_reached:
            pids = [process.pid for process in self._processes.values()]
            log.info("the generation is " + type(self._aim).__name__.lower(), workers=len(self._pairs), pids=pids)
            self._report(self._aim)
            self._aim = None

    def _pause_seconds(self) -> float:
        return TICK_SECONDS if self._active_role.replica or self._roster.is_draining else INACTIVE_TICK_SECONDS

    # Workers ---------------------------------------------------------------------------------------------

    def _do(self, work: Work) -> None:
        match work:
            case Start(worker, pair):
                self._start(worker, pair)
            case Send(worker, command):
                log.debug("command sent to a worker", worker=worker, command=str(command))
                self._processes[worker].send(command)
            case Kill(worker, reason):
                self._run_apart(self._kill(self._processes[worker], reason), f"kill worker {worker}")
            case CloseListeners():
                self._listeners.close_pairs()

    def _start(self, worker: int, pair: int) -> None:
        begin = Compose(self._service, self._settings, pair, self._pairs)
        try:
            process = WorkerProcess(worker, begin, self._descriptors, self._on_report)
        except OSError as error:
            log.error("a worker cannot be started", pair=pair, error=str(error))
            self._roster.exited(worker, time.monotonic())
            return
        # Not before it serves: an edge that is refused at its start prints the reason alone.
        report = log.info if self._is_open else log.debug
        report("worker started", worker=worker, pair=pair, pid=process.pid)
        self._processes[worker] = process
        self._run_apart(self._live(process), f"worker {worker}")

    def _run_apart(self, work: Coroutine[Any, Any, None], name: str) -> None:
        life = asyncio.create_task(work, name=name)
        self._lives.add(life)
        life.add_done_callback(self._lives.discard)

    async def _kill(self, process: WorkerProcess, reason: str) -> None:
        """Kill a worker, and log what its threads were doing."""
        try:
            stack = await process.take_stack()
        except (OSError, ValueError) as error:  # it ended just now
            stack = str(error)
        log.error("killing a worker", worker=process.number, pid=process.pid, reason=reason, stack=stack)
        process.kill()

    async def _live(self, process: WorkerProcess) -> None:
        try:
            status = await process.run()
        except Exception:
            log.exception("a worker was lost", worker=process.number)
            status = -1
        report = log.warning if status else log.info
        report("worker exited", worker=process.number, pid=process.pid, status=status)
        self._failures += status != 0
        del self._processes[process.number]
        self._measured.retire(process.number)
        self._failing.pop(process.number, None)
        self._certificates.pop(process.number, None)
        self._roster.exited(process.number, time.monotonic())
        self._news.set()

    def _on_report(self, number: int, report: WorkerReport) -> None:
        now = time.monotonic()
        match report:
            case Ready():
                self._roster.ready(number, now)
                self._news.set()
            case Beat(is_idle, families, failing, recovered, certificates):
                self._roster.beat(number, now, is_idle=is_idle)
                self._measured.report(number, families)
                self._failing[number] = failing
                self._certificates[number] = certificates
                self._pass_on_recovered(number, recovered)
            case DomainCounts(entries):
                counted = TrafficReport.from_plain(entries)
                self._traffic.add(counted)
                self._recent_traffic.add(counted, now)

    def _pass_on_recovered(self, number: int, recovered: list[OriginIdentity]) -> None:
        """Send the other workers the origins that this one reached again."""
        if recovered:
            for other, process in self._processes.items():
                if other != number:
                    process.send(Recovered(recovered))

    def _wake_workers(self, _version: int = 0) -> None:
        wake = Wake()
        for process in self._processes.values():
            process.send(wake)

    # The admin port's view -------------------------------------------------------------------------------

    def _is_ready(self) -> bool:
        replica = self._active_role.replica
        return (
            self._roster.is_full
            and not self._stop.is_set()
            and not self._roster.is_draining
            and self._active_role.is_complete
            and replica is not None
            and _can_serve(replica)
        )

    def health(self) -> EdgeHealth:
        """Return what the admin port shows of this edge."""
        workers = [
            {"gate": worker.pair, "pid": self._processes[number].pid, "state": worker.phase.name.lower()}
            for number, worker in self._roster.workers.items()
            if number in self._processes
        ]
        replica = self._active_role.replica
        worst = worst_use(self._certificates.values())
        details = {
            "supervisor": os.getpid(),
            "workers": workers,
            "replica": replica
            and {
                "version": replica.version,
                "age_seconds": replica.age_seconds,
                "connected": replica.connected,
                "held_copy": replica.held_copy,
                "state": replica.condition.state,
                "reason": replica.condition.reason,
            },
            "certificates": {"unusable": worst.unusable, "example": worst.example},
            "failed_upgrade": self._failed_upgrade and asdict(self._failed_upgrade),
        }
        is_current = replica is not None and replica.condition.state == "serving"
        is_confirmed = replica is not None and _is_confirmed(replica, self._settings.edge_ready_max_age_seconds)
        return EdgeHealth(self._is_ready() and is_confirmed, is_current, details)

    def accept_held_copy(self) -> bool:
        """Accept the copy that is held. Return False when none is."""
        return self._active_role.replica is not None and self._active_role.replica.accept_held_copy()

    def measurements(self) -> list[Family]:
        """Return the metrics of the workers, added up, and of the generation."""
        serving = sum(worker["state"] == "serving" for worker in self.health().details["workers"])
        own = [
            self._build.family(),
            Family.of("frontage_edge_workers_serving", "Workers that accept.", "gauge", serving),
            Family.of("frontage_edge_worker_starts", "Workers started.", "counter", self._roster.starts),
            Family.of(
                "frontage_edge_unusable_certificates",
                "Certificates that clients asked for, and that a worker cannot use.",
                "gauge",
                worst_use(self._certificates.values()).unusable,
            ),
            Family.of("frontage_edge_worker_failures", "Workers that died.", "counter", self._failures),
            Family.of(
                "frontage_edge_failed_upgrade",
                "Whether the last upgrade failed.",
                "gauge",
                self._failed_upgrade is not None,
            ),
        ]
        if self._active_role.replica:
            own += _replica_families(self._active_role.replica)
        return [*own, *self._dns.families(), *measure_machine(self._settings.state_dir), *self._measured.families()]


def _can_serve(replica: Replica) -> bool:
    """Return whether there is something to serve, and a key that opens it."""
    return replica.version is not None and replica.condition.state != "unusable"


def _is_confirmed(replica: Replica, max_age_seconds: float | None) -> bool:
    """Return whether the copy was seen to equal the database lately enough.

    A copy that is held back was compared, and every edge holds it: to call all of them not ready would end the service
    that it protects.
    """
    if max_age_seconds is None or replica.condition.state == "held":
        return True
    return replica.age_seconds is not None and replica.age_seconds <= max_age_seconds


def merge_failing(reports: Iterable[list[FailingOrigin]]) -> tuple[FailingOrigin, ...]:
    """Merge the reports of the workers, each with its latest failure first.

    The result has at most `MOST_REPORTED` origins, the latest of each worker, sorted, so that it changes only when an
    origin or its fault does.
    """
    by_origin: dict[OriginIdentity, FailingOrigin] = {}
    for rank in zip_longest(*reports):
        for failing in rank:
            if failing is not None:
                by_origin.setdefault(failing.origin, failing)
    return tuple(sorted(islice(by_origin.values(), MOST_REPORTED)))


def _replica_families(replica: Replica) -> list[Family]:
    connected, version, age = replica.connected, replica.version, replica.age_seconds
    is_held = replica.held_copy is not None
    families = [
        Family.of("frontage_edge_replica_connected", "Whether Postgres is followed.", "gauge", connected),
        Family.of("frontage_edge_replica_held_copy", "Whether a copy waits for the operator.", "gauge", is_held),
        Family.of(
            "frontage_edge_replica_damages",
            "Times that what was stored was not what was written.",
            "counter",
            replica.damages,
        ),
    ]
    if version is not None:
        families.append(Family.of("frontage_edge_replica_version", "Version applied.", "gauge", version))
    if age is not None:
        families.append(Family.of("frontage_edge_replica_age_seconds", "Since the last catch-up.", "gauge", age))
    if (proof_age := replica.proof_age_seconds) is not None:
        words = "Since all that is stored was last proven."
        families.append(Family.of("frontage_edge_replica_proof_age_seconds", words, "gauge", proof_age))
    return families
