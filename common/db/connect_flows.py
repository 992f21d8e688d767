"""Flows of the connect modal as rows.

Owns the SQL of ``connect_flows``. Which move a flow may make is `common.flow_states`'; this module writes it.

Rules
    a person's move is written only if the flow is as it was when the person's request read it (`version`), and takes
        the row from the worker that may hold it
    a worker's move is written only under its own fence and lease (`monitor.claims`)
    a move and its effects (an enrolment, an event) are one transaction of the caller's
    ``request_id`` is the person's latest move: what a worker does next, it does for that request (`common.actors`)
    no credentials, ever: a plan that needs them is written by the request that brought them
    `vouched`: its values were given with full rights, or are those of a registered configuration or of such a link
    `by_browser`: a token with a scope began it or chose its domain, so it changes no name that is enrolled already
    `ended`: the link or the configuration that it came from was taken back; it goes no further (`common.db.flow_ends`)
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from types import MappingProxyType
from typing import Any, Protocol, TypedDict, TypeVar, Unpack, runtime_checkable

from asyncpg import Record

from common.actors import current_request_id, earlier_request_ids
from common.db.claim_table import IS_FREE, ClaimTable
from common.db.monitored_domains import CHANNEL
from common.db.session import Connection
from common.errors import FrontageError
from common.flow_states import State
from common.flows.enrolments import Enrolment, enrolment_from_json
from common.flows.handover import FlowProblem, Handover
from common.flows.inspection import FlowInspection
from common.flows.plan import JournalEntry, Plan
from common.flows.requested import RecordSighting, Requested
from common.flows.ways import WayName

KEPT_DAYS = 30
"""How long a flow is kept after its last change."""
ABANDONED_SECONDS = 24 * 60 * 60.0
"""A flow without a change for so long, before anything was written, is closed."""
MOST_OPEN = 5000
"""The most open flows of an application."""

_ID = re.compile(r"flw_[0-9a-f]{32}")

_TABLE = ClaimTable("connect_flows", key="id")

_T = TypeVar("_T")


@runtime_checkable
class _Stored(Protocol):
    """A value of `common.flows`."""

    def as_json(self) -> object: ...


class TooManyOpen(FrontageError):
    """The application has `MOST_OPEN` flows that are not over."""


class FlowChanged(FrontageError):
    """Another request or the monitor has changed the flow meanwhile: read it again."""


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow of the connect modal: each field is a column of the same name.

    JSON columns are types of `common.flows`, but for `config`: the partner's own document, kept as it was sent, which
    `common.connect.configuration` parses where it counts. Claimed or not, `fence` and `attempts` are the row's.
    """

    id: str
    application_id: str
    job_id: str
    user_id: str | None
    state: State
    version: int
    config: Mapping[str, Any]
    warnings: Sequence[str]
    domain: str | None
    subdomain: str | None
    requested: Sequence[Requested]
    looked: FlowInspection | None
    plan: Plan | None
    way: WayName | None
    journal: Sequence[JournalEntry]
    statuses: Sequence[RecordSighting]
    enrolments: Sequence[Enrolment]
    handover: Handover | None
    error: FlowProblem | None
    created_at: datetime
    updated_at: datetime
    since: datetime | None
    looks: int
    completed_at: datetime | None
    added_at: datetime | None
    erase_at: datetime
    due_at: datetime | None
    fence: int
    attempts: int
    request_id: str | None
    vouched: bool
    by_browser: bool
    share_id: str | None
    configuration_id: str | None
    secret_generation: int | None
    by_key: str | None

    @property
    def key(self) -> str:
        """Return what identifies the claim in its table: the flow's id."""
        return self.id

    @property
    def tenant(self) -> str:
        """Return the application, between which monitors share their slots."""
        return self.application_id

    @property
    def is_routine(self) -> bool:
        """Whether the next step is not awaited by a person at the modal."""
        return self.state in (State.WAITING, State.PROPAGATING) and self.looks > 5

    @property
    def shared_config(self) -> dict[str, Any]:
        """Return the configuration for a sharing link: it names the flow's host where there is one."""
        return dict(self.config) | ({} if self.host is None else {"prefilledDomain": self.host})

    @property
    def host(self) -> str | None:
        """Return the whole name that the flow sets up; None while none is chosen."""
        if self.domain is None:
            return None
        return f"{self.subdomain}.{self.domain}" if self.subdomain else self.domain


