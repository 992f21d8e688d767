"""The origin: a partner's application, as far as Frontage can see one.

Under each of `VERSIONS` (the root, ``/a``, ``/b``) it serves
    /              a page that shows the host it is rendered on and the headers it received
    /echo          JSON: method, path, query, headers in their order, size and SHA-256 of the body
    /bytes/N       N bytes (the pattern of `pattern`), streamed, with their length announced
    /socket        a WebSocket that echoes every message
and, at the root only, ``/static/…``: what root-path access is for. The versions differ in title and colour,
so that a change of applicationUrl is visible.
"""

from __future__ import annotations

import contextlib
import hashlib
import html
from collections.abc import AsyncIterator
from dataclasses import dataclass
from importlib import resources
from string import Template
from typing import Self

import orjson
from aiohttp import WSMsgType, web
from aiohttp.typedefs import Handler

from bench.lab.serving import serving

_CHUNK_BYTES = 65536
_LARGEST_BODY_BYTES = 2**30
_SHOWN_HEADERS = (
    "host",
    "x-forwarded-host",
    "x-service-forwarded-host",
    "x-forwarded-for",
    "x-forwarded-ip",
    "x-forwarded-proto",
    "x-service-auth",
    "user-agent",
)


@dataclass(frozen=True, slots=True)
class Version:
    """How the application looks under one base path."""

    base: str
    title: str
    accent: str


VERSIONS = (
    Version("", "The partner's application", "#0f766e"),
    Version("/a", "Version A of the application", "#1d4ed8"),
    Version("/b", "Version B of the application", "#b91c1c"),
)


class LabOrigin:
    """The partner's application. Created and closed by `serve`."""

    def __init__(self) -> None:
        self.url = ""
        self.requests = 0
        self._page = Template((resources.files("bench.lab") / "page.html").read_text("utf-8"))
        self._mark = (resources.files("bench.lab") / "mark.svg").read_bytes()

    @classmethod
    @contextlib.asynccontextmanager
    async def serve(cls, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[Self]:
        """Serve within the block."""
        origin = cls()
        async with serving(origin._app(), host, port) as address:
            origin.url = f"http://{address}"
            yield origin

    def _app(self) -> web.Application:
        app = web.Application(middlewares=[self._count])
        app.router.add_get("/static/mark.svg", self._static)
        for version in VERSIONS:
            page = self._page_of(version)
            for path in {f"{version.base}/", version.base or "/"}:
                app.router.add_get(path, page)
            app.router.add_route("*", f"{version.base}/echo", _echo)
            app.router.add_get(f"{version.base}/bytes/{{size:\\d{{1,10}}}}", _bytes)
            app.router.add_get(f"{version.base}/socket", _socket)
        return app

    @web.middleware
    async def _count(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self.requests += 1
        return await handler(request)

    def _page_of(self, version: Version) -> Handler:
        async def page(request: web.Request) -> web.Response:
            return web.Response(text=self._render(version, request), content_type="text/html")

        return page

    def _render(self, version: Version, request: web.Request) -> str:
        shown = [("request", f"{request.method} {request.raw_path}"), ("base path", version.base or "/")]
        shown += [(name, value) for name in _SHOWN_HEADERS for value in request.headers.getall(name, [])]
        rows = "".join(f"<tr><th>{_text(name)}</th><td><code>{_text(value)}</code></td></tr>" for name, value in shown)
        host = request.headers.get("x-service-forwarded-host") or request.host
        return self._page.substitute(
            title=_text(version.title),
            host=_text(host),
            base=version.base or "/",
            accent=version.accent,
            rows=rows,
        )

    async def _static(self, _: web.Request) -> web.Response:
        return web.Response(body=self._mark, content_type="image/svg+xml")


def pattern(size: int) -> bytes:
    """Return the first `size` bytes of what ``/bytes`` serves: no two places alike, so that lost parts show."""
    repeats = size // len(_PATTERN) + 1
    return (_PATTERN * repeats)[:size]


# 251 is prime: the pattern never lines up with a buffer's size.
_PATTERN = bytes(range(251))


async def _echo(request: web.Request) -> web.Response:
    digest, size = hashlib.sha256(), 0
    async for chunk in request.content.iter_chunked(_CHUNK_BYTES):
        digest.update(chunk)
        size += len(chunk)
    seen = {
        "method": request.method,
        "path": request.raw_path.partition("?")[0],
        "query": request.raw_path.partition("?")[2],
        "headers": [[name.decode("latin-1"), value.decode("latin-1")] for name, value in request.raw_headers],
        "body": {"bytes": size, "sha256": digest.hexdigest()},
    }
    return web.Response(body=orjson.dumps(seen, option=orjson.OPT_INDENT_2), content_type="application/json")


async def _bytes(request: web.Request) -> web.StreamResponse:
    size = int(request.match_info["size"])
    if size > _LARGEST_BODY_BYTES:
        raise web.HTTPRequestEntityTooLarge(max_size=_LARGEST_BODY_BYTES, actual_size=size)
    response = web.StreamResponse(headers={"Content-Type": "application/octet-stream"})
    response.content_length = size
    await response.prepare(request)
    block = pattern(251 * 256)
    for start in range(0, size, len(block)):
        await response.write(block[: size - start])
    await response.write_eof()
    return response


async def _socket(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        if message.type is WSMsgType.TEXT:
            await socket.send_str(message.data)
        elif message.type is WSMsgType.BINARY:
            await socket.send_bytes(message.data)
    return socket


def _text(value: str) -> str:
    return html.escape(value, quote=True)
