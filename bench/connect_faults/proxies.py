"""The proxies before the name servers: each request that changes a zone meets the fault that is drawn for it.

One for RFC 2136 (DNS messages over TCP), one for the API of PowerDNS (HTTP). Both read the zone's name from the request
and ask `OnWrite` what is to happen; what changes no zone passes.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import dns.exception
import dns.message
import dns.name
import dns.opcode
import dns.rcode
import dns.tsig
from aiohttp import web

from bench.connect_faults.faults import WriteFault
from bench.lab.serving import serving
from common.host_ports import HostPort

SLOW_SECONDS = 0.5
_SECONDS = 300.0  # the API may be killed and started meanwhile

OnWrite = Callable[[str, "Forward"], Awaitable[WriteFault | None]]
"""Called with the zone's name before a change is forwarded. It forwards by itself where the fault is what comes after
that. Returns the fault that the proxy still has to act out."""
Forward = Callable[[], Awaitable[None]]

_RCODES = {WriteFault.FAIL: dns.rcode.SERVFAIL, WriteFault.RATE_LIMIT: dns.rcode.REFUSED, WriteFault.LIE: 0}
_STATUSES = {WriteFault.FAIL: 500, WriteFault.RATE_LIMIT: 429, WriteFault.LIE: 204}


class _Cut(Exception):
    """The connection is to end without an answer."""


@contextlib.asynccontextmanager
async def update_proxy(server: HostPort, key: dns.tsig.Key, on_write: OnWrite) -> AsyncIterator[HostPort]:
    """Run a proxy before a name server that takes signed updates over TCP, and yield its address."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, EOFError, _Cut, TimeoutError):
            async with asyncio.timeout(_SECONDS):
                writer.write(_framed(await _answer_update(server, key, await _read(reader), on_write)))
                await writer.drain()
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1")
    async with listening:
        yield HostPort(*listening.sockets[0].getsockname()[:2])


async def _answer_update(server: HostPort, key: dns.tsig.Key, wire: bytes, on_write: OnWrite) -> bytes:
    """Answer one update: forward it, or act out its fault.

    Raises: `_Cut`.
    """
    try:
        update = dns.message.from_wire(wire, keyring={key.name: key})
    except dns.exception.DNSException:  # of a wrong key: the server's own answer
        return await _exchange(server, wire)
    answer = b""

    async def forward() -> None:
        nonlocal answer
        answer = await _exchange(server, wire)

    fault = await on_write(update.question[0].name.to_text(omit_final_dot=True), forward)
    if fault in _RCODES:
        response = dns.message.make_response(update)
        response.set_rcode(dns.rcode.Rcode(_RCODES[fault]))
        return response.to_wire()
    await _act_out(fault, forward)
    return answer


async def _act_out(fault: WriteFault | None, forward: Forward) -> None:
    """Act out a fault that concerns the connection, or forward.

    Raises: `_Cut`.
    """
    if fault is WriteFault.CUT_BEFORE:
        raise _Cut
    if fault is WriteFault.SLOW:
        await asyncio.sleep(SLOW_SECONDS)
    await forward()
    if fault is WriteFault.CUT_AFTER:
        raise _Cut


async def _exchange(server: HostPort, wire: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(server.host, server.port)
    try:
        writer.write(_framed(wire))
        return await _read(reader)
    finally:
        writer.close()


async def _read(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack("!H", await reader.readexactly(2))
    return await reader.readexactly(size)


def _framed(wire: bytes) -> bytes:
    return struct.pack("!H", len(wire)) + wire


@contextlib.asynccontextmanager
async def api_proxy(url: str, on_write: OnWrite) -> AsyncIterator[str]:
    """Run a proxy before the API of PowerDNS, and yield its URL."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_SECONDS)) as session:

        async def serve(request: web.Request) -> web.Response:
            body, answer = await request.read(), web.Response()
            headers = {name: request.headers[name] for name in ("X-API-Key", "Content-Type") if name in request.headers}

            async def forward() -> None:
                nonlocal answer
                async with session.request(request.method, url + request.raw_path, data=body, headers=headers) as found:
                    answer = web.Response(status=found.status, body=await found.read(), content_type=found.content_type)

            if request.method != "PATCH":
                await forward()
                return answer
            fault = await on_write(request.path.rsplit("/", 1)[-1].removesuffix("."), forward)
            if fault in _STATUSES:
                return web.Response(status=_STATUSES[fault])
            try:
                await _act_out(fault, forward)
            except _Cut:
                if request.transport is not None:
                    request.transport.abort()
            return answer

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", serve)
        async with serving(app, "127.0.0.1", 0) as address:
            yield f"http://{address}"
