"""The state of the installation at one moment: what `frontage status` prints and the operators' page shows.

Owns no table. Each figure is found by an index, and counts stop at `MOST_COUNTED`, so that reading it costs little
whatever the tables hold. `read_status` is one statement after another on one connection, not a snapshot.
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from common.db import ca_ledger, checks, edge_nodes, feed, monitor_health, monitor_nodes, orders, revocations
from common.db.ca_ledger import Limits
from common.db.edge_nodes import EdgeNode, OldCertificates
from common.db.issuance_progress import IssuanceProgress, read_progress
from common.db.monitor_health import MonitorHealth
from common.db.monitor_nodes import MonitorNode
from common.db.revocations import RevocationBacklog
from common.db.session import Connection

MOST_COUNTED = 100_000
_MOST_REASONS = 10
_MOST_FAILING = 10_000
_VARIABLE_PARTS = r"(?:[\w*-]+\.)+[\w-]+|https?://\S+|\d+"
"""Names, addresses and numbers: what differs from domain to domain in the words of one failure."""
_MOST_LIMITS = 3
_MOST_LABELS = 5

_QUEUES = {
    "certificate orders": "select due_at from orders where due_at <= now()",
    "DNS checks": "select due_at from checks where due_at <= now()",
    "webhook endpoints": "select due_at from webhook_endpoints where due_at <= now()",
    "batches": "select due_at from batches where due_at <= now()",
}
"""Due work by its name: the rows that are due now."""

_SPANS = ((None, 0), (0, 1), (1, 3), (3, 7), (7, 14), (14, 30), (30, 60), (60, None))
"""Days left of a certificate: from, and up to."""

UNRENEWED_DAYS = 3
"""Certificates in the last sixth of their lifetime that end within so many days: their renewals have failed."""
_UNRENEWED_SPANS = (0, 1, UNRENEWED_DAYS, 7)
_MOST_UNRENEWED = 10_000


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge with its lease. `behind`: how many changes of the feed it has not applied yet."""

    node: EdgeNode
    is_alive: bool
    behind: int


@dataclass(frozen=True, slots=True)
class QueueLength:
    """Work that is due. `count` stops at `MOST_COUNTED`; `oldest_seconds` is how long the first of it has been due."""

    name: str
    count: int
    oldest_seconds: float | None


@dataclass(frozen=True, slots=True)
class Expiry:
    """Certificates in service with so many days left; None is without bound. `example` is the domain of one of them."""

    from_days: int | None
    to_days: int | None
    count: int
    example: str | None = None

    @property
    def label(self) -> str:
        """Return the days left, for people."""
        if self.from_days is None:
            return "expired"
        return f"> {self.from_days} days" if self.to_days is None else f"{self.from_days}–{self.to_days} days"


@dataclass(frozen=True, slots=True)
class Unrenewed:
    """Certificates that should have been renewed: they end within so many days, of domains whose DNS still leads here.

    They are within the last sixth of their lifetime: a renewal that goes well comes before that, however short the
    lifetime is. `count` stops at `_MOST_UNRENEWED`. `example` is the domain of the one that ends last.
    """

    within_days: int
    count: int
    example: str | None = None


@dataclass(frozen=True, slots=True)
class LimitUse:
    """The used part of a CA's limit. `subject`: the name it is about, empty for the account."""

    issuer: str
    limit: str
    subject: str
    used: int
    most: int
    frees_at: datetime


@dataclass(frozen=True, slots=True)
class FailingOrders:
    """Orders whose last attempt failed for one reason: `reason` is that of one of them. Counts stop near 30,000."""

    reason: str
    count: int
    example: str


@dataclass(frozen=True, slots=True)
class InstallationStatus:
    """The state of the installation at the moment `at`."""

    at: datetime
    feed_version: int
    edges: Sequence[Edge]
    monitors: Sequence[MonitorNode]
    checks: MonitorHealth
    alarms_held: int
    queues: Sequence[QueueLength]
    certificates: Sequence[Expiry]
    unrenewed: Sequence[Unrenewed]
    ledger: Sequence[LimitUse]
    failing_orders: Sequence[FailingOrders]
    progress: IssuanceProgress
    revocations: RevocationBacklog
    endpoints_failing: int
    endpoints_disabled: int
    old_certificates: Sequence[OldCertificates] = ()

    @property
    def notices(self) -> list[str]:
        """Return what an operator should know, and what is no fault, in sentences."""
        edges = [(each.node.description.software_version, each.node.label) for each in self.edges if each.is_alive]
        monitors = [(each.software_version, each.host) for each in self.monitors if each.is_alive]
        progress = [self.progress.notice] if self.progress.notice is not None else []
        return [*_version_notices("Edges", edges), *_version_notices("Monitors", monitors), *progress]


def _version_notices(subject: str, running: Iterable[tuple[str, str]]) -> list[str]:
    """Return a sentence if these processes, each with its version and its label, are of more than one version."""
    by_version: dict[str, list[str]] = {}
    for version, label in running:
        by_version.setdefault(version or "unknown", []).append(label)
    if len(by_version) < 2:
        return []
    shown = "; ".join(f"{version} ({_first_labels(labels)})" for version, labels in sorted(by_version.items()))
    return [f"{subject} run different versions of Frontage: {shown}."]


