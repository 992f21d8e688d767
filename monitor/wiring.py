"""Wiring: makes the work of a monitor's process, one runner for each kind, from its settings and connections."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from random import Random
from typing import Any

from common.addresses import AddressPolicy, tenant_policy
from common.clock import Clock
from common.connect.settlement import Settlement
from common.connect.zone_inspector import ZoneInspector
from common.db import batches, monitor_nodes, order_queue, preparations, revocations
from common.db.ca_ledger import Limits
from common.db.pool import Database
from common.dns import Resolver
from common.domain_check.registration import fewest_domains
from common.edge_probe import HttpEdgeProbe, probing_policy
from common.enrolment.delegations import Delegations
from common.enrolment.domain_claims import DomainClaims
from common.enrolment.eligibility import ServiceTargets
from common.enrolment.enrolling import Enrolling
from common.enrolment.ownership import OwnNames
from common.enrolment.preparing import Preparing
from common.errors import OperatorError
from common.logs import get_logger
from common.origin_probe import OriginProbe
from common.secrets import Keyring
from common.settings import Settings
from monitor.batches.processing import Processing
from monitor.certificates.challenge_zone import ChallengeZone
from monitor.certificates.dns_moved_away import DomainDnsCheck
from monitor.certificates.internal import InternalIssuer, SharedIssuer, root_path
from monitor.certificates.issuance import Issuance
from monitor.certificates.issuer import IssuanceFailed, Issuer
from monitor.certificates.journal import UpdateZone
from monitor.certificates.queue import AWAITED_AT_ONCE, RECHECKS_AT_ONCE, ROUTINE_AT_ONCE, Precedence
from monitor.certificates.queue import make_runner as make_order_runner
from monitor.certificates.rehearsal import Rehearsal, Rehearse, rehearse_nothing
from monitor.certificates.revoking import Revoking
from monitor.checks.checking import Checking
from monitor.claims import Runner
from monitor.concurrency_shares import ConcurrencyShares
from monitor.connect.enrolment import FlowEnrolment
from monitor.connect.steps import FlowSteps
from monitor.connect.steps import make_runner as make_flow_runner
from monitor.origin_watch import OriginWatch
from monitor.own_certificates import OwnCertificateWatch
from monitor.preparing import PreparationWork
from monitor.rdap_bootstrap import BootstrapRefresh
from monitor.target_watch import TargetWatch
from monitor.webhooks.deliveries import make_runner as make_delivery_runner
from monitor.webhooks.sender import Sender

RECHECKS = "rechecks"

_log = get_logger("monitor")

_REVOCATIONS_AT_ONCE = 2
_BATCHES_AT_ONCE = 4
_PREPARATIONS_AT_ONCE = 16


@dataclass(frozen=True)
class MonitorWiring:
    """Creates the work of one process; nothing runs until its `run` is called.

    The methods that create work raise `OperatorError` for a setting that makes no sense.
    """

    settings: Settings
    database: Database
    keyring: Keyring
    clock: Clock
    random: Random

    @cached_property
    def _policy(self) -> AddressPolicy:
        return tenant_policy(self.settings)

    @cached_property
    def _delegations(self) -> Delegations:
        return Delegations(self.database, self.settings.acme_dns_zone)

    @property
    def _update_zone(self) -> UpdateZone | None:
        zone, target = self.settings.acme_dns_zone, self.settings.acme_dns_update
        return None if zone is None or target is None else ChallengeZone(zone, target).write

    def _resolver(self) -> Resolver:
        """Create a resolver. One for each kind of work, so that none waits for another's questions."""
        return Resolver(self.settings.dns_servers, self._policy)

    def _rehearse(self) -> Rehearse:
        """Create the rehearsal of validations, which only CAs do."""
        if self.settings.issuer != "acme":
            return rehearse_nothing
        policy = probing_policy(self.settings)
        return Rehearsal(self.database, self.settings, self._resolver(), policy, self.keyring, self._delegations)

    def _edge_probe(self) -> HttpEdgeProbe:
        return HttpEdgeProbe(self.keyring, probing_policy(self.settings))

    @cached_property
    def _shared_issuer(self) -> SharedIssuer:
        return SharedIssuer(self.database, self.settings.state_dir, self.keyring, self.clock)

    async def _test_issuer(self) -> InternalIssuer:
        """Return the issuer of applications for tests. Raises: `IssuanceFailed`, `DatabaseUnavailable`."""
        try:
            return await self._shared_issuer.open()
        except OperatorError as error:
            raise IssuanceFailed(str(error), kind="unavailable") from error

    @asynccontextmanager
    async def open_issuer(self) -> AsyncIterator[tuple[Issuer, str]]:
        """Open the issuer for the block, with its authority as `common.db.monitor_nodes.MonitorNode.issuer`."""
        settings = self.settings
        if settings.issuer == "acme":
            # Its libraries take 0.2 s to load, which others' starts need not wait for.
            from monitor.certificates.acme.opening import open_acme  # noqa: PLC0415

            async with open_acme(settings, self.database, self.keyring, self.clock) as issuers:
                yield issuers, f"acme {', '.join(settings.acme_directory)}"
            return
        issuer = await self._shared_issuer.open()
        _log.info("clients that trust this root accept our certificates", root=str(root_path(settings.state_dir)))
        yield issuer, f"internal {issuer.root_fingerprint}"

    def certificates(self, issuer: Issuer, *, on_event: Callable[[], None]) -> dict[str, Runner[Any]]:
        """Create the runners of awaited orders, routine orders, rechecks and revocations, by name."""
        targets = ServiceTargets.of(self.settings)
        dns_check = DomainDnsCheck(self.database, self._resolver(), targets, self._edge_probe(), self._delegations)
        issuance = Issuance(
            self.database,
            issuer,
            self.keyring,
            self.clock,
            self.random,
            find_lead=dns_check,
            is_delegated=dns_check.is_delegated,
            test_issuer=self._test_issuer,
            update_zone=self._update_zone,
            rehearse=self._rehearse(),
            limits=Limits.of(self.settings),
            on_event=on_event,
        )
        make_runner = partial(make_order_runner, self.database, perform=issuance.perform, random=self.random)
        first = Precedence(self.clock)
        return {
            monitor_nodes.ISSUING: make_runner(order_queue.AWAITED, concurrency=AWAITED_AT_ONCE, precedence=first),
            "routine orders": make_runner(order_queue.ROUTINE, concurrency=ROUTINE_AT_ONCE),
            RECHECKS: make_runner(order_queue.RECHECKS, concurrency=RECHECKS_AT_ONCE, gives_way_to=first),
            "revocations": self._runner(revocations, Revoking(self.database, issuer).perform, _REVOCATIONS_AT_ONCE),
        }

    def batches(self) -> Runner[Any]:
        """Create the runner of batches: changes to monitored domains, one by one or in bulk."""
        return self._runner(batches, Processing(self.database).perform, _BATCHES_AT_ONCE)

    def deliveries(self) -> Runner[Any]:
        """Create the runner of webhook deliveries."""
        sender = Sender(self._resolver(), self._policy)
        return make_delivery_runner(self.database, sender, self.keyring, self.clock, self.random)

    def checks(self, *, on_events: Callable[[], None]) -> Checking:
        """Create the checks of monitored domains; `on_events` is called after events were recorded."""
        return Checking(
            self.database,
            self.clock,
            self.random,
            servers=self.settings.dns_servers,
            policy=self._policy,
            interval_seconds=self.settings.check_interval_seconds,
            base_url=self.settings.base_url,
            on_events=on_events,
        )

    def flows(self, checks: Checking) -> Runner[Any]:
        """Create the runner of the steps of connect flows that no browser waits for."""
        settings, database = self.settings, self.database
        resolver = self._resolver()
        targets, own_names = ServiceTargets.of(settings), OwnNames.of(settings)
        claims = DomainClaims(database, resolver, targets, own_names, self._edge_probe(), self._delegations)
        origin_probe = OriginProbe(self._policy, settings.dns_servers)
        steps = FlowSteps(
            database,
            self.clock,
            ZoneInspector(resolver, database, settings),
            Settlement(database, self.clock, tuple(map(str, settings.service_servers))),
            checks.record_checker,
            FlowEnrolment(database, Enrolling(claims, self._policy, origin_probe), settings.https_url),
            ConcurrencyShares(),
            settings.base_url,
        )
        return make_flow_runner(database, steps, self.random)

    def preparations(self, *, on_enrolled: Callable[[], None], on_event: Callable[[], None]) -> Runner[Any]:
        """Create the runner of prepared domains: their delegation, then their DNS that comes to lead here."""
        resolver, probe, targets = self._resolver(), self._edge_probe(), ServiceTargets.of(self.settings)
        own_names = OwnNames.of(self.settings)
        claims = DomainClaims(self.database, resolver, targets, own_names, probe, self._delegations)
        dns_check = DomainDnsCheck(self.database, resolver, targets, probe, self._delegations)
        preparing = Preparing(claims, self._policy)
        enrolling = Enrolling(claims, self._policy, OriginProbe(self._policy, self.settings.dns_servers))
        work = PreparationWork(self.database, preparing, enrolling, dns_check, self.random, on_enrolled, on_event)
        return self._runner(preparations, work.perform, _PREPARATIONS_AT_ONCE)

    def bootstrap_refresh(self) -> BootstrapRefresh | None:
        """Create the refresh of the list of RDAP servers; None without a source for it."""
        source = self.settings.rdap_bootstrap
        if source is None:
            return None
        return BootstrapRefresh(self.database, self._resolver(), self._policy, source, fewest=fewest_domains(source))

    def target_watch(self) -> TargetWatch:
        """Create the watch of cname targets."""
        return TargetWatch(self.database, self._resolver(), ServiceTargets.of(self.settings))

    def own_certificates(self, *, on_event: Callable[[], None]) -> OwnCertificateWatch:
        """Create the watch of certificates that partners brought; `on_event` as of `certificates`."""
        return OwnCertificateWatch(self.database, on_event=on_event)

    def origin_watch(self) -> OriginWatch:
        """Create the watch of unreachable origins."""
        return OriginWatch(self.database, OriginProbe(self._policy, self.settings.dns_servers))

    def _runner(self, queue: Any, perform: Callable[..., Awaitable[Any]], concurrency: int) -> Runner[Any]:
        """Create a runner of a queue that needs no shares."""
        return Runner[Any](self.database, queue, perform, concurrency=concurrency, random=self.random)
