"""Domains of an application written from a file's rows, and read back as such rows.

Owns no table. What a row means for what is there is decided here; enrolling and changing is `common.db.domains`' and
`common.db.monitored_domains`' business.

Rules
    a row describes a domain, which is added, changed or left as it is; a field that the row leaves out stays
    so a file can be imported again from its beginning, whatever of it is there already
    rows are written by an operator's command: no limit counts, and no DNS is asked
    a name of another application, of our own, or that is a cname target is refused
    the names of a batch are locked together, under `locks.hold`'s order, before any of them is looked at
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from common import records as dns
from common.db import domains, locks, monitored_domains, ownership, policies
from common.db.applications import Application
from common.db.domains import NewDomain
from common.db.monitored_domains import Labels, MonitoredKey
from common.db.pool import Database
from common.db.session import Connection
from common.domain_files import EnrolmentRow, InvalidRow, MonitorRow, Row
from common.ownership import OwnNames
from common.record_sets import distinct

Outcome: TypeAlias = Literal["added", "changed", "unchanged"]

_READ_AT_ONCE = 500
_WATCHED_AT_ONCE = 50  # each has up to 130 KB of records
_State: TypeAlias = "dict[tuple[str, ...], Row]"


async def write(
    database: Database, application: Application, rows: Sequence[Row], own: OwnNames, *, is_dry: bool
) -> list[Outcome | InvalidRow]:
    """What became of each row, or would: all rows of the batch are written in one transaction, or none.

    Raises: `DatabaseUnavailable`.
    """
    async with database.connection() as connection:
        found = await _find(connection, application.id, rows)
        outcomes: list[Outcome | InvalidRow] = [_compare(found.get(_key(row)), row) for row in rows]
    todo = [place for place, outcome in enumerate(outcomes) if outcome != "unchanged"]
    if not todo:
        return outcomes
    async with database.transaction() as connection:
        batch = _Batch(connection, application, own, is_dry=is_dry)
        left = [rows[place] for place in todo]
        if not is_dry:
            await _lock(connection, left)
        await batch.look(left)
        for place in todo:
            outcomes[place] = await batch.apply(rows[place])
        await batch.flush()
    return outcomes


async def _lock(connection: Connection, rows: Sequence[Row]) -> None:
    enrolments = [row for row in rows if isinstance(row, EnrolmentRow)]
    if any(row.redirect_to for row in enrolments):
        await domains.lock_redirects(connection)
    if enrolments:
        await locks.hold(connection, "domain", *(row.domain for row in enrolments))


class _Batch:
    """Rows written in one transaction, under their locks. New domains are gathered, and written in one statement."""

    def __init__(self, connection: Connection, application: Application, own: OwnNames, *, is_dry: bool) -> None:
        self._connection = connection
        self._application = application
        self._own = own
        self._is_dry = is_dry
        self._found: _State = {}
        self._holders: dict[str, str] = {}
        self._targets: set[str] = set()
        self._blocked: Mapping[str, policies.Policy] = {}
        self._is_suspended = False
        self._new: list[EnrolmentRow] = []

    async def look(self, rows: Sequence[Row]) -> None:
        self._found = await _find(self._connection, self._application.id, rows)
        names = [row.domain for row in rows if isinstance(row, EnrolmentRow)]
        if names:
            self._holders, self._targets = await ownership.find_taken(self._connection, names)
            self._blocked = await policies.find_many(self._connection, "domain", names)
            suspension = await policies.find(self._connection, "application", self._application.id)
            self._is_suspended = suspension is not None

    async def apply(self, row: Row) -> Outcome | InvalidRow:
        outcome = _compare(self._found.get(_key(row)), row)
        if outcome == "unchanged":
            return outcome
        try:
            if isinstance(row, EnrolmentRow):
                await self._check(row, is_new=outcome == "added")
                await self._enrol(row, is_new=outcome == "added")
            elif not self._is_dry:
                key = MonitoredKey(self._application.id, row.domain, row.subdomain)
                labels = Labels(row.user_id, row.job_id, row.user_email)
                await monitored_domains.add(self._connection, key, row.records, labels)
        except InvalidRow as error:
            return error
        self._found[_key(row)] = _merged(self._found.get(_key(row)), row)  # what a later row of the batch finds
        return outcome

    async def flush(self) -> None:
        """Write the new domains gathered so far."""
        new = [
            NewDomain(row.domain, row.product, row.application_url, row.root_path_access, row.redirect_to)
            for row in self._new
        ]
        self._new.clear()
        if new:
            await domains.enrol_by_hand(self._connection, self._application.id, new)

    async def _check(self, row: EnrolmentRow, *, is_new: bool) -> None:
        """Raises: `InvalidRow`."""
        if row.domain in self._blocked:
            raise InvalidRow("domain: blocked by an operator (`frontage domain unblock` ends that)")
        if self._is_suspended:
            raise InvalidRow("domain: its application is suspended (`frontage app resume` ends that)")
        if is_new:
            if row.domain in self._own or row.domain in self._targets:
                raise InvalidRow("domain: a name of the service or a cname target, which is no customer's domain")
            if self._holders.get(row.domain, self._application.id) != self._application.id:
                raise InvalidRow("domain: another application holds it (`frontage domain transfer` moves it)")
            if row.product == "secure" and row.application_url is None and self._application.application_url is None:
                raise InvalidRow("applicationUrl: missing, and the application has none")
        if row.redirect_to:
            await self.flush()
            if await domains.closes_loop(self._connection, row.domain, row.redirect_to):
                raise InvalidRow("redirectTo: would send visitors round in a circle")

    async def _enrol(self, row: EnrolmentRow, *, is_new: bool) -> None:
        if self._is_dry:
            return
        if is_new:
            self._new.append(row)
            return
        await self.flush()
        url, application_id = row.application_url, self._application.id
        if row.product == "power":
            await domains.update_power(self._connection, row.domain, application_id, url, row.root_path_access)
        else:
            await domains.update_secure(self._connection, row.domain, application_id, url, row.redirect_to)


# What is there ----------------------------------------------------------------------------------------------------


def _key(row: Row) -> tuple[str, ...]:
    if isinstance(row, EnrolmentRow):
        return row.product, row.domain
    return "monitor", row.domain, row.subdomain or ""


def _compare(there: Row | None, row: Row) -> Outcome:
    if there is None:
        return "added"
    return "unchanged" if _merged(there, row) == there else "changed"


def _merged(there: Row | None, row: Row) -> Row:
    """How the domain is after the row: what it leaves out stays."""
    if isinstance(row, EnrolmentRow) and isinstance(there, EnrolmentRow):
        return EnrolmentRow(
            row.product,
            row.domain,
            row.application_url or there.application_url,
            there.root_path_access if row.root_path_access is None else row.root_path_access,
            row.redirect_to or there.redirect_to,
        )
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


async def _find(connection: Connection, application_id: str, rows: Sequence[Row]) -> _State:
    """The application's own, of these rows."""
    names = list({row.domain for row in rows if isinstance(row, EnrolmentRow)})
    apexes = list({row.domain for row in rows if isinstance(row, MonitorRow)})
    found: list[Row] = []
    if names:
        found += map(
            _enrolment,
            await connection.fetch(
                "select product, domain, application_url, root_path_access, redirect_to from domains"
                " where domain = any($1) and application_id = $2",
                names,
                application_id,
            ),
        )
    if apexes:
        subdomains = list({row.subdomain or "" for row in rows if isinstance(row, MonitorRow)})
        found += map(
            _watch,
            await connection.fetch(
                "select domain, subdomain, dns_records, user_id, job_id, user_email from monitored_domains"
                " where application_id = $2 and domain = any($1) and coalesce(subdomain, '') = any($3)",
                apexes,
                application_id,
                subdomains,
            ),
        )
    return {_key(row): row for row in found}


