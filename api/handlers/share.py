"""``/share/:id``: open to every holder of the link. A page for people, JSON for programs that ask for it."""

from __future__ import annotations

import re

from aiohttp import web

from api.answers.sharing import share_content
from api.auth import Authenticator
from api.cross_origin import CONNECT_SCOPE
from api.errors import NOT_FOUND, Refused
from api.pages import share as page
from api.responses import respond
from common.db.pool import Database
from common.db.shares import Share, get_share

_ID = re.compile(r"[A-Za-z0-9_-]{16,64}")


class ShareHandler:
    """Handler of the address behind a sharing link."""

    def __init__(self, database: Database, authenticator: Authenticator) -> None:
        self._database = database
        self._authenticator = authenticator

    async def get(self, request: web.Request) -> web.Response:
        """Show what is behind a link: a page, or JSON to programs."""
        share = await self._find(request.match_info["id"])
        if _wants_json(request):
            if share is None:
                raise Refused(NOT_FOUND, code="link_not_found", hint="the link is not whole, or has expired")
            return _with_headers(respond(share_content(share, await self._mint(share))))
        if share is None:
            return _with_headers(_html(page.render_gone(), 404))
        return _with_headers(_html(page.render_share(share), 200))

    async def _mint(self, share: Share) -> str:
        """Make a token for the link's flows, domain and user alone, which ends with the link.

        The link itself carries no token: opening it makes one.
        """
        claims = {"scope": CONNECT_SCOPE, "share": share.id, "domain": share.domain, "userId": share.user_id}
        restricting = {name: value for name, value in claims.items() if value is not None}
        return await self._authenticator.mint_for_browser(share.application_id, restricting, share.expires_at)

    async def _find(self, share_id: str) -> Share | None:
        if not _ID.fullmatch(share_id):
            return None
        async with self._database.connection() as connection:
            return await get_share(connection, share_id)


def _wants_json(request: web.Request) -> bool:
    accept = request.headers.get("Accept", "").lower()
    return "application/json" in accept and "text/html" not in accept


def _html(text: str, status: int) -> web.Response:
    return web.Response(text=text, status=status, content_type="text/html", charset="utf-8")


def _with_headers(response: web.Response) -> web.Response:
    response.headers.update(page.HEADERS)
    return response