def _first_labels(labels: Sequence[str]) -> str:
    """Return the first labels in one text, and how many more there are."""
    more = len(labels) - _MOST_LABELS
    return ", ".join(sorted(labels)[:_MOST_LABELS]) + (f" and {more} more" if more > 0 else "")


async def _count_unrenewed(connection: Connection) -> list[Unrenewed]:
    """Count the certificates whose renewals have failed, by the days that they have left."""
    found = []
    for days in _UNRENEWED_SPANS:
        row = await connection.fetchrow(
            "select count(*) as count, (array_agg(domain order by not_after desc))[1] as example"
            " from (select domain, not_after from certificates c where c.released_at is null"
            " and c.not_after <= now() + make_interval(days => $1)"
            " and c.not_after <= now() + (c.not_after - c.not_before) / 6 and exists"
            " (select from domains d where d.domain = c.domain and d.departed_at is null) limit $2) unrenewed",
            days,
            _MOST_UNRENEWED,
        )
        assert row is not None, "an aggregate has one row"
        found.append(Unrenewed(days, row["count"], row["example"]))
    return found


async def read_status(connection: Connection, limits: Limits) -> InstallationStatus:
    """Return the state of the installation; `limits` are the CAs' limits by the settings."""
    head = await feed.read_head(connection)
    nodes = await edge_nodes.list_nodes(connection)
    backlog = await checks.measure_backlog(connection)
    row = await connection.fetchrow(
        "select clock_timestamp() as at,"
        " (select count(*) from webhook_endpoints where failing_since is not null and disabled_at is null) as failing,"
        " (select count(*) from webhook_endpoints where disabled_at is not null) as disabled"
    )
    assert row is not None, "a select without a table has one row"
    return InstallationStatus(
        at=row["at"],
        feed_version=head.version,
        edges=[Edge(node, alive, max(0, head.version - node.version)) for node, alive in nodes],
        monitors=await monitor_nodes.list_nodes(connection),
        checks=await monitor_health.read(connection),
        alarms_held=backlog.held,
        queues=[await _measure_queue(connection, name, due) for name, due in _QUEUES.items()],
        certificates=[await _count_expiring(connection, start, end) for start, end in _SPANS],
        unrenewed=await _count_unrenewed(connection),
        old_certificates=await edge_nodes.list_old_certificates(connection, head.identity),
        ledger=await _limit_usage(connection, limits),
        failing_orders=await _failing_orders(connection),
        progress=await read_progress(connection, limits),
        revocations=await revocations.measure_backlog(connection),
        endpoints_failing=row["failing"],
        endpoints_disabled=row["disabled"],
    )


async def _measure_queue(connection: Connection, name: str, due: str) -> QueueLength:
    """Count the due work of a queue, and measure how long the first of it has been due."""
    row = await connection.fetchrow(
        "select count(*) as count, extract(epoch from clock_timestamp() - min(due_at))::float8 as oldest"
        f" from ({due} order by due_at limit $1) due",
        MOST_COUNTED,
    )
    assert row is not None, "an aggregate has one row"
    return QueueLength(name, row["count"], row["oldest"])


async def _count_expiring(connection: Connection, start: int | None, end: int | None) -> Expiry:
    """Count the certificates in service that have so many days left."""
    row = await connection.fetchrow(
        "select count(*) as count, min(domain) as example from"
        " (select domain from certificates where released_at is null"
        " and not_after > coalesce(now() + make_interval(days => $1), '-infinity')"
        " and not_after <= coalesce(now() + make_interval(days => $2), 'infinity') limit $3) span",
        start,
        end,
        MOST_COUNTED,
    )
    assert row is not None, "an aggregate has one row"
    return Expiry(start, end, row["count"], row["example"])


async def _limit_usage(connection: Connection, limits: Limits) -> list[LimitUse]:
    """Return how much of each limit of the CAs is used."""
    return [
        LimitUse(each.issuer, each.limit, each.subject, each.used, int(getattr(limits, each.limit)), each.frees_at)
        for each in await ca_ledger.list_usage(connection, most=_MOST_LIMITS)
    ]


async def _failing_orders(connection: Connection) -> list[FailingOrders]:
    """Return why orders fail, without those of domains whose DNS leads elsewhere, which is their owners' affair."""
    rows = await connection.fetch(
        f"""
        select min(last_error) as reason, count(*) as count, min(domain) as example from (
            (select domain, last_error from orders where last_error < least($1, $2) limit $3)
            union all (select domain, last_error from orders
                where last_error > least($1, $2) and last_error < greatest($1, $2) limit $3)
            union all (select domain, last_error from orders where last_error > greatest($1, $2) limit $3)
        ) failing
        group by regexp_replace(last_error, '{_VARIABLE_PARTS}', '…', 'g') order by count desc, reason limit $4
        """,
        *orders.DNS_REASONS,
        _MOST_FAILING,
        _MOST_REASONS,
    )
    return [FailingOrders(**row) for row in rows]
