"""A plain proxy in aiohttp, as one writes it in an afternoon: what "in Python" usually costs.

A peer, and also the program: ``python -m bench.peers.aiohttp_proxy SITES.json HTTP_PORT HTTPS_PORT``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import ClassVar

from aiohttp import ClientResponse, ClientSession, ClientTimeout, ClientWebSocketResponse, TCPConnector, WSMsgType, web
from multidict import CIMultiDict
from yarl import URL

from bench.lab.ports import free_ports
from bench.peers import PROXY_CORE, RunningProxy, Sites
from bench.pinned import module, server
from common.processes import loop_factory

_HOP_BY_HOP = ("Connection", "Keep-Alive", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Proxy-Connection")
_WEBSOCKET = ("Sec-WebSocket-Key", "Sec-WebSocket-Version", "Sec-WebSocket-Extensions")


class Aiohttp:
    """aiohttp as a peer."""

    name = "aiohttp"
    needs: ClassVar[dict[str, str]] = {}

    @contextlib.asynccontextmanager
    async def serve(self, sites: Sites) -> AsyncIterator[RunningProxy]:
        """Run the proxy for the block."""
        http_port, https_port = free_ports(2)
        with tempfile.TemporaryDirectory(prefix="frontage-aiohttp-", ignore_cleanup_errors=True) as name:
            file = Path(name) / "sites.json"
            described = {"origin_ports": dict(sites.origin_ports), "certificates": str(sites.certificates)}
            file.write_text(json.dumps(described))
            argv = module(__name__, str(file), str(http_port), str(https_port))
            async with server(argv, core=PROXY_CORE, log=Path(name) / "output.log", port=http_port) as pid:
                yield RunningProxy(pid, http_port, https_port)


class _Proxy:
    """Forwards requests. Created by `_serve`, which closes the session."""

    def __init__(self, sites: Sites, session: ClientSession) -> None:
        self._origins = {
            host: URL(f"{sites.scheme(host)}://127.0.0.1:{port}") for host, port in sites.origin_ports.items()
        }
        self._session = session

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Forward a request, and relay the answer."""
        host = request.host.partition(":")[0].lower()
        origin = self._origins.get(host)
        if origin is None:
            raise web.HTTPNotFound
        fields = _onward(request, host, origin.authority)
        url = URL(f"{origin.origin()}{request.raw_path}", encoded=True)
        if "Upgrade" in request.headers:
            return await self._tunnel(request, url, fields)
        body = request.content if request.can_read_body else None
        async with self._session.request(
            request.method, url, headers=fields, data=body, allow_redirects=False
        ) as answer:
            return await _relay(request, answer)

    async def _tunnel(self, request: web.Request, url: URL, fields: CIMultiDict[str]) -> web.WebSocketResponse:
        for name in _WEBSOCKET:
            fields.popall(name, None)
        downstream = web.WebSocketResponse(compress=False)
        await downstream.prepare(request)
        async with self._session.ws_connect(url, headers=fields) as upstream, asyncio.TaskGroup() as pumps:
            pumps.create_task(_pump(downstream, upstream))
            pumps.create_task(_pump(upstream, downstream))
        return downstream


async def _relay(request: web.Request, answer: ClientResponse) -> web.StreamResponse:
    fields = CIMultiDict(answer.headers)
    for name in _HOP_BY_HOP:
        fields.popall(name, None)
    response = web.StreamResponse(status=answer.status, headers=fields)
    await response.prepare(request)
    async for chunk in answer.content.iter_any():
        await response.write(chunk)
    await response.write_eof()
    return response


_Socket = web.WebSocketResponse | ClientWebSocketResponse


async def _pump(source: _Socket, sink: _Socket) -> None:
    async for message in source:
        if message.type is WSMsgType.TEXT:
            await sink.send_str(message.data)
        elif message.type is WSMsgType.BINARY:
            await sink.send_bytes(message.data)
    await sink.close()


def _onward(request: web.Request, host: str, origin: str) -> CIMultiDict[str]:
    fields = CIMultiDict(request.headers)
    for name in _HOP_BY_HOP:
        fields.popall(name, None)
    client = request.remote or ""
    fields["Host"] = origin
    fields["X-Forwarded-Host"] = request.host
    fields["x-service-forwarded-host"] = host
    fields["X-Forwarded-For"] = client
    fields["X-Forwarded-IP"] = client
    fields["X-Forwarded-Proto"] = request.scheme
    fields["X-Forwarded-Port"] = str(request.url.port)
    fields["Via"] = "1.1 aiohttp"
    return fields


class _Contexts:
    """Keeps one TLS context per host, created when it is first asked for."""

    def __init__(self, sites: Sites) -> None:
        self._sites = sites
        self._made: dict[str, ssl.SSLContext] = {}

    def choosing(self) -> ssl.SSLContext:
        """Return the context to listen with, which chooses by the client's server name."""
        context = self._of(next(iter(self._sites.origin_ports)))
        context.sni_callback = self._choose
        return context

    def _choose(self, sslobj: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        if name is not None and name in self._sites.origin_ports:
            sslobj.context = self._of(name)

    def _of(self, host: str) -> ssl.SSLContext:
        if host not in self._made:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self._sites.certificate(host))
            self._made[host] = context
        return self._made[host]


async def _serve(sites: Sites, http_port: int, https_port: int) -> None:
    connector = TCPConnector(limit=0, keepalive_timeout=300, ssl=False)
    async with ClientSession(connector=connector, auto_decompress=False, timeout=ClientTimeout(total=60)) as session:
        app = web.Application(client_max_size=2**40)
        app.router.add_route("*", "/{anything:.*}", _Proxy(sites, session).answer)
        runner = web.AppRunner(app, access_log=None, keepalive_timeout=300)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", https_port, ssl_context=_Contexts(sites).choosing()).start()
        await web.TCPSite(runner, "127.0.0.1", http_port).start()
        await asyncio.Event().wait()


def main() -> None:
    """Run the proxy until it is ended."""
    described = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    sites = Sites(described["origin_ports"], Path(described["certificates"]))
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_serve(sites, int(sys.argv[2]), int(sys.argv[3])))


if __name__ == "__main__":
    main()
