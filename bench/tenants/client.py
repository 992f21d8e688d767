"""A keep-alive HTTP client of few instructions: the clients of the offender share a process with what is timed."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from api.rules import application_tokens as minting
from common.host_ports import HostPort

_ANSWER_SECONDS = 30.0
CUT = 0
"""The status of a request whose connection ended without a response."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """An application and the loopback address that its requests come from."""

    application_id: str
    client_secret: str
    address: str

    def head(self, path: str) -> bytes:
        """Return the head of a GET, with a token."""
        token = minting.mint_api_token(self.application_id, self.client_secret, datetime.now(UTC))
        return (
            f"GET {path} HTTP/1.1\r\nHost: api\r\n"
            f"applicationId: {self.application_id}\r\nAuthorization: Bearer {token}\r\n\r\n"
        ).encode()


@dataclass(frozen=True, slots=True)
class TimedResponse:
    """A response, with the time it took."""

    status: int
    seconds: float
    retry_after_seconds: float


class TenantClient:
    """One connection. Created and closed by `connect`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    @contextlib.asynccontextmanager
    async def connect(cls, api: HostPort, address: str) -> AsyncIterator[Self]:
        """Open a connection from `address` for the block."""
        async with asyncio.timeout(_ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection(*api, local_addr=(address, 0))
        try:
            yield cls(reader, writer)
        finally:
            writer.close()

    async def send(self, request: bytes) -> None:
        """Send bytes, without waiting for an answer."""
        self._writer.write(request)
        await self._writer.drain()

    async def ask(self, request: bytes) -> TimedResponse:
        """Send a request, and return the response with its time.

        Raises: `TimeoutError` when the response takes half a minute.
        """
        began_at = time.perf_counter()
        status, fields = CUT, {}
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            async with asyncio.timeout(_ANSWER_SECONDS):
                await self.send(request)
                first, *lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                fields = dict(line.lower().split(": ", 1) for line in lines if line)
                await self._reader.readexactly(int(fields["content-length"]))
                status = int(first.split()[1])
        return TimedResponse(status, time.perf_counter() - began_at, float(fields.get("retry-after", 0)))
