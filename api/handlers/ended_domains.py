"""``GET /domains/ended``: loose ends in the DNS of customers who left."""

from __future__ import annotations

from aiohttp import web

from api.answers.ended_domains import ended_domain
from api.answers.lists import list_of
from api.requests import application_of
from api.responses import respond
from api.schemas import queries
from api.services.ended_domains import MOST_LISTED, EndedDomains


class EndedDomainsHandler:
    """Handler of domains that ended."""

    def __init__(self, service: EndedDomains) -> None:
        self._service = service

    async def get(self, request: web.Request) -> web.Response:
        """List the domains that ended, by name."""
        text = queries.parse_optional_text(request.query, "after")
        after = "" if text is None else queries.parse_name(text).text
        limit = queries.parse_integer(request.query, "limit", default=MOST_LISTED, least=1, most=MOST_LISTED)
        found = await self._service.list_part(application_of(request), after=after, limit=limit)
        following = found[-1].domain if len(found) == limit else None
        return respond(list_of(list(map(ended_domain, found)), following, limit))
