"""Handlers of the list of flows and of their funnel."""

from __future__ import annotations

from aiohttp import web

from api.answers import flow_list as answers
from api.requests import ACCESS, application_of
from api.responses import respond
from api.schemas.flow_list import parse_flows_query, parse_funnel_query
from api.services.flow_list import FlowListService


class FlowListHandlers:
    """Handlers of the list of flows."""

    def __init__(self, service: FlowListService) -> None:
        self._service = service

    async def get(self, request: web.Request) -> web.Response:
        """List flows, newest first."""
        request[ACCESS].refuse_browsers()  # a page sees the flows that it began, and no list of others'
        query = parse_flows_query(request.query)
        part = await self._service.list_part(application_of(request), query.which, after=query.after, limit=query.limit)
        return respond(answers.flow_list(part, query.limit))

    async def get_funnel(self, request: web.Request) -> web.Response:
        """Show how far flows came."""
        found = await self._service.read_funnel(application_of(request), parse_funnel_query(request.query))
        return respond(answers.funnel(found))
