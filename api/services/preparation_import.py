"""A bulk of prepared domains: rows of a file, each prepared as `POST /domains/:domain/prepare` would.

Nothing moves by it: a domain is enrolled once its owner has delegated its challenge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from api.errors import Refused
from api.services.domain_files import InvalidRow
from api.services.domain_import import Outcome, request_of
from api.services.preparations import PreparationService
from common.db.applications import Application
from common.db.domain_rows import EnrolmentRow, Row


@dataclass(frozen=True, slots=True)
class PreparationImport:
    """Prepares the domains of rows for one application. Created by the command that reads the file."""

    service: PreparationService
    application: Application

    async def write(self, rows: Sequence[Row], *, is_dry: bool = False) -> list[Outcome | InvalidRow]:
        """Return what became of each row, or would. Raises: `DatabaseUnavailable`."""
        return [await self._write(row, is_dry=is_dry) for row in rows]

    async def _write(self, row: Row, *, is_dry: bool) -> Outcome | InvalidRow:
        if not isinstance(row, EnrolmentRow):
            return InvalidRow("product: domains in monitor are not prepared")
        request = request_of(row)
        try:
            await self.service.check(self.application, request)
            is_known = await self.service.has(self.application, request.name)
            if not is_dry:
                await self.service.prepare(self.application, request)
        except Refused as error:
            return InvalidRow(error.hint or error.refusal.message)
        return "unchanged" if is_known else "added"
