"""Styles and scripts of ours."""

from __future__ import annotations

from aiohttp import web

from api.dashboard.context import DashboardContext


class FileHandler:
    """Serves the stylesheet, scripts and pictures of the dashboard."""

    def __init__(self, context: DashboardContext) -> None:
        self._assets = context.renderer.assets

    async def get(self, request: web.Request) -> web.Response:
        """Serve a file by its digest and name."""
        asset = self._assets.get(request.match_info["name"])
        if asset is None or asset.digest != request.match_info["digest"]:
            raise web.HTTPNotFound
        return web.Response(
            body=asset.content,
            content_type=asset.content_type,
            charset="utf-8",
            headers={"Cache-Control": "public, max-age=31536000, immutable"},
        )
