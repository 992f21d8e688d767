"""Inspects a flow's zone with this process' resolver and settings. Asks the DNS, writes nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from common.addresses import tenant_policy
from common.caa_identities import find_identities
from common.connect.domain_connect.discovery import Discovery
from common.connect.domain_connect.recent import RecentAnswers
from common.connect.plan import Values
from common.connect.rights import Vouches, vouches_for_own
from common.connect.root import find_root_cname
from common.connect.zone_inspection import Discover, Note, ZoneInspection, inspect_zone, read_back, read_sets
from common.db import domain_connect_keys
from common.db.applications import Application, get_application
from common.db.connect_flows import Flow
from common.db.pool import Database
from common.dns import Resolver
from common.domain_check.conflicts import NO_CERTIFICATES, CertificateNeeds
from common.flows.plan import SetKey
from common.ip_addresses import IPAddress
from common.records import normal_name
from common.settings import Settings


async def find_certificate_needs(
    database: Database, settings: Settings, hosts: frozenset[str], *, is_test: bool
) -> CertificateNeeds:
    """Return what the names need in CAA records: nothing for the internal issuer, which asks for none.

    It issues for an application for tests, whatever CA issues for others (`is_test`).

    Raises: `DatabaseUnavailable`.
    """
    if not hosts or is_test or settings.issuer == "internal":
        return NO_CERTIFICATES
    return CertificateNeeds(hosts, await find_identities(database, settings))


@dataclass(frozen=True, slots=True)
class ZoneInspector:
    """Inspects flows' zones. A process makes one."""

    resolver: Resolver
    database: Database
    settings: Settings

    async def inspect(self, flow: Flow, *, note: Note | None = None) -> ZoneInspection:
        """Inspect a flow's zone, and make the plan for its records.

        Raises: `CouldNotInspect`, `DatabaseUnavailable`.
        """
        requested, apex = flow.requested, flow.domain or ""
        hosts = frozenset(each.name(apex) for each in requested if each.purpose.product)
        async with self.database.connection() as connection:
            application = await get_application(connection, flow.application_id)
        is_test = application is not None and application.is_test
        needs = await find_certificate_needs(self.database, self.settings, hosts, is_test=is_test)
        return await inspect_zone(
            self.resolver,
            apex,
            requested,
            tenant=flow.application_id,
            note=note,
            certificates=needs,
            discover=await self.find_discover(),
            service_servers=tuple(map(str, self.settings.service_servers)),
            vouches=self._vouches(flow, application),
        )

    def _vouches(self, flow: Flow, application: Application | None) -> Vouches:
        """Return for which of the flow's records our name stands: all, where a server has vouched for its values."""
        if flow.vouched:
            return lambda _: True
        if application is None:
            return lambda _: False
        return vouches_for_own(application, flow.domain or "", frozenset(map(str, self.settings.service_servers)))

    async def find_discover(
        self, *, longest_seconds: float | None = None, recent: RecentAnswers | None = None
    ) -> Discover | None:
        """Return the function that asks providers for Domain Connect.

        None where this installation is not set up for it: without an id or a key to sign with. The rest is as
        `Discovery` takes it.
        """
        provider_id, allowed = self.settings.domain_connect_provider_id, self.settings.allow_private_addresses
        if provider_id is None:
            return None
        async with self.database.connection() as connection:
            if await domain_connect_keys.find_signing(connection) is None:
                return None

        def is_allowed(address: IPAddress) -> bool:
            return any(address in network for network in allowed)

        found = Discovery(self.resolver, tenant_policy(self.settings), is_allowed, provider_id, recent=recent)
        return (found if longest_seconds is None else replace(found, longest_seconds=longest_seconds)).discover

    async def read_sets(self, flow: Flow, keys: Collection[SetKey]) -> Values:
        """Read what the zone's own servers have of these record sets now."""
        return await read_sets(self.resolver, keys, tenant=flow.application_id, alias=_root_alias(flow))

    async def read_back(self, flow: Flow, wanted: Mapping[SetKey, frozenset[str]], *, within_seconds: float) -> Values:
        """Read record sets until they are as wanted, or the time is over."""
        return await read_back(
            self.resolver,
            wanted,
            tenant=flow.application_id,
            within_seconds=within_seconds,
            alias=_root_alias(flow),
        )


def _root_alias(flow: Flow) -> tuple[str, str] | None:
    """Return the root and the target of the CNAME that the flow sets there, if it does."""
    apex = flow.domain or ""
    alias = find_root_cname(flow.requested, apex)
    return None if alias is None else (apex, normal_name(alias.record.value))
