"""The state of the installation, for the operators' page and ``GET /operations``."""

from __future__ import annotations

import asyncio

from api.rules.plain_text import Exposure
from common.clock import Clock
from common.db import ca_ledger
from common.db.ca_ledger import LedgerCount, Limits
from common.db.issuance_progress import IssuanceProgress, read_progress
from common.db.pool import Database
from common.db.status import InstallationStatus, read_status
from common.installation_problems import list_problems

FRESH_SECONDS = 2.0


class InstallationService:
    """Reads the state of the installation. One instance per process.

    Mutable state: the status read last, shared by all that ask within `FRESH_SECONDS`.
    """

    def __init__(self, database: Database, limits: Limits, exposure: Exposure | None, clock: Clock) -> None:
        self._database = database
        self._limits = limits
        self._exposure = exposure
        self._clock = clock
        self._reading = asyncio.Lock()
        self._last: tuple[float, InstallationStatus] | None = None

    async def read(self) -> InstallationStatus:
        """Return the state of the installation, read at most `FRESH_SECONDS` ago."""
        async with self._reading:
            now = self._clock.monotonic()
            if self._last is None or now - self._last[0] > FRESH_SECONDS:
                async with self._database.connection() as connection:
                    self._last = now, await read_status(connection, self._limits)
            return self._last[1]

    async def read_progress(self) -> IssuanceProgress:
        """Return how far the CA's orders have come, read now."""
        async with self._database.connection() as connection:
            return await read_progress(connection, self._limits)

    async def list_usage(self) -> tuple[list[LedgerCount], Limits]:
        """Return what counts at each issuer now, and the limits that it counts for."""
        async with self._database.connection() as connection:
            return await ca_ledger.list_usage(connection), self._limits

    def problems(self, status: InstallationStatus) -> list[str]:
        """Return what an operator should look at now, in sentences."""
        return [*([f"{self._exposure}."] if self._exposure else []), *list_problems(status)]
