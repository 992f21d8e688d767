"""Lists of flows and where their people give up. Owns the SQL that reads ``connect_flows`` for partners' support.

Rules
    a flow's step is the furthest that it has come to, also once it is over: `STEPS`, in their order
    a part of the list looks through at most `SCANNED` flows, and the funnel through the newest `COUNTED`: both read a
        bounded number of rows, whatever is filtered
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, get_args

from asyncpg import Record

from common.db.session import Connection
from common.flow_states import ENDED, State
from common.flows.handover import FlowProblem
from common.flows.ways import WayName

Step = Literal["domain", "inspection", "plan", "writing", "records", "enrolment", "live"]
STEPS: tuple[Step, ...] = get_args(Step)

SCANNED = 5000
"""The most flows that one part of the list looks through."""
COUNTED = 10_000
"""The most flows that a funnel counts."""

_STEP = f"""case
    when added_at is not null or state = '{State.FINISHED}' then 'live'
    when state = '{State.ENROLLING}' or enrolments <> '[]' then 'enrolment'
    when since is not null then 'records'
    when way is not null then 'writing'
    when plan is not null then 'plan'
    when domain is not null then 'inspection'
    else 'domain' end"""

_COLUMNS = f"""id, job_id, user_id, state, {_STEP} as step, domain, subdomain, way, error,
    looked #>> '{{provider,id}}' as provider_id, looked #>> '{{provider,name}}' as provider_name,
    created_at, updated_at, completed_at, added_at"""


@dataclass(frozen=True, slots=True)
class FlowFilter:
    """Which flows are listed; None: any. `domain` is the apex. `is_open`: not over, or over."""

    state: State | None = None
    step: Step | None = None
    domain: str | None = None
    subdomain: str | None = None
    user_id: str | None = None
    job_id: str | None = None
    is_open: bool | None = None


@dataclass(frozen=True, slots=True)
class ListedFlow:
    """A flow as a list shows it.

    `provider_id` is empty for a provider that is not known, and None before it was looked for.
    """

    id: str
    job_id: str
    user_id: str | None
    state: State
    step: Step
    domain: str | None
    subdomain: str | None
    way: WayName | None
    error: FlowProblem | None
    provider_id: str | None
    provider_name: str | None
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None
    added_at: datetime | None

    @property
    def host(self) -> str | None:
        """Return the whole name that the flow sets up; None while none is chosen."""
        return f"{self.subdomain}.{self.domain}" if self.subdomain else self.domain

    @property
    def is_open(self) -> bool:
        """Whether the flow is not over."""
        return self.state not in ENDED


class FlowPart(NamedTuple):
    """A part of the list, newest first; `next` is the flow that the part after it begins behind, None at the end."""

    flows: list[ListedFlow]
    next: str | None


_PART = f"""
    with scanned as materialized (
        select * from connect_flows where application_id = $1 and ($2::text is null or (created_at, id) <
            (select created_at, id from connect_flows where application_id = $1 and id = $2))
        order by created_at desc, id desc limit $3
    ), found as (
        select {_COLUMNS} from scanned where ($5::text is null or state = $5) and ($6::text is null or {_STEP} = $6)
            and ($7::text is null or domain = $7) and ($8::text is null or subdomain = $8)
            and ($9::text is null or user_id = $9) and ($10::text is null or job_id = $10)
            and ($11::boolean is null or (state <> all($12)) = $11)
        order by created_at desc, id desc limit $4
    ), seen as (
        select count(*) as scanned, (array_agg(id order by created_at, id))[1] as last_scanned from scanned
    )
    select * from seen left join found on true order by created_at desc, id desc
"""


async def list_flows(
    connection: Connection,
    application_id: str,
    which: FlowFilter,
    *,
    after: str | None,
    limit: int,
    scanned: int = SCANNED,
) -> FlowPart:
    """Return a part of the application's flows, newest first, behind the flow `after` (None: from the newest on)."""
    rows = await connection.fetch(
        _PART,
        application_id,
        after,
        scanned,
        limit,
        which.state,
        which.step,
        which.domain,
        which.subdomain,
        which.user_id,
        which.job_id,
        which.is_open,
        sorted(ENDED),
    )
    flows = [_read_listed(row) for row in rows if row["id"] is not None]
    if len(flows) == limit:
        return FlowPart(flows, flows[-1].id)
    return FlowPart(flows, rows[0]["last_scanned"] if rows[0]["scanned"] == scanned else None)


