"""The API's listening socket. Owns what HTTP itself goes wrong in: requests that never reach the application.

aiohttp answers those in plain text that names its version, and logs the bytes it did not understand, which may
hold a token. Here they are answered in the spec's shape, and their bytes are kept to ourselves.
"""

from __future__ import annotations

import asyncio
import resource
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Any

from aiohttp import web

from api.answers.messages import problem_of
from api.client_address import is_trusted, limited_by
from api.draining import DRAINING
from api.errors import Refused, refused_by_http
from api.open_connections import OpenConnections
from api.responses import respond
from common.host_ports import HostPort
from common.ip_addresses import Network
from common.listen_errors import cannot_listen
from common.logs import get_logger

SOFTWARE = "frontage"
_SHUTDOWN_SECONDS = 5.0
_DRAIN_SECONDS = 10.0
_NEXT_REQUEST_SECONDS = 1.0  # of connections kept alive, once this process drains
_DRAIN_POLL_SECONDS = 0.02
FIRST_REQUEST_SECONDS = 10.0
_IDLE_SECONDS = 60.0
MOST_CONNECTIONS = 1024
_UNSENT_BYTES = 64 * 1024  # of responses that a client does not read: the kernel would take megabytes of them

_log = get_logger("api.serving")


class _Connection(web.RequestHandler):
    """Bounded before a token is shown: in number (`OpenConnections`), and in the time to its first request.

    Between requests, and for a head that stops half-way there, aiohttp's keep-alive time-out ends it.
    """

    __slots__ = ("_draining", "_first_request", "_first_request_seconds", "_open", "_trusted_proxies")

    def __init__(
        self,
        manager: web.Server,
        open_connections: OpenConnections[_Connection],
        trusted: tuple[Network, ...],
        draining: asyncio.Event,
        first_request_seconds: float,
        **options: Any,
    ) -> None:
        """Make a connection of the listener, of whose connections there are `open_connections`.

        Once `draining` is set, each response is its connection's last.
        """
        super().__init__(manager, **options)
        self._open = open_connections
        self._draining = draining
        self._trusted_proxies = trusted
        self._first_request_seconds = first_request_seconds
        self._first_request: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        peer = (transport.get_extra_info("peername") or ("",))[0]
        address = None if is_trusted(peer, self._trusted_proxies) else limited_by(peer)
        loop = asyncio.get_running_loop()
        admission = self._open.admit(self, address, loop.time())
        if admission.evicted is not None:
            admission.evicted.force_close()
        if not admission.is_admitted:
            self.force_close()
            return
        self._first_request = loop.call_later(self._first_request_seconds, self._expect_a_request)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._open.remove(self)
        if self._first_request is not None:
            self._first_request.cancel()
        super().connection_lost(exc)

    @property
    def waits_for_client(self) -> bool:
        """For a request or the rest of its head, for the rest of its body, or for the response to be read."""
        if self._waiter is not None and not self._waiter.done():
            return True
        if self._current_request is not None and not self._current_request.content.is_eof():
            return True
        return self.transport is not None and self.transport.get_write_buffer_size() > 0

    @property
    def is_idle(self) -> bool:
        """Kept alive after a request, and without another one."""
        return self._request_count > 0 and self._waiter is not None and not self._waiter.done()

    def _expect_a_request(self) -> None:
        if self._request_count == 0:
            self.force_close()

    def log_exception(self, *args: Any, **options: Any) -> None:
        """Log a failure without aiohttp's message, which quotes what the client sent.

        An unread body that breaks off is no fault of ours.
        """
        error = options.get("exc_info")
        if isinstance(error, web.RequestPayloadError):
            _log.info("request body could not be read", error=type(error.__cause__ or error).__name__)
        else:
            _log.error("connection failed", exc_info=error)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if isinstance(exc, UnicodeError):  # bytes of the client's that are no text, such as those of an odd Expect
            status = HTTPStatus.BAD_REQUEST
        if not isinstance(exc, ConnectionError):  # the client, or this process, has closed the connection
            _log.info("request could not be read", status=status, error=type(exc).__name__)
        if request.writer.output_size > 0:
            raise ConnectionError("part of an answer was sent already")
        refused = Refused(refused_by_http(status, HTTPStatus(status).phrase))
        response = respond(problem_of(refused, secrets.token_hex(8)), status)
        response.headers["Server"] = SOFTWARE
        response.force_close()
        return response

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send a response; give our shape to what aiohttp refuses before the application sees it.

        That is a strange Expect where there is no route.
        """
        if isinstance(resp, web.HTTPException):
            resp = self.handle_error(request, resp.status, resp)
        if self._draining.is_set():
            resp.force_close()
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            self._open.request_ended(self, asyncio.get_running_loop().time())


@asynccontextmanager
async def serving(
    app: web.Application,
    listen: HostPort,
    trusted_proxies: tuple[Network, ...] = (),
    *,
    passed: socket.socket | None = None,
    most_connections: int = MOST_CONNECTIONS,
    first_request_seconds: float = FIRST_REQUEST_SECONDS,
) -> AsyncIterator[HostPort]:
    """Serve `app` until the block is left, then finish what is under way. Yields where it listens.

    With `passed`, a socket that listens already and that another process holds too, connections wait there from then on
    for the process that follows.

    Raises: `OperatorError`.
    """
    draining = app.get(DRAINING) or asyncio.Event()
    runner = web.AppRunner(app, shutdown_timeout=_SHUTDOWN_SECONDS)
    open_connections: OpenConnections[_Connection] = OpenConnections(
        min(most_connections, _descriptors(most_connections) // 2)
    )
    await runner.setup()
    manager = runner.server
    assert manager is not None
    try:
        connect = partial(_connect, manager, open_connections, trusted_proxies, draining, first_request_seconds)
        listener = await _listen(connect, listen, passed)
        try:
            yield HostPort(*listener.sockets[0].getsockname()[:2])
        finally:
            listener.close()
            draining.set()
            if passed is not None:
                await _drain(manager)
    finally:
        await runner.cleanup()


def _connect(
    manager: web.Server,
    open_connections: OpenConnections[_Connection],
    trusted: tuple[Network, ...],
    draining: asyncio.Event,
    first_request_seconds: float,
) -> _Connection:
    """Make the protocol of a new connection.

    Compressed bodies are refused: unpacking a body to discard it would be work for any client to cause.
    """
    return _Connection(
        manager,
        open_connections,
        trusted,
        draining,
        first_request_seconds,
        loop=asyncio.get_running_loop(),
        keepalive_timeout=_IDLE_SECONDS,
        auto_decompress=False,
    )


async def _drain(manager: web.Server) -> None:
    """Wait until the connections have had their last response, for `_DRAIN_SECONDS`.

    Those kept alive may send one more request for `_NEXT_REQUEST_SECONDS`, since one may be on its way; those
    accepted last have yet to send their first.
    """
    loop = asyncio.get_running_loop()
    began_at = loop.time()
    while manager.connections and loop.time() - began_at < _DRAIN_SECONDS:
        if loop.time() - began_at > _NEXT_REQUEST_SECONDS and all(
            isinstance(each, _Connection) and each.is_idle for each in manager.connections
        ):
            return
        await asyncio.sleep(_DRAIN_POLL_SECONDS)


def _descriptors(most_connections: int) -> int:
    """Of this process; half of them are for questions and Postgres. The soft limit is raised as far as needed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * most_connections if hard == resource.RLIM_INFINITY else min(hard, 2 * most_connections)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return wanted if soft == resource.RLIM_INFINITY else soft


async def _listen(
    new_connection: Callable[[], asyncio.Protocol], listen: HostPort, passed: socket.socket | None
) -> asyncio.Server:
    """Listen for connections. Raises: `OperatorError`."""
    try:
        if passed is not None:
            server = await asyncio.get_running_loop().create_server(new_connection, sock=passed)
        else:
            server = await asyncio.get_running_loop().create_server(new_connection, *listen)
    except OSError as error:
        raise cannot_listen(listen, "FRONTAGE_API_LISTEN", error) from error
    for listener in server.sockets:  # its connections inherit it
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
    return server
