"""The DNS service of an edge: the settings' zone, answered from the replica; it is one part of the active role.

It runs beside the replica's writer, not in the workers: questions that flood it take nothing from visitors' requests.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from common.metrics import Family
from common.settings import Settings
from edge.dns.responder import DnsCounters, Responder
from edge.dns.server import serving
from edge.dns.zone import Unknown, Zone
from edge.replica.challenges import FollowingReader, read_challenge_values
from edge.replica.records import RecordUnusable


class DnsService:
    """Serves the delegated zone at sockets that others opened. One for each supervisor, whose counts it keeps."""

    def __init__(self, settings: Settings, descriptors: Sequence[int]) -> None:
        """Prepare to serve. `descriptors`: EDGE_DNS over UDP and over TCP, none where it is off."""
        self._zone_name = settings.acme_dns_zone
        self._name_server = settings.power_target
        self._descriptors = descriptors if self._zone_name else ()
        self._counters = DnsCounters()

    @asynccontextmanager
    async def serving(self, reader: FollowingReader, has_copy: Callable[[], bool]) -> AsyncIterator[None]:
        """Answer from the replica until the block ends. `has_copy`: whether anything was ever copied to it."""

        def find_values(label: str) -> tuple[str, ...]:
            try:
                values = read_challenge_values(reader, label)
            except RecordUnusable as error:
                raise Unknown(str(error)) from error
            if not values and not has_copy():
                raise Unknown("nothing was copied yet")
            return values

        if not self._zone_name or not self._descriptors:
            yield
            return
        responder = Responder(Zone(self._zone_name, self._name_server, find_values), self._counters)
        async with serving(self._descriptors, responder):
            yield

    def families(self) -> list[Family]:
        """Return the metrics; there are none where it is off."""
        return self._counters.families() if self._descriptors else []
