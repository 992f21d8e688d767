"""Wiring: makes the services of an API process from its settings and connections, and closes those that hold some."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import cached_property, partial

from api.bounds import Bounds
from api.connect.dynamic_update import DynamicUpdate
from api.connect.provider_api import ProviderApis
from api.rules.plain_text import find_exposure
from api.services.applications import ApplicationService
from api.services.batches import BatchService
from api.services.configurations import ConfigurationService
from api.services.connect import ConnectService
from api.services.diagnosis import DiagnosisService
from api.services.domain_actions import DomainActions
from api.services.domain_check import DISCOVERY_SECONDS, DomainCheckService
from api.services.ended_domains import EndedDomains
from api.services.enrolment import EnrolmentService
from api.services.flow_list import FlowListService
from api.services.flow_sources import FlowSources
from api.services.flow_watch import FlowWatch
from api.services.installation import InstallationService
from api.services.monitor import MonitorService
from api.services.organisations import OrganisationService
from api.services.origin_state import OriginStates
from api.services.own_certificates import OwnCertificateService
from api.services.power import PowerService
from api.services.preparations import PreparationService
from api.services.rdap_servers import RdapServers
from api.services.record_check import RecordCheckService
from api.services.removals import Removals
from api.services.secure import SecureService
from api.services.sharing import SharingService
from api.services.status_pages import StatusPages
from api.services.webhooks import WebhookService
from common.addresses import AddressPolicy, tenant_policy
from common.api_domain import api_domain, dialled_api
from common.clock import Clock
from common.connect.domain_connect.recent import RecentAnswers
from common.connect.settlement import Settlement
from common.connect.zone_inspector import ZoneInspector
from common.db.ca_ledger import Limits
from common.db.pool import Database
from common.dns import Resolver
from common.domain_check.rdap import RdapClient
from common.edge_probe import HttpEdgeProbe, probing_policy
from common.enrolment.delegations import Delegations
from common.enrolment.domain_claims import DomainClaims
from common.enrolment.eligibility import ServiceTargets
from common.enrolment.enrolling import Enrolling
from common.enrolment.ownership import OwnNames
from common.enrolment.preparing import Preparing
from common.enrolment.target_claims import TargetClaims
from common.origin_probe import OriginProbe
from common.secrets import Keyring
from common.settings import Settings


@dataclass(frozen=True, slots=True)
class Services:
    """The services of a process. `build_app` makes and closes them."""

    enrolment: EnrolmentService
    probe_origin: OriginProbe
    origins: OriginStates
    power: PowerService
    secure: SecureService
    diagnosis: DiagnosisService
    rdap: RdapClient
    domain_checks: DomainCheckService
    record_checks: RecordCheckService
    monitor: MonitorService
    batches: BatchService
    webhooks: WebhookService
    applications: ApplicationService
    preparations: PreparationService
    domain_actions: DomainActions
    own_certificates: OwnCertificateService
    ended_domains: EndedDomains
    removals: Removals
    organisations: OrganisationService
    installation: InstallationService
    sharing: SharingService
    status_pages: StatusPages
    configurations: ConfigurationService
    connect: ConnectService
    flow_watch: FlowWatch
    flow_list: FlowListService

    async def close(self) -> None:
        """End deletions under way, and close the connections to origins, registries and name servers."""
        await self.removals.close()
        await self.origins.close()
        await self.rdap.close()
        await self.record_checks.close()


@dataclass(frozen=True)
class ApiWiring:
    """What the services are made from.

    `draining` is set when the process is about to end; the ports are those of `build_app`.
    """

    settings: Settings
    database: Database
    keyring: Keyring
    resolver: Resolver
    clock: Clock
    draining: asyncio.Event
    probe_port: int
    authority_port: int
    bounds: Bounds

    def services(self) -> Services:
        """Make the services. Raises: `OperatorError` for a setting that makes no sense."""
        database, settings, clock, bounds = self.database, self.settings, self.clock, self.bounds
        probe = HttpEdgeProbe(self.keyring, probing_policy(settings), port=self.probe_port)
        probe_origin = OriginProbe(
            self._policy,
            settings.dns_servers,
            api_domain=api_domain(settings),
            api=dialled_api(settings),
            longest_seconds=bounds.origin_seconds,
        )
        enrolment = self._enrolment(probe, probe_origin)
        origins = OriginStates(probe_origin, clock)
        rdap = RdapClient(
            self.resolver, self._policy, clock, RdapServers(database, settings.rdap_bootstrap, clock).find
        )
        sharing, configurations = SharingService(database, settings), ConfigurationService(database)
        prepared = PreparationService(Preparing(enrolment.claims, self._policy), settings, bounds.most_prepared)
        return Services(
            enrolment=enrolment,
            probe_origin=probe_origin,
            origins=origins,
            power=PowerService(enrolment, origins),
            secure=SecureService(enrolment),
            diagnosis=DiagnosisService(enrolment, probe, origins, settings),
            rdap=rdap,
            domain_checks=self._domain_checks(rdap, enrolment.service_targets),
            record_checks=RecordCheckService(settings, self._policy, clock, authority_port=self.authority_port),
            monitor=MonitorService(database),
            batches=BatchService(database),
            webhooks=WebhookService(database, most_replayed=bounds.most_replayed),
            applications=self._applications(enrolment.service_targets),
            preparations=prepared,
            domain_actions=DomainActions(database, self._policy, enrolment.claims),
            own_certificates=OwnCertificateService(database, self.keyring, clock),
            ended_domains=EndedDomains(database, enrolment.claims),
            removals=Removals(database),
            organisations=OrganisationService(database, settings.base_url),
            installation=InstallationService(database, Limits.of(settings), find_exposure(settings), clock),
            sharing=sharing,
            status_pages=StatusPages(database, prepared, settings.base_url),
            configurations=configurations,
            connect=self._connect(FlowSources(sharing, configurations)),
            flow_watch=FlowWatch(database, self.draining),
            flow_list=FlowListService(database, clock, bounds.flows_scanned),
        )

    @cached_property
    def _policy(self) -> AddressPolicy:
        return tenant_policy(self.settings)

    @cached_property
    def _own_names(self) -> OwnNames:
        return OwnNames.of(self.settings)

    @cached_property
    def _inspector(self) -> ZoneInspector:
        return ZoneInspector(self.resolver, self.database, self.settings)

    def _enrolment(self, probe: HttpEdgeProbe, probe_origin: OriginProbe) -> EnrolmentService:
        targets = ServiceTargets.of(self.settings)
        claims = DomainClaims(
            self.database,
            self.resolver,
            targets,
            self._own_names,
            probe,
            Delegations(self.database, self.settings.acme_dns_zone),
        )
        return EnrolmentService(Enrolling(claims, self._policy, probe_origin), self.clock)

    def _domain_checks(self, rdap: RdapClient, targets: ServiceTargets) -> DomainCheckService:
        discover = partial(self._inspector.find_discover, longest_seconds=DISCOVERY_SECONDS, recent=RecentAnswers())
        return DomainCheckService(self.database, self.settings, self.resolver, rdap, targets, self.clock, discover)

    def _applications(self, targets: ServiceTargets) -> ApplicationService:
        claims = TargetClaims(self.database, self.resolver, targets.targets)
        return ApplicationService(self.database, self.keyring, self._policy, self._own_names, claims)

    def _connect(self, sources: FlowSources) -> ConnectService:
        settings = self.settings
        return ConnectService(
            self.database,
            self.keyring,
            settings,
            sources,
            self.clock,
            self._inspector,
            Settlement(self.database, self.clock, tuple(map(str, settings.service_servers))),
            DynamicUpdate(self.resolver, self._policy),
            ProviderApis(settings),
        )