async def find_flow(connection: Connection, application_id: str, flow_id: str) -> ListedFlow | None:
    """Return one of the application's flows as the list shows it; None where there is no such flow."""
    row = await connection.fetchrow(
        f"select {_COLUMNS} from connect_flows where application_id = $1 and id = $2", application_id, flow_id
    )
    return None if row is None else _read_listed(row)


async def has_flow(connection: Connection, application_id: str, flow_id: str) -> bool:
    """Return whether the application has a flow of this id."""
    found: bool = await connection.fetchval(
        "select exists (select from connect_flows where application_id = $1 and id = $2)", application_id, flow_id
    )
    return found


def _read_listed(row: Record) -> ListedFlow:
    fields = {name: row[name] for name in ListedFlow.__slots__}
    error = row["error"]
    return ListedFlow(**fields | {"state": State(row["state"]), "error": error and FlowProblem.from_json(error)})


@dataclass(frozen=True, slots=True)
class StepCount:
    """Flows at one step: `reached` it or went beyond; `stopped`: over there; `open`: stand there now."""

    step: Step
    reached: int
    stopped: int
    open: int


@dataclass(frozen=True, slots=True)
class ProviderFunnel:
    """The steps of the flows at one DNS provider; `id` is as `ListedFlow.provider_id`."""

    id: str | None
    name: str | None
    flows: int
    live: int
    steps: tuple[StepCount, ...]


@dataclass(frozen=True, slots=True)
class Funnel:
    """How far flows came: all of them, and by provider, most flows first. `is_whole`: false beyond `COUNTED` flows."""

    since: datetime
    flows: int
    is_whole: bool
    steps: tuple[StepCount, ...]
    providers: tuple[ProviderFunnel, ...]


_COUNTS = f"""
    with newest as (
        select state, {_STEP} as step, looked #>> '{{provider,id}}' as provider_id,
            looked #>> '{{provider,name}}' as provider_name
        from connect_flows where application_id = $1 and created_at >= $2 order by created_at desc limit $3
    )
    select provider_id, provider_name, step, case when state = '{State.FINISHED}' then 'live'
        when state = any($4) then 'stopped' else 'open' end as outcome, count(*) as flows
    from newest group by 1, 2, 3, 4
"""

_Counts = Mapping[tuple[Step, str], int]
"""How many flows there are of a step and an outcome: live, stopped or open."""


async def read_funnel(connection: Connection, application_id: str, since: datetime) -> Funnel:
    """Return how far the application's flows came that began since then, the newest `COUNTED` of them."""
    rows = await connection.fetch(_COUNTS, application_id, since, COUNTED, sorted(ENDED))
    by_provider: dict[tuple[str | None, str | None], dict[tuple[Step, str], int]] = {}
    total: dict[tuple[Step, str], int] = {}
    for row in rows:
        key = (row["step"], row["outcome"])
        total[key] = total.get(key, 0) + row["flows"]
        by_provider.setdefault((row["provider_id"], row["provider_name"]), {})[key] = row["flows"]
    providers = [
        ProviderFunnel(provider_id, name, sum(counts.values()), _count_live(counts), count_steps(counts))
        for (provider_id, name), counts in by_provider.items()
    ]
    flows = sum(total.values())
    return Funnel(
        since,
        flows,
        flows < COUNTED,
        count_steps(total),
        tuple(sorted(providers, key=lambda each: (-each.flows, each.name or ""))),
    )


def count_steps(counts: _Counts) -> tuple[StepCount, ...]:
    """Return the count of each step, in their order."""
    return tuple(
        StepCount(
            step,
            sum(flows for (each, _), flows in counts.items() if STEPS.index(each) >= place),
            counts.get((step, "stopped"), 0),
            counts.get((step, "open"), 0),
        )
        for place, step in enumerate(STEPS)
    )


def _count_live(counts: _Counts) -> int:
    return sum(flows for (_, outcome), flows in counts.items() if outcome == "live")
