"""The looker: looks at a flow's zone with this process' resolver and settings. Asks the DNS, writes nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from common.connect.looking import Look, Note, look, read_back, read_sets
from common.connect.plan import SetKey, Values
from common.connect.requested import Requested
from common.db.connect_flows import Flow
from common.dns import Resolver


@dataclass(frozen=True, slots=True)
class Looker:
    """One a process."""

    resolver: Resolver

    async def look(self, flow: Flow, *, note: Note | None = None) -> Look:
        """Raises: `CouldNotAsk`."""
        requested = tuple(map(Requested.from_json, flow.requested))
        return await look(self.resolver, flow.domain or "", requested, tenant=flow.application_id, note=note)

    async def read_sets(self, flow: Flow, keys: Collection[SetKey]) -> Values:
        return await read_sets(self.resolver, keys, tenant=flow.application_id)

    async def read_back(self, flow: Flow, wanted: Mapping[SetKey, frozenset[str]], *, within_seconds: float) -> Values:
        return await read_back(self.resolver, wanted, tenant=flow.application_id, within_seconds=within_seconds)
