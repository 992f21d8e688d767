"""The monitor's process: everything that is due, claimed and done. Any number of them may run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Protocol

from common.admin_listener import Readiness, check_database, serving_admin
from common.builds import read_build
from common.clock import SystemClock
from common.db import monitor_nodes, monitored_domains
from common.db.address import resolve_dsn
from common.db.listener import Listener
from common.db.pool import Database, open_pool
from common.db.start import check_start
from common.names import load_public_suffixes
from common.processes import announce_ready, raise_descriptor_limit, run_role, settle_garbage_collector
from common.secrets import load_keyring
from common.settings import Settings
from common.tracing import open_tracer
from monitor.certificates.issuer import Issuer
from monitor.claims import Runner
from monitor.lease import Lease
from monitor.measurements import Measurements
from monitor.restarts import restart_on_failure
from monitor.retention import Retention
from monitor.wiring import RECHECKS, MonitorWiring

_LISTENER = "frontage monitor listener"
_CONNECTIONS = 16


class Work(Protocol):
    """Due work that runs until it is cancelled and can be woken to search for more."""

    async def run(self) -> None:
        """Do what is due until cancelled."""

    def wake(self) -> None:
        """Search for due work at once."""


@dataclass(frozen=True, slots=True)
class MonitorWork:
    """The work of one monitor, by name.

    Changes of enrolments wake `certificates`, changes of monitoring wake `monitoring`; rechecks are woken by either.
    `runners` holds the runners among both.
    """

    certificates: Mapping[str, Runner[Any]]
    monitoring: Mapping[str, Work]
    runners: Mapping[str, Runner[Any]]

    @classmethod
    def of(cls, wiring: MonitorWiring, issuer: Issuer) -> MonitorWork:
        """Create the work of this process from its wiring.

        Raises: `OperatorError`.
        """
        deliveries = wiring.deliveries()
        certificates = wiring.certificates(issuer, on_event=deliveries.wake)
        checks = wiring.checks(on_events=deliveries.wake)
        awaited = certificates[monitor_nodes.ISSUING]
        runners = {
            "batches": wiring.batches(),
            monitor_nodes.DELIVERING: deliveries,
            "flows": wiring.flows(checks),
            "preparations": wiring.preparations(on_enrolled=awaited.wake, on_event=deliveries.wake),
        }
        return cls(certificates, {**runners, monitor_nodes.CHECKING: checks}, certificates | runners)

    def listeners(self, dsn: str) -> dict[str, Listener]:
        """Create the listeners that wake this work on notifications of the database at `dsn`."""
        awaited = [*self.monitoring.values(), self.certificates[RECHECKS]]
        return {
            "listener of changes": Listener(dsn, _wake([*self.certificates.values()]), application_name=_LISTENER),
            "listener of monitoring": Listener(
                dsn, _wake(awaited), channel=monitored_domains.CHANNEL, application_name=_LISTENER
            ),
        }


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Run the monitor until `stop` is set.

    Raises: `OperatorError` when something must be put right before any work can be done.
    """
    raise_descriptor_limit()  # a webhook attempt takes one, and there are many
    clock, random = SystemClock(), Random()  # noqa: S311 - it spreads due times
    keyring = load_keyring(settings.key_file)
    dsn = resolve_dsn(settings)
    async with (
        open_pool(dsn, size=_CONNECTIONS, application_name="frontage monitor") as database,
        AsyncExitStack() as opened,
    ):
        await check_start(database, keyring)
        wiring = MonitorWiring(settings, database, keyring, clock, random)
        issuer, authority = await opened.enter_async_context(wiring.open_issuer())
        due = MonitorWork.of(wiring, issuer)
        if (tracer := open_tracer(settings, "monitor")) is not None:
            opened.push_async_callback(asyncio.to_thread, tracer.close)
            for name, runner in due.runners.items():
                runner.trace(name, tracer)
        retention = Retention(database, clock, random)
        stopped: set[str] = set()
        build = read_build()
        lease = Lease(dsn, authority, lambda: stopped, str(build))
        every: dict[str, Work | Listener] = {**due.certificates, **due.monitoring, **due.listeners(dsn)}
        work: dict[str, Callable[[], Awaitable[None]]] = {name: each.run for name, each in every.items()}
        work |= {"retention": retention.run, "lease": lease.run, "cname targets": wiring.target_watch().run}
        work["origins"] = wiring.origin_watch().run
        wake_deliveries = due.monitoring[monitor_nodes.DELIVERING].wake
        work["own certificates"] = wiring.own_certificates(on_event=wake_deliveries).run
        if (bootstrap_refresh := wiring.bootstrap_refresh()) is not None:
            work["RDAP servers"] = bootstrap_refresh.run
        await lease.report(database)  # a monitor that is ready is known to run
        measurements = Measurements(settings, database, due.runners, retention, lease, stopped, build)
        check_readiness = partial(_check_readiness, database, stopped)
        await opened.enter_async_context(
            serving_admin(settings.monitor_admin, "FRONTAGE_MONITOR_ADMIN", check_readiness, measurements.measure)
        )
        run_each = {
            name: partial(restart_on_failure, name, run, database, clock, stopped) for name, run in work.items()
        }
        await _run_until(stop, run_each)


async def _run_until(stop: asyncio.Event, work: Mapping[str, Callable[[], Coroutine[Any, Any, None]]]) -> None:
    """Run all work; announce that this process is ready; cancel the work once `stop` is set."""
    async with asyncio.TaskGroup() as tasks:
        roots = [tasks.create_task(run(), name=name) for name, run in work.items()]
        load_public_suffixes()  # the first event is written while its domain is locked
        settle_garbage_collector()
        announce_ready()
        await stop.wait()
        for root in roots:
            root.cancel()


def _wake(work: Collection[Work]) -> Callable[[], None]:
    """Return a function that wakes all of `work`."""

    def wake() -> None:
        for each in work:
            each.wake()

    return wake


async def _check_readiness(database: Database, stopped: Collection[str]) -> Readiness:
    """Report whether Postgres answers with a schema that this program can work with, and all work runs."""
    readiness = await check_database(database)
    if not readiness.is_ready or not stopped:
        return readiness
    return Readiness(False, {"reason": f"work has stopped: {', '.join(sorted(stopped))}; see the log"})


def main() -> None:
    """Run the monitor as a process."""
    run_role("monitor", serve)


if __name__ == "__main__":
    main()
