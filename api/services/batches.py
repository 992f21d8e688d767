"""Batches of Monitor: accepted here, worked off by the monitors. Knows no HTTP.

An answer is given once the batch and all its items are durable; what is wrong with an item is its own failure.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from api.errors import BATCH_UNKNOWN, FOREIGN_BATCH, MISSING_DOMAINS, Refused, too_many_domains
from api.schemas.monitor_bodies import BatchBody, parse_unwatch, parse_watch
from common.db import batches
from common.db.applications import Application
from common.db.batches import BatchProgress, Kind
from common.db.pool import Database

MOST_CREATED = 100
MOST_DELETED = 1000

_BATCH_ID = re.compile(r"bat_[0-9a-f]{32}")

Parsed = TypeVar("Parsed")


@dataclass(frozen=True, slots=True)
class BatchService:
    """Batches of monitored domains. One instance per process; each call takes the caller's application."""

    database: Database

    async def create(self, application: Application, body: BatchBody) -> str:
        """Store a batch that monitors domains; return its id. Raises: `Refused`."""
        return await self._submit(application, "create", await _parse(body, parse_watch, MOST_CREATED))

    async def delete(self, application: Application, body: BatchBody) -> str:
        """Store a batch that monitors domains no longer; return its id. Raises: `Refused`."""
        return await self._submit(application, "delete", await _parse(body, parse_unwatch, MOST_DELETED))

    async def progress(self, application: Application, batch_id: str) -> BatchProgress:
        """Return how far a batch is. Raises: `Refused`."""
        if not _BATCH_ID.fullmatch(batch_id):
            raise Refused(BATCH_UNKNOWN)
        async with self.database.connection() as connection:
            progress = await batches.find(connection, batch_id)
        if progress is None:
            raise Refused(BATCH_UNKNOWN)
        if progress.application_id != application.id:
            raise Refused(FOREIGN_BATCH)
        return progress

    async def _submit(self, application: Application, kind: Kind, items: list[batches.NewItem]) -> str:
        async with self.database.transaction() as connection:
            return await batches.submit(connection, application.id, kind, items)


async def _parse(body: BatchBody, parse_entry: Callable[[Any], Parsed], most: int) -> list[Parsed]:
    """Parse the entries of a batch. Raises: `Refused`."""
    if not body.domains:
        raise Refused(MISSING_DOMAINS)
    if len(body.domains) > most:
        raise Refused(too_many_domains(most))
    parsed = []
    for entry in body.domains:
        parsed.append(parse_entry(entry))
        await asyncio.sleep(0)  # others are served between two entries, which may be long
    return parsed
