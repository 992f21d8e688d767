"""The monitor's process put together: everything that is due, claimed and done. Any number of them may run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from random import Random
from typing import Any, Protocol

from common.addresses import own_policy
from common.admin_listener import Readiness, check_database, serving_admin
from common.claims import Runner
from common.clock import Clock, SystemClock
from common.concurrency_shares import ConcurrencyShares
from common.connect.looker import Looker
from common.connect.settlement import Settlement
from common.db import batches, monitor_nodes, monitored_domains, order_queue, revocations
from common.db.address import resolve_dsn
from common.db.ca_ledger import Limits
from common.db.listener import Listener
from common.db.pool import Database, open_pool
from common.db.start import check_start
from common.dns import Resolver
from common.domain_check.registration import fewest_domains
from common.domain_claims import DomainClaims
from common.edge_probe import HttpEdgeProbe, probing_policy
from common.eligibility import ServiceTargets
from common.logs import get_logger
from common.names import load_public_suffixes
from common.origin_probe import OriginProbe
from common.ownership import OwnNames
from common.processes import announce_ready, raise_descriptor_limit, run_role, settle_garbage_collector
from common.secrets import Keyring, load_keyring
from common.settings import Settings
from monitor.batches.processing import Processing
from monitor.certificates.dns_moved_away import DomainDnsCheck
from monitor.certificates.internal import open_internal, root_path
from monitor.certificates.issuance import Issuance
from monitor.certificates.issuer import Issuer
from monitor.certificates.queue import AWAITED_AT_ONCE, RECHECKS_AT_ONCE, ROUTINE_AT_ONCE
from monitor.certificates.queue import make_runner as make_order_runner
from monitor.certificates.revoking import Revoking
from monitor.checks.checking import Checking
from monitor.connect.enrolment import FlowEnrolment
from monitor.connect.steps import Steps
from monitor.connect.steps import make_runner as make_flow_runner
from monitor.lease import Lease
from monitor.measurements import Measurements
from monitor.rdap_bootstrap import BootstrapRefresh
from monitor.restarts import restart_on_failure
from monitor.retention import Retention
from monitor.webhooks.deliveries import make_runner as make_delivery_runner
from monitor.webhooks.sender import Sender

_log = get_logger("monitor")

_REVOCATIONS_AT_ONCE = 2
_RECHECKS = "rechecks"
_LISTENER = "frontage monitor listener"
_BATCHES_AT_ONCE = 4
_CONNECTIONS = 16


class Work(Protocol):
    """Something due: done for as long as it runs, looked at once more when it is woken."""

    async def run(self) -> None: ...
    def wake(self) -> None: ...


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Raises: `OperatorError` when something must be put right before any work can be done."""
    raise_descriptor_limit()  # a webhook attempt takes one, and there are many
    clock, random = SystemClock(), Random()  # noqa: S311 - it spreads due times
    keyring = load_keyring(settings.key_file)
    dsn = resolve_dsn(settings)
    async with (
        open_pool(dsn, size=_CONNECTIONS, application_name="frontage monitor") as database,
        AsyncExitStack() as opened,
    ):
        await check_start(database, keyring)
        issuer, authority = await opened.enter_async_context(_open_issuer(settings, database, keyring, clock))
        deliveries = _deliveries(settings, database, keyring, clock, random)
        certificates = _certificates(settings, database, issuer, keyring, clock, random, on_event=deliveries.wake)
        batch_runners = _batches(database, random)
        checks = _checks(settings, database, clock, random, on_events=deliveries.wake)
        flows = _flows(settings, database, keyring, clock, random, checks)
        runners = certificates | batch_runners | {"deliveries": deliveries, "flows": flows}
        monitoring: dict[str, Work] = {
            **batch_runners,
            "deliveries": deliveries,
            monitor_nodes.CHECKING: checks,
            "flows": flows,
        }
        awaited = monitoring | {_RECHECKS: certificates[_RECHECKS]}
        listeners = {
            "listener of changes": Listener(dsn, _wake(certificates), application_name=_LISTENER),
            "listener of monitoring": Listener(
                dsn, _wake(awaited), channel=monitored_domains.CHANNEL, application_name=_LISTENER
            ),
        }
        work = {name: each.run for name, each in (certificates | monitoring | listeners).items()}
        retention = Retention(database, clock, random)
        work["retention"] = retention.run
        if settings.rdap_bootstrap is not None:
            policy = own_policy(settings)
            work["RDAP servers"] = BootstrapRefresh(
                database,
                Resolver(settings.dns_servers, policy),
                policy,
                settings.rdap_bootstrap,
                fewest=fewest_domains(settings.rdap_bootstrap),
            ).run
        stopped: set[str] = set()
        lease = Lease(dsn, authority, lambda: stopped)
        work["lease"] = lease.run
        await lease.report(database)  # a monitor that is ready is known to run
        measurements = Measurements(settings, database, runners, retention, lease, stopped)
        check_readiness = partial(_check_readiness, database, stopped)
        await opened.enter_async_context(
            serving_admin(settings.monitor_admin, "FRONTAGE_MONITOR_ADMIN", check_readiness, measurements.measure)
        )
        async with asyncio.TaskGroup() as tasks:
            roots = [
                tasks.create_task(restart_on_failure(name, run, database, clock, stopped), name=name)
                for name, run in work.items()
            ]
            load_public_suffixes()  # the first event is written while its domain is locked
            settle_garbage_collector()
            announce_ready()
            await stop.wait()
            for root in roots:
                root.cancel()


