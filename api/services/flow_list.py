"""Lists of the connect modal's flows, for a partner's support, and where people give up."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from api.errors import Refused, invalid_parameter
from common.clock import Clock
from common.db import connect_flow_list, connect_flows
from common.db.applications import Application
from common.db.connect_flow_list import FlowFilter, FlowPart, Funnel, ListedFlow
from common.db.connect_flows import Flow
from common.db.pool import Database


@dataclass(frozen=True, slots=True)
class FlowListService:
    """Lists flows and counts their steps. One instance per process."""

    database: Database
    clock: Clock
    scanned: int = connect_flow_list.SCANNED

    async def list_part(
        self, application: Application, which: FlowFilter, *, after: str | None, limit: int
    ) -> FlowPart:
        """Return a part of the application's flows, newest first. Raises: `Refused`."""
        async with self.database.connection() as connection:
            if after is not None and not await connect_flow_list.has_flow(connection, application.id, after):
                raise Refused(invalid_parameter("after"), hint="the `next` of the part before: begin again without it")
            return await connect_flow_list.list_flows(
                connection, application.id, which, after=after, limit=limit, scanned=self.scanned
            )

    async def find(self, application: Application, flow_id: str) -> tuple[ListedFlow, Flow] | None:
        """Return one of the application's flows, as the list shows it and whole; None where there is no such flow."""
        async with self.database.connection() as connection:
            listed = await connect_flow_list.find_flow(connection, application.id, flow_id)
            whole = await connect_flows.find(connection, flow_id, application.id)
        return None if listed is None or whole is None else (listed, whole)

    async def read_funnel(self, application: Application, days: int) -> Funnel:
        """Return how far the application's flows came that began in the last `days`."""
        since = self.clock.now() - timedelta(days=days)
        async with self.database.connection() as connection:
            return await connect_flow_list.read_funnel(connection, application.id, since)
