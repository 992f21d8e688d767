"""The lab as one object: origin, zone and its desk, sink, and the partner's site, started and closed together."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Self

from bench.lab.desk import ZoneDesk
from bench.lab.origin import Origin
from bench.lab.partner import PartnerSite
from bench.lab.server import NameServer
from bench.lab.sink import WebhookSink
from bench.lab.updates import UpdateKey
from bench.lab.zone import Zone


@dataclass(frozen=True, slots=True)
class Lab:
    origin: Origin
    dns: NameServer
    desk: ZoneDesk
    sink: WebhookSink
    partner: PartnerSite
    key: UpdateKey
    """Signs updates of the zone."""

    @property
    def zone(self) -> Zone:
        return self.dns.zone

    @property
    def addresses(self) -> dict[str, str]:
        """Where everything is: the line ``python -m bench.lab`` prints."""
        return {
            "origin": self.origin.url,
            "dns": self.dns.address,
            "zone": self.desk.url,
            "sink": self.sink.url,
            "partner": self.partner.url,
            "key": f"{self.key.name}:{self.key.secret}",
        }

    @classmethod
    @contextlib.asynccontextmanager
    async def start(cls) -> AsyncIterator[Self]:
        """Everything on free loopback ports."""
        zone, key = Zone(), UpdateKey.mint("customer")
        async with (
            Origin.serve() as origin,
            NameServer.serve(zone, key=key) as dns,
            ZoneDesk.serve(zone) as desk,
            WebhookSink.serve() as sink,
            PartnerSite.serve() as partner,
        ):
            yield cls(origin, dns, desk, sink, partner, key)
