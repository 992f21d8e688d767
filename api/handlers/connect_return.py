"""``/connect/return/:id``: where a Domain Connect provider sends the browser back to. Open: the state decides."""

from __future__ import annotations

from aiohttp import web

from api.connect.returning import read_return
from api.pages import connect_return as page
from api.services.connect import ConnectService

_MOST_CHARACTERS = 256


class ConnectReturnHandler:
    """Handler of the way back from a provider."""

    def __init__(self, service: ConnectService) -> None:
        self._service = service

    async def get(self, request: web.Request) -> web.Response:
        """Render the same page for a flow that is not there and for a state that is not its."""
        flow_id, state = request.match_info["id"], request.query.get("state", "")
        is_taken = len(flow_id) <= _MOST_CHARACTERS >= len(state) and await self._service.take_return(
            flow_id, state, read_return(request.query)
        )
        return web.Response(
            text=page.render(is_taken=is_taken),
            status=200 if is_taken else 404,
            content_type="text/html",
            charset="utf-8",
            headers=page.HEADERS,
        )
