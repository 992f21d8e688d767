"""The overview: what needs attention, and what happened last."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from api.dashboard.context import DashboardContext
from api.dashboard.live import into, stream
from api.dashboard.renderings import LivePart
from api.dashboard.visitors import visitor_of
from api.notices import NO_EDGE, NO_MONITOR, describe_outage
from api.rights import Roles
from common.db import (
    applications,
    audit,
    domain_list,
    domain_totals,
    edge_nodes,
    monitor_nodes,
    origin_outages,
    unwell_domains,
)
from common.db.domain_list_query import DomainListQuery
from common.db.session import Connection

_ATTENTION = 8
_LATEST = 8
_NOT_CHECKED = (
    "No monitored record is checked now: no running monitor checks any. The operator has to mend one: `frontage doctor`"
    " shows which."
)


class HomePage:
    """The first page. One instance per process."""

    def __init__(self, context: DashboardContext) -> None:
        self._context = context

    async def get(self, request: web.Request) -> web.StreamResponse:
        """Show the first page after signing in."""
        organisations = visitor_of(request).visible_organisation_ids
        async with self._context.database.connection() as connection:
            some = await applications.list_visible(connection, organisations, most=6)
            latest = await audit.list_entries(connection, before=None, limit=_LATEST, organisation_ids=organisations)
            standing = await self._read(connection, visitor_of(request).roles)
        return self._context.renderer.page(request, "home.html", applications=some, latest=latest, **standing)

    async def get_live(self, request: web.Request) -> web.StreamResponse:
        """How many domains there are, and which need attention."""

        async def parts() -> tuple[LivePart, ...]:
            roles = visitor_of(request).roles
            return (LivePart(self._standing, (roles,), roles.tenant, self._context.live.overview),)

        return await stream(self._context, request, parts)

    async def _standing(self, roles: Roles) -> str:
        async with self._context.database.connection() as connection:
            values = await self._read(connection, roles)
        fragment = self._context.renderer.fragment
        totals = fragment("_totals.html", of="", **values)
        return into("totals", totals) + into("attention-card", fragment("_attention.html", **values))

    async def _read(self, connection: Connection, roles: Roles) -> dict[str, Any]:
        organisations = roles.visible_organisation_ids
        ids = None if organisations is None else await applications.list_visible_ids(connection, organisations)
        totals = await domain_totals.count_domains(connection, ids)
        part = await domain_list.list_part(connection, DomainListQuery(ids, status="problem", limit=_ATTENTION))
        active = await unwell_domains.list_unwell(connection, ids, most=_ATTENTION)
        return {
            "totals": totals,
            "attention": [*part.rows, *active][:_ATTENTION],
            "is_listed": bool(part.rows or active),
            "outages": await _outages(connection),
            "failing_origins": [
                (each, describe_outage(each.fault))
                for each in await origin_outages.list_reported(connection, ids, most=_ATTENTION)
            ],
        }


async def _outages(connection: Connection) -> list[str]:
    """Return what the installation does for no domain now, in sentences."""
    found = [] if await edge_nodes.count_alive(connection) else [NO_EDGE.hint]
    if not await monitor_nodes.is_issuing(connection):
        found.append(NO_MONITOR.hint)
    elif not await monitor_nodes.is_checking(connection):
        found.append(_NOT_CHECKED)
    return found