_FIELDS = tuple(field.name for field in fields(Flow))
_COLUMNS = ", ".join(_FIELDS)


class Changes(TypedDict, total=False):
    """The columns to write; a column that is left out stays."""

    state: State
    user_id: str | None
    domain: str | None
    subdomain: str | None
    warnings: Sequence[str]
    requested: Sequence[Requested]
    looked: FlowInspection | None
    plan: Plan | None
    way: WayName | None
    journal: Sequence[JournalEntry]
    statuses: Sequence[RecordSighting]
    enrolments: Sequence[Enrolment]
    handover: Handover | None
    error: FlowProblem | None
    since: datetime | None
    looks: int
    completed_at: datetime | None
    added_at: datetime | None
    due_at: datetime | None
    request_id: str | None
    by_browser: bool


@dataclass(frozen=True, slots=True)
class FlowRights:
    """The rights of a new flow, and what ends it.

    `secret_generation`: the oldest client secret that its token, its link or its configuration hangs on; None for none.
    `by_key`: the API key that began it.
    """

    vouched: bool = False
    by_browser: bool = True
    share_id: str | None = None
    configuration_id: str | None = None
    secret_generation: int | None = None
    by_key: str | None = None


async def create(
    connection: Connection,
    *,
    application_id: str,
    config: Mapping[str, Any],
    warnings: Sequence[str],
    user_id: str | None,
    job_id: str | None = None,
    rights: FlowRights = FlowRights(),
) -> Flow:
    """Create a flow without a domain, in the caller's transaction.

    Raises: `TooManyOpen`.
    """
    is_full = await connection.fetchval(
        "select count(*) >= $2 from (select from connect_flows where application_id = $1 and due_at is not null"
        " limit $2) open",
        application_id,
        MOST_OPEN,
    )
    if is_full:
        raise TooManyOpen(application_id)
    row = await connection.fetchrow(
        f"""
        insert into connect_flows (id, application_id, job_id, user_id, state, config, warnings, due_at, erase_at,
            request_id, vouched, by_browser, share_id, configuration_id, secret_generation, by_key)
        values ($1, $2, $3, $4, $5, $6, $7, clock_timestamp() + make_interval(secs => $8),
            clock_timestamp() + make_interval(days => $9), $10, $11, $12, $13, $14, $15, $16)
        returning {_COLUMNS}
        """,
        f"flw_{secrets.token_hex(16)}",
        application_id,
        job_id or new_job_id(),
        user_id,
        State.CHOOSING,
        dict(config),
        list(warnings),
        ABANDONED_SECONDS,
        KEPT_DAYS,
        current_request_id(),
        rights.vouched,
        rights.by_browser,
        rights.share_id,
        rights.configuration_id,
        rights.secret_generation,
        rights.by_key,
    )
    assert row is not None, "an insert returns its row"
    return read_flow(row)


def new_job_id() -> str:
    """Return a new random id of a job."""
    return f"job_{secrets.token_hex(12)}"


async def find(connection: Connection, flow_id: str, application_id: str) -> Flow | None:
    """Return the application's flow; None if there is none."""
    flow = await find_any(connection, flow_id)
    return None if flow is None or flow.application_id != application_id else flow


async def find_earlier(connection: Connection, application_id: str) -> Flow | None:
    """Return the application's flow that an earlier attempt at the present request made, whose answer was lost."""
    attempts = earlier_request_ids()
    if not attempts:
        return None
    row = await connection.fetchrow(
        f"select {_COLUMNS} from connect_flows where application_id = $1 and request_id = any($2) limit 1",
        application_id,
        list(attempts),
    )
    return None if row is None else read_flow(row)


