"""Changes of what is monitored, each with its entry in the audit log.

For the API's service, imports, the connect modal's flows and the monitor's batches alike.

Each function runs in the transaction that its caller opens, so that neither the change nor its entry is there without
the other. The rows are `common.db.monitored_domains`'.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from common.db import audit, monitored_domains
from common.db.monitored_domains import Edit, Labels, MonitoredKey
from common.db.session import Connection
from common.record_sets import Records, distinct
from common.records import Record, as_json


async def add(connection: Connection, key: MonitoredKey, records: Records, labels: Labels) -> None:
    """Watch these records; a name that is watched already gets them in place of its own."""
    while not await _insert(connection, key, records, labels):
        if await replace(connection, key, records, labels):
            return  # else it has just been deleted


async def replace(connection: Connection, key: MonitoredKey, records: Records, labels: Labels | None = None) -> bool:
    """Watch these records and no others; labels not given stay. Return whether the name is watched."""
    await monitored_domains.vouch(connection, key)
    return await change(connection, key, lambda _: records, labels)


async def change(connection: Connection, key: MonitoredKey, edit: Edit, labels: Labels | None = None) -> bool:
    """Watch what `edit` makes of the records watched now. Return whether the name is watched."""
    changed = await monitored_domains.change(connection, key, edit, labels)
    if changed is None:
        return False
    before, after = ({"dns_records": _as_json(records)} for records in changed)
    await audit.record_difference(connection, "monitor.update", key.name, before, after, key.application_id)
    return True


async def remove(
    connection: Connection, key: MonitoredKey, *, only_if_empty: bool = False
) -> Literal["removed", "absent", "not empty"]:
    """Stop watching the name."""
    outcome = await monitored_domains.remove(connection, key, only_if_empty=only_if_empty)
    if not isinstance(outcome, int):
        return outcome
    before = {"records": outcome}
    await audit.record(connection, "monitor.remove", key.name, application_id=key.application_id, before=before)
    return "removed"


async def remove_unchanged(connection: Connection, key: MonitoredKey, records: Records) -> None:
    """Stop watching the name, unless other records of it have come to be watched."""
    if await monitored_domains.list_records(connection, key, lock=True) == distinct(records):
        await remove(connection, key)


async def watch_more(
    connection: Connection, key: MonitoredKey, records: Records, labels: Labels, *, vouched: bool
) -> None:
    """Watch these records for the connect modal, beside those of the name that are watched already.

    `vouched`: as the flow is.
    """
    while not await _insert(connection, key, records, labels, source="connect", vouched=vouched):
        if await change(connection, key, lambda watched: distinct((*watched, *records)), labels):
            return  # else it has just been deleted


async def watch_new(
    connection: Connection, key: MonitoredKey, records: Records, labels: Labels, *, vouched: bool
) -> Literal["added", "watched", "other"]:
    """Watch these records for the connect modal, as `watch_more`, but change nothing of a name that is watched already.

    Returns ``added``; or, of a watched name, ``watched`` if these records are among its own, else ``other``.
    """
    while not await _insert(connection, key, records, labels, source="connect", vouched=vouched):
        watched = await monitored_domains.list_records(connection, key)
        if watched is not None:  # else it has just been deleted
            return "watched" if distinct((*watched, *records)) == watched else "other"
    return "added"


async def _insert(
    connection: Connection,
    key: MonitoredKey,
    records: Records,
    labels: Labels,
    *,
    source: str = "api",
    vouched: bool = True,
) -> bool:
    """Watch the records under a name that is not watched. Return whether it was not."""
    each_once = distinct(records)
    if not await monitored_domains.insert(connection, key, each_once, labels, source=source, vouched=vouched):
        return False
    after = {"dns_records": _as_json(each_once), "user_id": labels.user_id}
    await audit.record(connection, "monitor.add", key.name, application_id=key.application_id, after=after)
    return True


def _as_json(records: Iterable[Record]) -> list[dict[str, Any]]:
    return [as_json(record) for record in records]
