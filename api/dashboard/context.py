"""What the dashboard's handlers share: services of the API, the database, and how pages are made."""

from __future__ import annotations

from dataclasses import dataclass

from api.bounds import Bounds, LiveIntervals
from api.dashboard.browser import Cookies
from api.dashboard.oidc import OidcProvider
from api.dashboard.relying_party import RelyingParty
from api.dashboard.rendering import Renderer
from api.dashboard.throttle import Throttle
from api.rules.plain_text import find_exposure
from api.services.applications import ApplicationService
from api.services.diagnosis import DiagnosisService
from api.services.domain_actions import DomainActions
from api.services.ended_domains import EndedDomains
from api.services.enrolment import EnrolmentService
from api.services.flow_list import FlowListService
from api.services.installation import InstallationService
from api.services.monitor import MonitorService
from api.services.organisations import OrganisationService
from api.services.own_certificates import OwnCertificateService
from api.services.power import PowerService
from api.services.preparations import PreparationService
from api.services.removals import Removals
from api.services.secure import SecureService
from api.services.status_pages import StatusPages
from api.services.webhooks import WebhookService
from api.wiring import Services
from common.clock import Clock
from common.db.domain_list_query import SearchLimits
from common.db.pool import Database
from common.origin_probe import OriginProbe
from common.secrets import Keyring
from common.settings import Settings


@dataclass(frozen=True, slots=True)
class DashboardContext:
    """What the pages of the dashboard are made with. One instance per process; `api.app` creates it."""

    settings: Settings
    database: Database
    keyring: Keyring
    clock: Clock
    enrolment: EnrolmentService
    power: PowerService
    secure: SecureService
    diagnosis: DiagnosisService
    monitor: MonitorService
    webhooks: WebhookService
    preparations: PreparationService
    domain_actions: DomainActions
    own_certificates: OwnCertificateService
    ended_domains: EndedDomains
    removals: Removals
    status_pages: StatusPages
    applications: ApplicationService
    organisations: OrganisationService
    installation: InstallationService
    flow_list: FlowListService
    probe_origin: OriginProbe
    cookies: Cookies
    renderer: Renderer
    throttle: Throttle
    relying_party: RelyingParty
    oidc: OidcProvider | None
    live: LiveIntervals
    search: SearchLimits

    @classmethod
    def of(
        cls,
        settings: Settings,
        database: Database,
        keyring: Keyring,
        clock: Clock,
        services: Services,
        bounds: Bounds,
    ) -> DashboardContext:
        """Make the context from what the API's process has."""
        cookies = Cookies(is_secure=settings.base_url.startswith("https://"))
        return cls(
            settings,
            database,
            keyring,
            clock,
            services.enrolment,
            services.power,
            services.secure,
            services.diagnosis,
            services.monitor,
            services.webhooks,
            services.preparations,
            services.domain_actions,
            services.own_certificates,
            services.ended_domains,
            services.removals,
            services.status_pages,
            services.applications,
            services.organisations,
            services.installation,
            services.flow_list,
            services.probe_origin,
            cookies,
            Renderer(clock, cookies, find_exposure(settings)),
            Throttle.of(clock, keyring),
            RelyingParty.of(settings.base_url),
            OidcProvider.of(settings, clock),
            bounds.live,
            bounds.search,
        )