def _certificates(
    settings: Settings,
    database: Database,
    issuer: Issuer,
    keyring: Keyring,
    clock: Clock,
    random: Random,
    *,
    on_event: Callable[[], None],
) -> dict[str, Runner[Any]]:
    """By name: awaited orders, routine orders, rechecks, and revocations.

    Raises: `OperatorError`.
    """
    policy = own_policy(settings)
    issuance = Issuance(
        database,
        issuer,
        keyring,
        clock,
        random,
        leads_to_us=DomainDnsCheck(
            database,
            Resolver(settings.dns_servers, policy),
            ServiceTargets.of(settings),
            HttpEdgeProbe(keyring, probing_policy(settings)),
        ),
        limits=Limits.of(settings),
        on_event=on_event,
    )
    return {
        monitor_nodes.ISSUING: make_order_runner(
            database, order_queue.AWAITED, issuance.perform, random, concurrency=AWAITED_AT_ONCE
        ),
        "routine orders": make_order_runner(
            database, order_queue.ROUTINE, issuance.perform, random, concurrency=ROUTINE_AT_ONCE
        ),
        _RECHECKS: make_order_runner(
            database, order_queue.RECHECKS, issuance.perform, random, concurrency=RECHECKS_AT_ONCE
        ),
        "revocations": Runner[Any](
            database,
            revocations,
            Revoking(database, issuer).perform,
            concurrency=_REVOCATIONS_AT_ONCE,
            random=random,
        ),
    }


def _batches(database: Database, random: Random) -> dict[str, Runner[Any]]:
    """By name: what monitored domains ask for when they are added or changed, one by one or in bulk."""
    work: dict[str, tuple[Any, Any, int]] = {
        "batches": (batches, Processing(database).perform, _BATCHES_AT_ONCE),
    }
    return {
        name: Runner[Any](database, queue, perform, concurrency=concurrency, random=random)
        for name, (queue, perform, concurrency) in work.items()
    }


def _deliveries(settings: Settings, database: Database, keyring: Keyring, clock: Clock, random: Random) -> Runner[Any]:
    policy = own_policy(settings)
    sender = Sender(Resolver(settings.dns_servers, policy), policy)
    return make_delivery_runner(database, sender, keyring, clock, random)


def _checks(
    settings: Settings, database: Database, clock: Clock, random: Random, *, on_events: Callable[[], None]
) -> Checking:
    """Raises: `OperatorError`."""
    return Checking(
        database,
        clock,
        random,
        servers=settings.dns_servers,
        policy=own_policy(settings),
        interval_seconds=settings.check_interval_seconds,
        base_url=settings.base_url,
        on_events=on_events,
    )


def _flows(
    settings: Settings, database: Database, keyring: Keyring, clock: Clock, random: Random, checks: Checking
) -> Runner[Any]:
    """Raises: `OperatorError`."""
    policy = own_policy(settings)
    resolver = Resolver(settings.dns_servers, policy)
    claims = DomainClaims(
        database,
        resolver,
        ServiceTargets.of(settings),
        OwnNames.of(settings),
        HttpEdgeProbe(keyring, probing_policy(settings)),
    )
    steps = Steps(
        database,
        clock,
        Looker(resolver, database, settings),
        Settlement(database, clock, tuple(map(str, settings.service_servers))),
        checks.record_checker,
        FlowEnrolment(database, claims, policy, OriginProbe(policy, settings.dns_servers), settings.https_url),
        ConcurrencyShares(),
        settings.base_url,
    )
    return make_flow_runner(database, steps, random)


def _wake(runners: Mapping[str, Work]) -> Callable[[], None]:
    def wake() -> None:
        for runner in runners.values():
            runner.wake()

    return wake


@asynccontextmanager
async def _open_issuer(
    settings: Settings, database: Database, keyring: Keyring, clock: Clock
) -> AsyncIterator[tuple[Issuer, str]]:
    """The issuer, and its authority as `common.db.monitor_nodes.MonitorNode.issuer`."""
    if settings.issuer == "acme":
        # Its libraries take 0.2 s to load, which others' starts need not wait for.
        from monitor.certificates.acme.opening import open_acme  # noqa: PLC0415

        async with open_acme(settings, database, keyring, clock) as issuers:
            yield issuers, f"acme {', '.join(settings.acme_directory)}"
        return
    issuer = open_internal(settings.state_dir, keyring, clock)
    _log.info("clients that trust this root accept our certificates", root=str(root_path(settings.state_dir)))
    yield issuer, f"internal {issuer.root_fingerprint}"


async def _check_readiness(database: Database, stopped: Collection[str]) -> Readiness:
    """Ready if Postgres answers with a schema that this program can work with, and all work runs."""
    readiness = await check_database(database)
    if not readiness.is_ready or not stopped:
        return readiness
    return Readiness(False, {"reason": f"work has stopped: {', '.join(sorted(stopped))}; see the log"})


def main() -> None:
    run_role("monitor", serve)


if __name__ == "__main__":
    main()
