"""Wiring: makes the services of an API process from its settings and connections, and closes those that hold some."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial

from api.services.applications import ApplicationService
from api.services.batches import BatchService
from api.services.connect import ConnectService
from api.services.diagnosis import DiagnosisService
from api.services.domain_actions import DomainActions
from api.services.domain_check import DISCOVERY_SECONDS, DomainCheckService
from api.services.enrolment import EnrolmentService
from api.services.flow_watch import FlowWatch
from api.services.installation import InstallationService
from api.services.monitor import MonitorService
from api.services.organisations import OrganisationService
from api.services.origin_state import OriginStates
from api.services.power import PowerService
from api.services.rdap_servers import RdapServers
from api.services.record_check import RecordCheckService
from api.services.removals import Removals
from api.services.secure import SecureService
from api.services.sharing import SharingService
from api.services.webhooks import WebhookService
from common.addresses import own_policy
from common.api_domain import api_domain, dialled_api
from common.clock import Clock
from common.connect.domain_connect.recent import RecentAnswers
from common.connect.looker import Looker
from common.connect.settlement import Settlement
from common.connect.ways.dynamic_update import DynamicUpdate
from common.connect.ways.provider_api import ProviderApis
from common.db.ca_ledger import Limits
from common.db.pool import Database
from common.dns import Resolver
from common.domain_check.rdap import RdapClient
from common.edge_probe import HttpEdgeProbe, probing_policy
from common.eligibility import ServiceTargets
from common.origin_probe import OriginProbe
from common.ownership import OwnNames
from common.plain_text import find_exposure
from common.secrets import Keyring
from common.settings import Settings
from common.target_claims import TargetClaims


@dataclass(frozen=True, slots=True)
class Services:
    """One a process; `build_app` makes and closes them."""

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
    domain_actions: DomainActions
    removals: Removals
    organisations: OrganisationService
    installation: InstallationService
    sharing: SharingService
    connect: ConnectService
    flow_watch: FlowWatch

    @classmethod
    def of(
        cls,
        settings: Settings,
        database: Database,
        keyring: Keyring,
        resolver: Resolver,
        clock: Clock,
        draining: asyncio.Event,
        *,
        probe_port: int,
        authority_port: int,
    ) -> Services:
        """`draining` is set when the process is about to end; the ports are those of `build_app`.

        Raises: `OperatorError` for a setting that makes no sense."""
        policy = own_policy(settings)
        probe = HttpEdgeProbe(keyring, probing_policy(settings), port=probe_port)
        enrolment = EnrolmentService(
            database, resolver, policy, ServiceTargets.of(settings), OwnNames.of(settings), probe, clock
        )
        probe_origin = OriginProbe(
            policy, settings.dns_servers, api_domain=api_domain(settings), api=dialled_api(settings)
        )
        origins = OriginStates(probe_origin, clock)
        rdap_servers = RdapServers(database, settings.rdap_bootstrap, clock)
        rdap = RdapClient(resolver, policy, clock, rdap_servers.find)
        sharing = SharingService(database, settings)
        looker = Looker(resolver, database, settings)
        return cls(
            enrolment=enrolment,
            probe_origin=probe_origin,
            origins=origins,
            power=PowerService(enrolment, origins),
            secure=SecureService(enrolment, probe_origin),
            diagnosis=DiagnosisService(enrolment, probe, origins, settings),
            rdap=rdap,
            domain_checks=DomainCheckService(
                database,
                settings,
                resolver,
                rdap,
                enrolment.service_targets,
                clock,
                partial(looker.find_discover, longest_seconds=DISCOVERY_SECONDS, recent=RecentAnswers()),
            ),
            record_checks=RecordCheckService(settings, policy, clock, authority_port=authority_port),
            monitor=MonitorService(database),
            batches=BatchService(database),
            webhooks=WebhookService(database),
            applications=ApplicationService(
                database,
                keyring,
                policy,
                OwnNames.of(settings),
                TargetClaims(database, resolver, enrolment.service_targets.targets),
            ),
            domain_actions=DomainActions(database, policy),
            removals=Removals(database),
            organisations=OrganisationService(database, settings.base_url),
            installation=InstallationService(database, Limits.of(settings), find_exposure(settings), clock),
            sharing=sharing,
            connect=ConnectService(
                database,
                keyring,
                settings,
                sharing,
                clock,
                looker,
                Settlement(database, clock, tuple(map(str, settings.service_servers))),
                DynamicUpdate(resolver, policy),
                ProviderApis(settings),
            ),
            flow_watch=FlowWatch(database, draining),
        )

    async def close(self) -> None:
        """End deletions under way, and close the connections to origins, registries and name servers."""
        await self.removals.close()
        await self.origins.close()
        await self.rdap.close()
        await self.record_checks.close()