async def find_any(connection: Connection, flow_id: str) -> Flow | None:
    """Return the flow, whichever application has it, or None: for a request that does not name the application."""
    if not _ID.fullmatch(flow_id):
        return None
    row = await connection.fetchrow(f"select {_COLUMNS} from connect_flows where id = $1", flow_id)
    return None if row is None else read_flow(row)


async def find_versions(connection: Connection, flow_ids: Collection[str]) -> dict[str, int]:
    """Return the version of each of the flows that exist."""
    rows = await connection.fetch("select id, version from connect_flows where id = any($1)", list(flow_ids))
    return {row["id"]: row["version"] for row in rows}


async def move(connection: Connection, flow: Flow, **changes: Unpack[Changes]) -> Flow:
    """Write a person's move; whatever worker held the row no longer does.

    Raises: `FlowChanged`.
    """
    changes["request_id"] = current_request_id() or flow.request_id
    moved = await _write(
        connection,
        flow,
        "version = $2",
        flow.version,
        "fence = pg_current_xact_id()::text::bigint, lease_until = null, attempts = 0, last_error = null",
        changes,
    )
    if moved is None:
        raise FlowChanged(flow.id)
    await wake(connection)
    return moved


async def wake(connection: Connection) -> None:
    """Have monitors look at once for due flows, when the caller's transaction commits."""
    await connection.execute("select wake_listeners($1)", CHANNEL)


async def begin(connection: Connection, flow: Flow, *, lease_seconds: float, **changes: Unpack[Changes]) -> Flow:
    """Write a person's move, and hold the row under a lease: what follows is written by `settle`.

    If the holder dies, the row is due when the lease lapses.

    Raises: `FlowChanged`.
    """
    changes["request_id"] = current_request_id() or flow.request_id
    begun = await _write(
        connection,
        flow,
        "version = $2",
        flow.version,
        "fence = pg_current_xact_id()::text::bigint, attempts = 1, last_error = null, due_at = clock_timestamp(),"
        f" lease_until = clock_timestamp() + make_interval(secs => {float(lease_seconds)})",
        changes,
    )
    if begun is None:
        raise FlowChanged(flow.id)
    return begun


async def settle(connection: Connection, flow: Flow, **changes: Unpack[Changes]) -> Flow:
    """Write a worker's move and end its lease.

    Raises: `FenceLost`.
    """
    return await _write_held(connection, flow, "lease_until = null, attempts = 0, last_error = null", changes)


async def note(connection: Connection, flow: Flow, **changes: Unpack[Changes]) -> Flow:
    """Write how far a worker has come; its lease stays.

    Raises: `FenceLost`.
    """
    return await _write_held(connection, flow, "attempts = 1", changes)


async def touch(connection: Connection, flow: Flow, **changes: Unpack[Changes]) -> Flow:
    """Write more of a flow in the transaction that has just written it."""
    touched = await _write(connection, flow, "version = $2", flow.version, "attempts = attempts", changes)
    assert touched is not None, "the transaction has locked the row"
    return touched


async def _write_held(connection: Connection, flow: Flow, lease: str, changes: Changes) -> Flow:
    """Write the row if the flow's holder still holds it.

    Raises: `FenceLost`.
    """
    written = await _write(connection, flow, "fence = $2 and lease_until is not null", flow.fence, lease, changes)
    if written is None:
        raise _TABLE.lost(flow)
    return written


_WRITTEN: Mapping[str, str] = MappingProxyType(
    {"due_at": "case when ended is null or {0}::timestamptz is null then {0}::timestamptz else clock_timestamp() end"}
)
"""The SQL by which a column is written, where not as given: a flow that was ended is closed at once."""


