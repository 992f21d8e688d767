"""Retention: which rows the database erases, and when; and what bounds each table (`GROWTH`).

A step erases one batch in the caller's transaction. Batches are bounded, and found by an index in the order in which
rows expire, so that a batch takes the same time in a table of any size. Rows that another transaction has locked are
skipped and left to the next batch: monitors that sweep at the same time do not wait for each other.
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from common.db import (
    audit,
    ca_ledger,
    connect_configurations,
    connect_flows,
    edge_nodes,
    events,
    feed,
    idempotent_requests,
    locks,
    monitor_nodes,
    preparations,
    target_sightings,
    user_keys,
)
from common.db.batches import KEPT_DAYS as BATCH_DAYS
from common.db.certificates import KEPT_DAYS as RELEASED_CERTIFICATE_DAYS
from common.db.own_certificates import REQUEST_KEPT_DAYS
from common.db.ownership import MOST_FORMER_TARGETS
from common.db.revocations import KEPT_DAYS as REVOCATION_DAYS
from common.db.session import Connection
from common.enrolment.ownership import REMEMBERED_DAYS
from common.names import WILDCARD

ENROLMENT_DAYS = 30
"""The limit counts enrolments over 24 hours, the first of a name excepted. A name that was not enrolled for this long
counts as new."""

SEQUENCE_DAYS = 30
"""How often the sequence of a name is reviewed, from its first event on. It is erased when the application neither
has the name enrolled nor monitored, and has no events of it left."""


class RetentionBatch(NamedTuple):
    """The result of one batch. `examined` below the batch's size: nothing more has expired."""

    examined: int
    erased: int


@dataclass(frozen=True, slots=True)
class RetentionStep:
    """A rule of retention. `oldest` is a query for the oldest time of a row that the rule erases."""

    name: str
    erase: Callable[[Connection, int], Awaitable[RetentionBatch]]
    oldest: str
    batch_rows: int = 1000


def _by_age(table: str, column: str, days: int, *, where: str = "true", batch_rows: int = 1000) -> RetentionStep:
    """Return the step that erases rows that meet `where` `days` after the time in `column`, which is indexed."""
    statement = f"""
        delete from {table} where ctid = any(array(
            select ctid from {table} where {column} < now() - interval '{days} days' and {where}
            order by {column} limit $1 for update skip locked))
    """

    async def erase(connection: Connection, most: int) -> RetentionBatch:
        erased = _count(await connection.execute(statement, most))
        return RetentionBatch(erased, erased)

    return RetentionStep(
        table, erase, f"select min({column}) from {table} where {column} is not null and {where}", batch_rows
    )


async def _erase_sequences(connection: Connection, most: int) -> RetentionBatch:
    """Erase sequences that are no longer needed; one that is needed is reviewed again later.

    Nothing here lets Postgres read a whole table for a batch, which it does for ``exists`` (hashed) and for a join by
    key when it expects many rows.
    """
    row = await connection.fetchrow(
        f"""
        with due as materialized (
            select ctid as place, coalesce(
                (select true from events e where e.application_id = s.application_id and e.domain = s.domain
                    and e.subdomain is not distinct from nullif(s.subdomain, '') limit 1),
                (select true from domains d where d.application_id = s.application_id
                    and d.domain = concat_ws('.', nullif(s.subdomain, ''), s.domain) limit 1),
                (select true from monitored_domains m where m.application_id = s.application_id
                    and m.domain = s.domain and coalesce(m.subdomain, '') = s.subdomain limit 1),
                false) as is_needed
            from event_sequences s where review_at < now() order by review_at limit $1 for update skip locked
        ), kept as (
            update event_sequences set review_at = now() + interval '{SEQUENCE_DAYS} days'
            where ctid = any(array(select place from due where is_needed))
        ), erased as (
            delete from event_sequences where ctid = any(array(select place from due where not is_needed)) returning 1
        )
        select (select count(*) from due) as examined, (select count(*) from erased) as erased
        """,
        most,
    )
    assert row is not None, "an aggregate has one row"
    return RetentionBatch(row["examined"], row["erased"])


