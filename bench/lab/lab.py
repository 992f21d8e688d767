"""The lab as one object: origin, zone and its desk, sink, the partner's site, DNS providers and a registry.

`PROVIDER_ZONE` is hosted by a Domain Connect provider, which writes into the lab's zone. `POWERDNS_ZONE` is hosted by
PowerDNS, where it is installed.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final, Self

from bench.lab.desk import ZoneDesk
from bench.lab.domain_connect import DomainConnectProvider, ZoneStore
from bench.lab.origin import LabOrigin
from bench.lab.partner import PartnerSite
from bench.lab.ports import unreserved_ports
from bench.lab.powerdns import PowerDns, find_powerdns
from bench.lab.rdap import RdapServer
from bench.lab.server import NameServer
from bench.lab.sink import WebhookSink
from bench.lab.updates import UpdateKey
from bench.lab.zone import Zone
from common.errors import OperatorError
from common.host_ports import HostPort

PROVIDER_ZONE: Final = "lab-domains.localhost"
POWERDNS_ZONE: Final = "powerdns.localhost"
REGISTRY: Final = "localhost"
"""The top-level domain whose registrations the RDAP server has."""
_IN_USE: Final = "192.0.2.1"
"""Where `POWERDNS_ZONE` leads before it is connected."""


@dataclass(frozen=True, slots=True)
class Lab:
    """Everything that the lab serves."""

    origin: LabOrigin
    dns: NameServer
    desk: ZoneDesk
    sink: WebhookSink
    partner: PartnerSite
    key: UpdateKey
    """Signs updates of the zone."""
    provider: DomainConnectProvider
    powerdns: PowerDns | None
    rdap: RdapServer

    @property
    def zone(self) -> Zone:
        """Return the lab's zone."""
        return self.dns.zone

    @property
    def addresses(self) -> dict[str, str]:
        """Return where everything is: the line ``python -m bench.lab`` prints."""
        return {
            "origin": self.origin.url,
            "dns": self.dns.address,
            "zone": self.desk.url,
            "sink": self.sink.url,
            "partner": self.partner.url,
            "key": f"{self.key.name}:{self.key.secret}",
            "provider": f"http://{self.provider.authority}",
            "powerdns": f"{self.powerdns.key}@{self.powerdns.api_url}" if self.powerdns else "",
            "rdap": f"{self.rdap.url}dns.json",
        }

    @classmethod
    @contextlib.asynccontextmanager
    async def start(cls, *, has_powerdns: bool = False) -> AsyncIterator[Self]:
        """Serve everything on free loopback ports. `has_powerdns`: with PowerDNS, where it is installed."""
        zone, key = Zone(), UpdateKey.mint("customer")
        async with contextlib.AsyncExitStack() as stack:
            powerdns = await _started_powerdns(stack) if has_powerdns and find_powerdns() is not None else None
            delegations = {POWERDNS_ZONE: powerdns.address} if powerdns else {}
            dns = await stack.enter_async_context(NameServer.serve(zone, key=key, delegations=delegations))
            provider = await stack.enter_async_context(
                DomainConnectProvider.serve(PROVIDER_ZONE, ZoneStore(zone), HostPort(dns.host, dns.port), ())
            )
            yield cls(
                await stack.enter_async_context(LabOrigin.serve()),
                dns,
                await stack.enter_async_context(ZoneDesk.serve(zone)),
                await stack.enter_async_context(WebhookSink.serve()),
                await stack.enter_async_context(PartnerSite.serve()),
                key,
                provider,
                powerdns,
                await stack.enter_async_context(RdapServer.serve(REGISTRY)),
            )


async def _started_powerdns(stack: contextlib.AsyncExitStack) -> PowerDns | None:
    """Start PowerDNS. Return None when it does not start: the lab is whole without it."""
    records = [(f"shop.{POWERDNS_ZONE}", "A", _IN_USE)]
    try:
        port, api_port = unreserved_ports(2)
        return await stack.enter_async_context(PowerDns.serve({POWERDNS_ZONE: records}, ports=(port, api_port)))
    except (OperatorError, OSError) as error:
        print(f"frontage lab: PowerDNS is left out: {error}", file=sys.stderr)
        return None