async def read(database: Database, application_id: str) -> AsyncIterator[list[Row]]:
    """All that the application has, some rows at a time, each in a short query of its own."""
    for product in ("power", "secure"):
        after = ""
        while rows := await _read_enrolments(database, application_id, product, after):
            after = rows[-1].domain
            yield [*rows]
    after = ""
    while watched := await _read_watched(database, application_id, after):
        after = watched[-1][0]
        yield [row for _, row in watched]


async def _read_enrolments(database: Database, application_id: str, product: str, after: str) -> list[EnrolmentRow]:
    async with database.connection() as connection:
        rows = await connection.fetch(
            "select product, domain, application_url, root_path_access, redirect_to from domains"
            " where application_id = $1 and product = $2 and domain > $3 order by domain limit $4",
            application_id,
            product,
            after,
            _READ_AT_ONCE,
        )
    return list(map(_enrolment, rows))


async def _read_watched(database: Database, application_id: str, after: str) -> list[tuple[str, MonitorRow]]:
    """With their whole names."""
    async with database.connection() as connection:
        rows = await connection.fetch(
            "select monitored_name(domain, subdomain) as name, domain, subdomain, dns_records, user_id, job_id,"
            " user_email from monitored_domains where application_id = $1"
            " and monitored_name(domain, subdomain) > $2 order by monitored_name(domain, subdomain) limit $3",
            application_id,
            after,
            _WATCHED_AT_ONCE,
        )
    return [(row["name"], _watch(row)) for row in rows]


def _enrolment(row: Any) -> EnrolmentRow:
    paths = row["root_path_access"]
    return EnrolmentRow(
        row["product"],
        row["domain"],
        row["application_url"],
        None if paths is None else tuple(paths),
        row["redirect_to"],
    )


def _watch(row: Any) -> MonitorRow:
    records = tuple(map(dns.from_json, row["dns_records"]))
    return MonitorRow(row["domain"], row["subdomain"], records, row["user_id"], row["job_id"], row["user_email"])
