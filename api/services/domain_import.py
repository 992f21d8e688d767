"""An import: domains of an application written from a file's rows, by an operator's word.

Rules
    a row describes a domain, which is added, changed or left as it is; a field that the row leaves out stays
    so a file can be imported again from its beginning, whatever of it is there already
    what may be enrolled is decided as for any enrolment (`common.enrolment.batch`), without questions and limits
    the names of a batch are locked together, under `locks.hold`'s order, before any of them is looked at
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from api.services.domain_files import InvalidRow
from common import monitored_changes
from common.addresses import AddressPolicy, tenant_policy
from common.db import domain_rows
from common.db.applications import Application
from common.db.domain_rows import EnrolmentRow, MonitorRow, Row
from common.db.monitored_domains import Labels, MonitoredKey
from common.db.pool import Database
from common.db.session import Connection
from common.enrolment.batch import EnrolmentBatch
from common.enrolment.outcome import EnrolmentRefused
from common.enrolment.ownership import OwnNames
from common.enrolment.refusal_words import WORDS
from common.enrolment.request import EnrolmentRequest
from common.names import parse_enrollable
from common.record_sets import distinct
from common.settings import Settings

Outcome: TypeAlias = Literal["added", "changed", "unchanged"]

_Found: TypeAlias = "dict[tuple[str, ...], Row]"


@dataclass(frozen=True, slots=True)
class DomainImport:
    """Writes rows of one application. Created by the command that reads the file."""

    database: Database
    application: Application
    own_names: OwnNames
    addresses: AddressPolicy

    @classmethod
    def of(cls, settings: Settings, database: Database, application: Application) -> DomainImport:
        """Return an import by the rules of the installation's settings."""
        return cls(database, application, OwnNames.of(settings), tenant_policy(settings))

    async def write(self, rows: Sequence[Row], *, is_dry: bool = False) -> list[Outcome | InvalidRow]:
        """Return what became of each row, or would: all rows are written in one transaction, or none.

        Raises: `DatabaseUnavailable`.
        """
        async with self.database.connection() as connection:
            found = await self._find(connection, rows)
            outcomes: list[Outcome | InvalidRow] = [_compare(found.get(_key(row)), row) for row in rows]
        todo = [place for place, outcome in enumerate(outcomes) if outcome != "unchanged"]
        if not todo:
            return outcomes
        async with self.database.transaction() as connection:
            left = [rows[place] for place in todo]
            batch = EnrolmentBatch(connection, self.application, self.own_names, self.addresses, is_dry=is_dry)
            await batch.open([request_of(row) for row in left if isinstance(row, EnrolmentRow)])
            writing = _Writing(connection, self.application, batch, await self._find(connection, left), is_dry)
            for place in todo:
                outcomes[place] = await writing.write(rows[place])
            await batch.flush()
        return outcomes

    async def _find(self, connection: Connection, rows: Sequence[Row]) -> _Found:
        return {_key(row): row for row in await domain_rows.find(connection, self.application.id, rows)}


@dataclass(frozen=True, slots=True)
class _Writing:
    """Rows written in one transaction. `found`: what the application has, with the rows written so far."""

    connection: Connection
    application: Application
    batch: EnrolmentBatch
    found: _Found
    is_dry: bool

    async def write(self, row: Row) -> Outcome | InvalidRow:
        key = _key(row)
        outcome = _compare(self.found.get(key), row)
        if outcome == "unchanged":
            return outcome
        if isinstance(row, EnrolmentRow):
            enrol = self.batch.add if outcome == "added" else self.batch.change
            refused = await enrol(request_of(row))
            if refused is not None:
                return _error(refused)
        elif not self.is_dry:
            await self._watch(row)
        self.found[key] = _merged(self.found.get(key), row)  # what a later row finds
        return outcome

    async def _watch(self, row: MonitorRow) -> None:
        key = MonitoredKey(self.application.id, row.domain, row.subdomain)
        labels = Labels(row.user_id, row.job_id, row.user_email)
        await monitored_changes.add(self.connection, key, row.records, labels)


def request_of(row: EnrolmentRow) -> EnrolmentRequest:
    """Return the enrolment that the row describes."""
    return EnrolmentRequest(row.product, parse_enrollable(row.domain), row.settings)


def _error(refused: EnrolmentRefused) -> InvalidRow:
    words = WORDS[refused.code].operator
    assert words is not None, refused.code
    return InvalidRow(words)


def _key(row: Row) -> tuple[str, ...]:
    if isinstance(row, EnrolmentRow):
        return row.product, row.domain
    return "monitor", row.domain, row.subdomain or ""


def _compare(there: Row | None, row: Row) -> Outcome:
    if there is None:
        return "added"
    return "unchanged" if _merged(there, row) == there else "changed"


def _merged(there: Row | None, row: Row) -> Row:
    """Return how the domain is after the row: what it leaves out stays."""
    if isinstance(row, EnrolmentRow) and isinstance(there, EnrolmentRow):
        return EnrolmentRow(row.product, row.domain, row.settings.over(there.settings))
    if isinstance(row, MonitorRow):
        old = there if isinstance(there, MonitorRow) else row
        return MonitorRow(
            row.domain,
            row.subdomain,
            distinct(row.records),
            row.user_id or old.user_id,
            row.job_id or old.job_id,
            row.user_email or old.user_email,
        )
    return row
