"""``GET /operations``: the state of the installation, for operators."""

from __future__ import annotations

from aiohttp import web

from api.answers.installation import operations
from api.auth import rights_of
from api.responses import respond
from api.services.installation import InstallationService


class OperationsHandler:
    """Handler of the state of the installation."""

    def __init__(self, installation: InstallationService) -> None:
        self._installation = installation

    async def get(self, request: web.Request) -> web.Response:
        """Show the state of the installation to an operator."""
        rights_of(request).require_operator()
        found = await self._installation.read()
        return respond(operations(found, self._installation.problems(found), found.notices))
