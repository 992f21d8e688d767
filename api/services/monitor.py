"""Monitor: the names and records a partner has watched. Stores and finds; knows no HTTP and asks no DNS."""

from __future__ import annotations

from dataclasses import dataclass, replace

from api.errors import (
    ALREADY_UNWATCHED,
    NOT_EMPTY,
    NOT_MONITORED,
    NOT_MONITORED_OR_FOREIGN,
    Refused,
    invalid_parameter,
)
from api.rules.record_rules import check_size
from api.schemas.monitor_bodies import RecordsBody, RemovedRecordsBody, UnwatchBody, UpdateBody, WatchBody
from api.schemas.monitor_queries import MonitorQuery
from api.schemas.queries import PartQuery
from common import monitored_changes
from common.db import domain_list, domain_list_query, monitor_health, monitor_nodes, monitored_domains
from common.db.applications import Application
from common.db.domain_list_query import DomainListQuery
from common.db.monitor_health import MonitorHealth
from common.db.monitored_domains import Labels, LastCheck, MonitoredDomain, MonitoredKey, MonitoredPage
from common.db.pool import Database
from common.record_sets import Records, distinct, without
from common.records import InvalidRecord


@dataclass(frozen=True, slots=True)
class MonitorService:
    """Monitored domains. One instance per process; each call takes the caller's application."""

    database: Database

    async def watch(self, application: Application, body: WatchBody) -> None:
        """Monitor a domain. Raises: `Refused`."""
        key = MonitoredKey(application.id, body.domain, body.subdomain)
        async with self.database.transaction() as connection:
            await monitored_changes.add(connection, key, tuple(body.records), body.labels)

    async def update(self, application: Application, body: UpdateBody) -> None:
        """Replace the records of a monitored domain. Raises: `Refused`."""
        key, labels = MonitoredKey(application.id, body.domain, body.subdomain), Labels(user_id=body.user_id)
        async with self.database.transaction() as connection:
            if not await monitored_changes.replace(connection, key, tuple(body.records), labels):
                raise Refused(NOT_MONITORED)

    async def unwatch(self, application: Application, body: UnwatchBody) -> None:
        """Monitor a domain no longer. Raises: `Refused`."""
        key = MonitoredKey(application.id, body.domain, body.subdomain)
        async with self.database.transaction() as connection:
            outcome = await monitored_changes.remove(connection, key, only_if_empty=bool(body.only_if_empty))
        if outcome == "absent":
            raise Refused(ALREADY_UNWATCHED)
        if outcome == "not empty":
            raise Refused(NOT_EMPTY)

    async def list_page(self, application: Application, query: MonitorQuery) -> MonitoredPage:
        """Return a page of the application's monitored domains."""
        async with self.database.connection() as connection:
            return await monitored_domains.list_page(
                connection, application.id, offset=query.offset, limit=query.limit, dates=query.dates
            )

    async def list_part(
        self, application: Application, query: PartQuery
    ) -> tuple[MonitoredPage, domain_list_query.ListKey | None]:
        """Return a part of a sorted or searched list, and where the list goes on."""
        wanted = DomainListQuery([application.id], query.text, "monitor", None, query.sort, query.after, query.size)
        async with self.database.connection() as connection:
            part = await domain_list.list_part(connection, wanted)
            names = [row.name for row in part.rows]
            return await monitored_domains.find_listed(connection, application.id, names), part.next

    async def find(self, key: MonitoredKey) -> MonitoredDomain:
        """Return a monitored domain. Raises: `Refused`."""
        async with self.database.connection() as connection:
            found = await monitored_domains.find(connection, key)
        if found is None:
            raise Refused(NOT_MONITORED_OR_FOREIGN)
        return found

    async def find_last_check(self, key: MonitoredKey) -> LastCheck:
        """Return what the last check of a domain went by. Raises: `Refused`."""
        async with self.database.connection() as connection:
            found = await monitored_domains.find_last_check(connection, key)
        if found is None:
            raise Refused(NOT_MONITORED_OR_FOREIGN)
        return found

    async def add_records(self, key: MonitoredKey, body: RecordsBody) -> None:
        """Add records to a monitored domain. Raises: `Refused`."""
        await self._edit(key, lambda records: _bounded(distinct((*records, *body.records))))

    async def replace_records(self, key: MonitoredKey, body: RecordsBody) -> None:
        """Replace all records of a monitored domain. Raises: `Refused`."""
        await self._edit(key, lambda _: tuple(body.records))

    async def remove_records(self, key: MonitoredKey, body: RemovedRecordsBody) -> None:
        """Remove records of a monitored domain. Raises: `Refused`."""
        await self._edit(key, lambda records: without(records, tuple(body.records)))

    async def health(self) -> MonitorHealth:
        """Return the health as measured last; unhealthy as soon as no monitor runs that checks."""
        async with self.database.connection() as connection:
            health = await monitor_health.read(connection)
            is_checking = await monitor_nodes.is_checking(connection)
        return health if is_checking else replace(health, is_healthy=False)

    async def _edit(self, key: MonitoredKey, edit: monitored_domains.Edit) -> None:
        async with self.database.transaction() as connection:
            if not await monitored_changes.change(connection, key, edit):
                raise Refused(NOT_MONITORED_OR_FOREIGN)


def _bounded(records: Records) -> Records:
    try:
        check_size(records)
    except InvalidRecord as error:
        raise Refused(invalid_parameter("dnsRecords"), hint=str(error)) from error
    return records
