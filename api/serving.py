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

from aiohttp import web

from api import schemas
from common.errors import OperatorError
from common.logs import get_logger
from common.settings import HostPort

SOFTWARE = "frontage"
_SHUTDOWN_SECONDS = 5.0

_log = get_logger("api.serving")


class _Connection(web.RequestHandler):
    __slots__ = ()

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
        response = schemas.respond({"message": HTTPStatus(status).phrase, "request_id": secrets.token_hex(8)}, status)
        response.headers["Server"] = SOFTWARE
        response.force_close()
        return response


@asynccontextmanager
async def serving(app: web.Application, listen: HostPort) -> AsyncIterator[HostPort]:
    """Serve `app` until the block is left, then finish what is under way. Yields where it listens.

    Raises: `OperatorError`.
    """
    loop = asyncio.get_running_loop()
    runner = web.AppRunner(app, shutdown_timeout=_SHUTDOWN_SECONDS)
    await runner.setup()
    manager = runner.server
    assert manager is not None
    try:
        listener = await _listen(lambda: _Connection(manager, loop=loop), listen)
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
