"""``/sdk/…``: the browser SDK, for every page on the web. No token, no cookies."""

from __future__ import annotations

from pathlib import Path

from aiohttp import web

from api.errors import NOT_FOUND, Refused
from api.sdk.assets import SdkAsset, load_assets

_MOVING_SECONDS = 300
_PINNED_SECONDS = 365 * 24 * 60 * 60


class SdkHandler:
    """Serves the SDK's own files, and the release files of earlier versions in `releases`."""

    def __init__(self, releases: Path) -> None:
        self._assets = load_assets(releases)

    async def get(self, request: web.Request) -> web.Response:
        """Serve a file of the SDK."""
        asset = self._assets.get(request.path.removeprefix("/sdk/"))
        if asset is None:
            raise Refused(NOT_FOUND)
        headers = _headers(asset)
        if request.headers.get("If-None-Match") == asset.etag:
            return web.Response(status=304, headers=headers)
        if asset.gzipped is not None and "gzip" in request.headers.get("Accept-Encoding", ""):
            return web.Response(body=asset.gzipped, headers=headers | {"Content-Encoding": "gzip"})
        return web.Response(body=asset.content, headers=headers)


def _headers(asset: SdkAsset) -> dict[str, str]:
    lifetime = f"max-age={_PINNED_SECONDS}, immutable" if asset.is_pinned else f"max-age={_MOVING_SECONDS}"
    return {
        "Content-Type": asset.content_type,
        "Cache-Control": f"public, {lifetime}",
        "ETag": asset.etag,
        "Vary": "Accept-Encoding",
        "Access-Control-Allow-Origin": "*",
        "Cross-Origin-Resource-Policy": "cross-origin",
        "X-Content-Type-Options": "nosniff",
    }
