"""The API's listening socket. Owns what HTTP itself goes wrong in: requests that never reach the application.

aiohttp answers those in plain text that names its version, and logs the bytes it did not understand, which may
hold a token. Here they are answered in the spec's shape, and their bytes are kept to ourselves.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

from aiohttp import web

from api.schemas import answers
from common.errors import OperatorError
from common.logs import get_logger
from common.settings import HostPort

SOFTWARE = "frontage"
_SHUTDOWN_SECONDS = 5.0
_FIRST_REQUEST_SECONDS = 10.0
_IDLE_SECONDS = 60.0
MOST_CONNECTIONS = 512  # below the usual soft limit of 1024 descriptors, with room for questions and Postgres

_log = get_logger("api.serving")


class _Connection(web.RequestHandler):
    """Bounded before anybody has shown a token: in number, and in the time to its first request.

    (Between requests, and for a head that stops half-way there, aiohttp's keep-alive time-out ends it.) When there are
    as many as may be, a new one takes the place of the oldest that waits for a request: who holds connections and asks
    for nothing locks nobody out.
    """

    __slots__ = ("_first_request", "_open")

    def __init__(self, manager: web.Server, open_connections: dict[_Connection, None], **options: Any) -> None:
        """`open_connections` are all of the listener's, the oldest first."""
        super().__init__(manager, **options)
        self._open = open_connections
        self._first_request: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if len(self._open) >= MOST_CONNECTIONS and not self._make_room():
            self.force_close()
            return
        self._open[self] = None
        self._first_request = asyncio.get_running_loop().call_later(_FIRST_REQUEST_SECONDS, self._expect_a_request)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._open.pop(self, None)
        if self._first_request is not None:
            self._first_request.cancel()
        super().connection_lost(exc)

    def _make_room(self) -> bool:
        oldest = next((each for each in self._open if each.is_idle), None)
        if oldest is None:
            return False
        del self._open[oldest]
        oldest.force_close()
        return True

    @property
    def is_idle(self) -> bool:
        """It waits for a request, or for the rest of one's head."""
        return self._waiter is not None and not self._waiter.done()

    def _expect_a_request(self) -> None:
        if self._request_count == 0:
            self.force_close()

    def log_exception(self, *args: Any, **options: Any) -> None:
        """aiohttp's own words quote what the client sent; and a body that nobody read and that broke off is no fault
        of ours."""
        error = options.get("exc_info")
        if isinstance(error, web.RequestPayloadError):
            _log.info("body not understood", error=type(error.__cause__ or error).__name__)
        else:
            _log.error("connection failed", exc_info=error)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        _log.info("request not understood", status=status, error=type(exc).__name__)
        if request.writer.output_size > 0:
            raise ConnectionError("part of an answer was sent already")
        response = answers.respond({"message": HTTPStatus(status).phrase, "request_id": secrets.token_hex(8)}, status)
        response.headers["Server"] = SOFTWARE
        response.force_close()
        return response

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """What aiohttp refuses before the application sees it (a strange Expect where there is no route) gets our
        shape."""
        if isinstance(resp, web.HTTPException):
            resp = self.handle_error(request, resp.status, resp)
        return await super().finish_response(request, resp, start_time)


@asynccontextmanager
async def serving(app: web.Application, listen: HostPort) -> AsyncIterator[HostPort]:
    """Serve `app` until the block is left, then finish what is under way. Yields where it listens.

    Raises: `OperatorError`.
    """
    loop = asyncio.get_running_loop()
    runner = web.AppRunner(app, shutdown_timeout=_SHUTDOWN_SECONDS)
    open_connections: dict[_Connection, None] = {}
    await runner.setup()
    manager = runner.server
    assert manager is not None
    try:
        listener = await _listen(
            lambda: _Connection(
                # compressed bodies are refused: unpacking what is then thrown away would be work for whoever asks
                manager,
                open_connections,
                loop=loop,
                keepalive_timeout=_IDLE_SECONDS,
                auto_decompress=False,
            ),
            listen,
        )
        try:
            yield HostPort(*listener.sockets[0].getsockname()[:2])
        finally:
            listener.close()
    finally:
        await runner.cleanup()


async def _listen(new_connection: Callable[[], asyncio.Protocol], listen: HostPort) -> asyncio.Server:
    """Raises: `OperatorError`."""
    try:
        return await asyncio.get_running_loop().create_server(new_connection, *listen)
    except OSError as error:
        raise OperatorError(f"cannot listen on {listen}: {error.strerror or error}; set FRONTAGE_API_LISTEN") from error