async def _erase_delegations(connection: Connection, most: int) -> RetentionBatch:
    """Erase labels of names that the application has not had, nor prepared, for as long as a holder is remembered.

    One that is needed is reviewed again later. Nothing here reads a whole table, as in `_erase_sequences`.
    """
    row = await connection.fetchrow(
        f"""
        with due as materialized (
            select ctid as place, (select bool_or(coalesce(
                (select true from domains d where d.domain = name and d.application_id = l.application_id limit 1),
                (select true from preparations p
                    where p.domain = name and p.application_id = l.application_id limit 1),
                (select true from former_holders f
                    where f.domain = name and f.application_id = l.application_id limit 1),
                false)) from unnest(array[l.domain, '{WILDCARD}' || l.domain]) name) as is_needed
            from acme_delegations l where review_at < now() order by review_at limit $1 for update skip locked
        ), kept as (
            update acme_delegations set review_at = now() + interval '{REMEMBERED_DAYS} days'
            where ctid = any(array(select place from due where is_needed))
        ), erased as (
            delete from acme_delegations where ctid = any(array(select place from due where not is_needed)) returning 1
        )
        select (select count(*) from due) as examined, (select count(*) from erased) as erased
        """,
        most,
    )
    assert row is not None, "an aggregate has one row"
    return RetentionBatch(row["examined"], row["erased"])


async def _purge_tombstones(connection: Connection, most: int) -> RetentionBatch:
    purged = await feed.purge_tombstones(connection, most=most)
    return RetentionBatch(purged, purged)


