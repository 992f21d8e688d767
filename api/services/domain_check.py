"""Domain check: what can be said of a domain before its records are set. Asks the DNS and RDAP; writes nothing.

What is found is decided by `common.domain_check`. What could not be asked is refused with a code, never answered "no".
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from api.connect.resolution import PlaceholderValues
from api.errors import FORBIDDEN, UNRESOLVED, Refused
from api.schemas.evidence import hide_private
from api.services.placeholder_values import placeholder_values_of
from common.clock import Clock
from common.connect.domain_connect.discovery import Closed, Discovered
from common.connect.domain_connect.offer import hosts
from common.connect.domain_connect.templates import SERVICES, fill_templates
from common.connect.ways.provider_apis import find_api
from common.connect.zone_inspection import Discover
from common.connect.zone_inspector import find_certificate_needs
from common.db.applications import Application
from common.db.pool import Database
from common.dns import Pass, Resolver
from common.domain_check.conflicts import CertificateNeeds, Conflict, find_conflicts
from common.domain_check.providers import Provider, find_provider
from common.domain_check.rdap import RdapClient
from common.domain_check.reading import read_zone, unknown_outcome
from common.domain_check.registration import RdapFailure, Registration, decide
from common.domain_check.zone_view import ZoneView
from common.enrolment.eligibility import ServiceTargets
from common.flows.requested import Requested
from common.records import Record
from common.settings import Settings

TIERS = frozenset({"premium", "enterprise"})
DISCOVERY_SECONDS: Final = 2.0
"""How long a check waits for a Domain Connect provider that has not answered lately."""
_BUSY_SECONDS = 5.0

FindDiscover = Callable[[], Awaitable[Discover | None]]
"""None where this installation is not set up for Domain Connect."""


@dataclass(frozen=True, slots=True)
class Assessed:
    """A provider, and whether this installation can set records there itself: by Domain Connect, or by its API."""

    provider: Provider
    setup_type: Literal["automatic", "manual"]


@dataclass(frozen=True, slots=True)
class DomainCheck:
    """`zone_provider`: the provider of the zone itself, where NS records are requested. `conflicts` None: not asked."""

    current: Assessed
    registration: Registration
    zone_provider: Assessed | None
    conflicts: list[Conflict] | None


@dataclass(frozen=True, slots=True)
class DomainCheckService:
    """Checks domains before their records are set. One instance per process."""

    database: Database
    settings: Settings
    resolver: Resolver
    rdap: RdapClient
    service_targets: ServiceTargets
    clock: Clock
    find_discover: FindDiscover

    def placeholder_values(self, application: Application) -> PlaceholderValues:
        """Return what placeholders in the application's configuration stand for."""
        return placeholder_values_of(application, self.settings)

    async def check(
        self,
        application: Application,
        apex: str,
        requested: Sequence[Record],
        certificate_hosts: frozenset[str],
        *,
        wants_conflicts: bool,
    ) -> DomainCheck:
        """Check a domain. Raises: `Refused`."""
        hosts = certificate_hosts if wants_conflicts else frozenset[str]()
        needs = await find_certificate_needs(self.database, self.settings, hosts, is_test=application.is_test)
        (view, discovered), entry = await asyncio.gather(
            self._read(application, apex, requested, needs, wants_conflicts=wants_conflicts),
            self.rdap.find(apex, application.id),
        )
        if (unknown := unknown_outcome(view)) is not None:
            raise Refused(UNRESOLVED, code=unknown.value)
        registration = decide(view.delegation, entry, self.clock.now())
        if isinstance(registration, RdapFailure):
            raise Refused(UNRESOLVED, code=registration.value, retry_after_seconds=_BUSY_SECONDS)
        current = find_provider(view.server_names, _first(view.soa.values))
        has_name_servers = any(record.type == "NS" for record in requested)
        return DomainCheck(
            _assess(current, view.server_names, discovered),
            registration,
            _assess_zone(view, discovered) if has_name_servers else None,
            self._conflicts(requested, view, current, needs) if wants_conflicts else None,
        )

    async def _read(
        self,
        application: Application,
        apex: str,
        requested: Sequence[Record],
        needs: CertificateNeeds,
        *,
        wants_conflicts: bool,
    ) -> tuple[ZoneView, Discovered | Closed | None]:
        async with self.resolver.open_pass(application.id) as questions:
            return await asyncio.gather(
                read_zone(questions, apex, requested if wants_conflicts else (), certificate_hosts=needs.hosts),
                self._discover(questions, apex, requested),
            )

    async def _discover(self, questions: Pass, apex: str, requested: Sequence[Record]) -> Discovered | Closed | None:
        """Of the templates that express the requested records; of all, where none are requested."""
        discover = await self.find_discover()
        if discover is None:
            return None
        filled = fill_templates([Requested(record) for record in requested], apex)
        services = [each.service for each in filled] if requested else SERVICES
        return await discover(questions, apex, services) if services else None

    def _conflicts(
        self, requested: Sequence[Record], view: ZoneView, provider: Provider, needs: CertificateNeeds
    ) -> list[Conflict]:
        flattens = provider.capabilities.cname_flattening
        found = find_conflicts(requested, view, flattens_apex=flattens, certificates=needs)
        return [self._shown(each) for each in found]

    def _shown(self, conflict: Conflict) -> Conflict:
        """Leave out a private address, which only the operator's own resolver may know."""
        value = conflict.record.value
        (shown,) = hide_private([value], known=self.service_targets.service_servers)
        if shown == value:
            return conflict
        record = replace(conflict.record, value=shown)
        return replace(conflict, record=record, reason=conflict.reason.replace(value, shown))


def _assess(provider: Provider, name_servers: Sequence[str], discovered: Discovered | Closed | None) -> Assessed:
    is_automatic = find_api(provider.api) is not None
    if isinstance(discovered, Discovered) and discovered.services:
        is_automatic |= hosts(discovered.settings, name_servers)
    return Assessed(provider, "automatic" if is_automatic else "manual")


def _assess_zone(view: ZoneView, discovered: Discovered | Closed | None) -> Assessed:
    """Return the provider of the zone itself."""
    servers = view.name_servers.values or view.delegation.values
    return _assess(find_provider(servers, _first(view.soa.values)), servers, discovered)


def refuse_tier(application: Application) -> None:
    """Refuse an application without the tier of the domain check. Raises: `Refused`."""
    if application.tier not in TIERS:
        raise Refused(FORBIDDEN, code="tier", hint="the domain check belongs to the tier premium and above")


def _first(values: Sequence[str]) -> str:
    return values[0] if values else ""
