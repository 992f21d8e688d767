"""The page that a partner shows its customer, and the link to it."""

from __future__ import annotations

from aiohttp import hdrs, web

from api.answers.domain_details import StatusLink
from api.pages import share, status
from api.requests import application_of, read_body
from api.responses import respond, respond_message
from api.schemas import queries
from api.schemas.status_link import StatusLinkBody
from api.services.status_pages import StatusPages
from common.db import status_links

REVOKED = "Link revoked."


class StatusPageHandlers:
    """Handlers of the page and of its link."""

    def __init__(self, service: StatusPages) -> None:
        self._service = service

    async def post(self, request: web.Request) -> web.Response:
        """Make the link of a domain."""
        name = queries.parse_name(request.match_info["domain"])
        body = await read_body(request, StatusLinkBody)
        link = await self._service.make(application_of(request), name, body.expires_in_days)
        return respond(self._answer(link), 201)

    async def get(self, request: web.Request) -> web.Response:
        """Return the link of a domain that was made last."""
        name = queries.parse_name(request.match_info["domain"])
        return respond(self._answer(await self._service.find(application_of(request), name)))

    async def delete(self, request: web.Request) -> web.Response:
        """End the link of a domain."""
        await self._service.revoke(application_of(request), queries.parse_name(request.match_info["domain"]))
        return respond_message(REVOKED)

    async def page(self, request: web.Request) -> web.Response:
        """Show how the domain of a link is, in the language of ``lang`` or of the browser."""
        shown = await self._service.open(request.match_info["link"])
        if shown is None:
            return _html(share.render_gone(), 404)
        locale = status.choose_locale(request.query.get("lang", ""), request.headers.get(hdrs.ACCEPT_LANGUAGE, ""))
        records = [status.ShownRecord(each.type, each.host, each.value) for each in shown.records]
        text = status.render_status(
            locale, str(shown.domain), shown.partner, shown.word, records, shown.link.expires_at
        )
        return _html(text, 200)

    def _answer(self, link: status_links.StatusLink) -> StatusLink:
        return {
            "domain": link.domain,
            "link": self._service.url(link),
            "createdAt": link.created_at,
            "expiresAt": link.expires_at,
        }


def _html(text: str, code: int) -> web.Response:
    return web.Response(text=text, status=code, content_type="text/html", charset="utf-8", headers=status.HEADERS)