STEPS = (
    _by_age("enrolments", "enrolled_at", ENROLMENT_DAYS),
    _by_age("former_holders", "released_at", REMEMBERED_DAYS),
    _by_age("certificates", "released_at", RELEASED_CERTIFICATE_DAYS),
    _by_age("certificate_requests", "requested_at", REQUEST_KEPT_DAYS),
    _by_age("events", "created_at", events.KEPT_DAYS),
    RetentionStep("event_sequences", _erase_sequences, "select min(review_at) from event_sequences"),
    RetentionStep("acme_delegations", _erase_delegations, "select min(review_at) from acme_delegations"),
    _by_age("batches", "submitted_at", BATCH_DAYS, where="due_at is null", batch_rows=20),  # 100 items each
    _by_age("shares", "expires_at", 0),
    _by_age("status_links", "expires_at", 0),
    _by_age("connect_configurations", "expires_at", 0),
    _by_age("idempotent_requests", "started_at", idempotent_requests.KEPT_HOURS // 24),
    _by_age("preparations", "expires_at", 0, where="due_at is null"),
    _by_age("connect_flows", "erase_at", 0, where="due_at is null"),
    _by_age("audit", "at", audit.KEPT_DAYS),
    _by_age("sessions", "expires_at", 0),
    _by_age("sign_in_links", "expires_at", 0),
    _by_age("user_keys", "expires_at", user_keys.SHOWN_DAYS),
    _by_age("answered_challenges", "answered_at", 1),
    _by_age("ca_ledger", "taken_at", ca_ledger.KEPT_DAYS),
    _by_age("revocations", "revoked_at", REVOCATION_DAYS),
    _by_age("edge_nodes", "lease_until", edge_nodes.DEPARTED_DAYS),
    _by_age("monitor_nodes", "lease_until", monitor_nodes.DEPARTED_DAYS),
    _by_age("target_sightings", "due_at", target_sightings.KEPT_DAYS),
    _by_age("traffic", "erase_at", 0),
    _by_age("traffic_reports", "erase_at", 0),
    RetentionStep("tombstones", _purge_tombstones, "select min(changed_at) from changes where deleted"),
)

GROWTH: Mapping[str, str] = MappingProxyType(
    {
        "acme_accounts": "one row for each CA and account key",
        "acme_key": "one row",
        "acme_key_rollover": "one row",
        "acme_delegations": "one row for each application and domain that it has, had, prepared or asked about; others"
        f" are erased within {2 * REMEMBERED_DAYS} days",
        "alembic_version": "one row",
        "applications": "made and deleted by operators and owners; an organisation's owners make 1,000 at most",
        "answered_challenges": "one row for each use of a passkey; erased after a day",
        "audit": f"erased after {audit.KEPT_DAYS} days",
        "batch_items": "erased with their batch",
        "batches": f"erased {BATCH_DAYS} days after they were submitted, once they are done",
        "ca_ledger": f"erased after {ca_ledger.KEPT_DAYS} days",
        "canary": "one row for each master key",
        "certificate_requests": f"one at most for each enrolled name; erased after {REQUEST_KEPT_DAYS} days",
        "certificates": f"one for each enrolled name; released ones are erased after {RELEASED_CERTIFICATE_DAYS} days",
        "changes": f"one row for each routed row; tombstones are erased after {feed.TOMBSTONES_KEPT.days} days",
        "checks": "one row for each monitored domain",
        "connect_configurations": f"{connect_configurations.MOST} at most of each application",
        "connect_flows": f"{connect_flows.MOST_OPEN} open ones of an application; others are erased"
        f" {connect_flows.KEPT_DAYS} days after their last change",
        "deliveries": "erased with their event",
        "domain_metadata": "2 KB at most for each enrolled name and product",
        "domain_tallies": "five rows at most for each enrolled name and product",
        "domains": "one row for each enrolled name and product",
        "edge_nodes": f"erased {edge_nodes.DEPARTED_DAYS} day after the lease has lapsed",
        "edge_policies": "made and ended by operators",
        "enrolments": f"erased after {ENROLMENT_DAYS} days",
        "error_pages": "one row for each application",
        "event_sequences": "one row for each name that is enrolled, monitored or has events; others are erased "
        f"within {2 * SEQUENCE_DAYS} days",
        "events": f"erased after {events.KEPT_DAYS} days",
        "feed_shards": "64 rows",
        "feed_timeline": "one row",
        "former_holders": f"erased {REMEMBERED_DAYS} days after the name was given up; beside them, at most"
        f" {MOST_FORMER_TARGETS} former cname targets of each application",
        "internal_root": "one row",
        "lock_slots": f"{sum(locks.SLOTS.values())} rows",
        "mass_guard": "one row",
        "memberships": "one row for each organisation of a user",
        "monitor_health": "one row",
        "monitor_nodes": f"erased {monitor_nodes.DEPARTED_DAYS} day after the lease has lapsed",
        "monitored_domains": "one row for each monitored name",
        "monitored_tallies": "three rows at most for each monitored name",
        "orders": "one row for each enrolled name",
        "idempotent_requests": f"erased after {idempotent_requests.KEPT_HOURS} hours",
        "organisations": "made by the operator",
        "oidc_subjects": "one row for each user and OpenID Connect provider; deleted with the user",
        "origin_outages": "one row for each application and origin of its domains that fails; erased once it answers",
        "own_certificates": "one at most for each enrolled name; leaves with it",
        "passkeys": "20 at most of each user; erased with it",
        "rdap_bootstrap": "one row",
        "domain_connect_keys": "two rows: the key that signs, and the next one during a rotation",
        "preparations": f"one row for each application and domain that is prepared, for {preparations.KEPT_DAYS} days;"
        f" {preparations.MOST_WAITING:,} waiting ones at most of each application",
        "revocations": f"erased {REVOCATION_DAYS} days after they were done",
        "sessions": "50 at most of each user; erased when they expire",
        "shares": "erased when they expire",
        "sign_in_links": "one at most of each user; erased when they expire",
        "status_links": "one at most for each application and domain; erased when they expire",
        "target_sightings": "one row for each cname target, and for each former one that is remembered; erased"
        f" {target_sightings.KEPT_DAYS} days after it is none any more",
        "traffic": "of each login of edges, at most 2,000 rows for 5 minutes, erased after 2 days, and 4,000 rows for"
        " an hour, erased after 30 days",
        "traffic_reports": "a row for each login of edges and interval, kept as long as `traffic`",
        "user_keys": f"{user_keys.MOST_OF_USER} at most of each user; erased {user_keys.SHOWN_DAYS} days after they"
        " expire",
        "users": "made by the operator and by owners of organisations, who have at most 500 members",
        "webhook_endpoints": "one row for each application",
    }
)
"""What bounds each table. A table that is not listed here may not be added."""


async def oldest_seconds(connection: Connection, step: RetentionStep) -> float | None:
    """Return the age of the oldest row that the step erases; None if there is none."""
    seconds: float | None = await connection.fetchval(f"select extract(epoch from now() - ({step.oldest}))::float8")
    return seconds


def _count(status: str) -> int:
    """Return the number in a command's status, such as ``DELETE 3``."""
    return int(status.rpartition(" ")[2])