async def _write(
    connection: Connection, flow: Flow, condition: str, value: int, assignments: str, changes: Changes
) -> Flow | None:
    """Write the columns and assignments if the condition on `value` is met, and return the flow; None if it is not."""
    columns: list[str] = []
    values: list[object] = []
    for column, given in changes.items():
        assert column in Changes.__annotations__, column
        values.append(_as_stored(given))
        columns.append(f"{column} = {_WRITTEN.get(column, '{0}').format(f'${len(values) + 2}')}")
    row = await connection.fetchrow(
        f"update connect_flows set {', '.join([*columns, assignments])}, version = version + 1,"
        f" updated_at = clock_timestamp(), erase_at = clock_timestamp() + interval '{KEPT_DAYS} days'"
        f" where id = $1 and {condition} returning {_COLUMNS}",
        flow.id,
        value,
        *values,
    )
    return None if row is None else read_flow(row)


def _as_stored(given: object) -> object:
    """Return the value as its column stores it: types of `common.flows` as JSON, alone or in lists."""
    if isinstance(given, _Stored):
        return given.as_json()
    return [_as_stored(each) for each in given] if isinstance(given, list | tuple) else given


# As claimed work ---------------------------------------------------------------------------------------------------

_DUE = f"""
    select {_COLUMNS} from connect_flows where due_at <= now() and {IS_FREE} and not application_id = any($2)
    order by due_at limit $1
"""

_CLAIM = f"""
    with due as materialized (
        select id from connect_flows where id = any($1) and due_at <= now() and {IS_FREE} order by id
        for update skip locked
    )
    update connect_flows set {ClaimTable.taken("$2")} from due where connect_flows.id = due.id
    returning {", ".join(f"connect_flows.{column}" for column in _FIELDS)}
"""


async def find_due(connection: Connection, *, most: int, full: Collection[str]) -> list[Flow]:
    """Return due flows, the longest due first, but for those of the applications that are `full`."""
    return [read_flow(row) for row in await connection.fetch(_DUE, most, list(full))]


async def claim(connection: Connection, chosen: Collection[Flow], *, lease_seconds: float) -> list[Flow]:
    """Claim those of the flows that are still due and free, for `lease_seconds`."""
    return [read_flow(row) for row in await connection.fetch(_CLAIM, [flow.id for flow in chosen], lease_seconds)]


extend = _TABLE.extend


async def postpone(connection: Connection, flow: Flow, /, *, delay_seconds: float, last_error: str) -> None:
    """End the claim after an error of ours, and make the flow due again in `delay_seconds`."""
    await _TABLE.try_write(
        connection,
        flow,
        "lease_until = null, last_error = $3, due_at = clock_timestamp() + make_interval(secs => $4)",
        last_error,
        delay_seconds,
    )


async def next_due_seconds(connection: Connection, /) -> float | None:
    """Return in how many seconds the next flow is due: negative when overdue, None without one."""
    return await _TABLE.next_due_seconds(connection)


def read_flow(row: Record | Mapping[str, Any]) -> Flow:
    """Return the flow that a row of ``connect_flows`` holds."""
    return Flow(**{column: _READ[column](value) if column in _READ else value for column, value in row.items()})


def _each(read: Callable[[Any], _T]) -> Callable[[Any], tuple[_T, ...]]:
    """Return a function that reads a list, each item by `read`."""
    return lambda stored: tuple(map(read, stored))


def _if_any(read: Callable[[Any], _T]) -> Callable[[Any], _T | None]:
    """Return a function that reads a value by `read`, and None as None."""
    return lambda stored: None if stored is None else read(stored)


_READ: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {
        "state": State,
        "requested": _each(Requested.from_json),
        "plan": _if_any(Plan.from_json),
        "journal": _each(JournalEntry.from_json),
        "statuses": _each(RecordSighting.from_json),
        "looked": _if_any(FlowInspection.from_json),
        "enrolments": _each(enrolment_from_json),
        "handover": _if_any(Handover.from_json),
        "error": _if_any(FlowProblem.from_json),
    }
)
"""The function that reads a column, where it is not used as it is stored."""
