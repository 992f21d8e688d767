"""Applications as rows. Owns the SQL of ``applications``, with `common.db.application_secrets`; secrets stay sealed.

Rules
    A cname target leads to one application, whichever of the two columns it stands in. The unique constraints
    see one column at a time, so writers of targets take turns (a table lock that readers do not feel).
    A cname target is no enrolled domain, and no name that another application held lately, or had as a target
    (`common.db.ownership`): the domains that still lead to it would change hands with it. A target counts from when it
    was set (`common.enrolment.ownership`). What another application has of a name: `common.db.target_contests`; with
    those proven, the name moves here in the transaction that sets the target.

Functions that write need a transaction; the caller opens it.
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeAlias, TypedDict, Unpack

from asyncpg import Connection, Record

from common.db import locks, ownership, webhook_endpoints
from common.db.target_contests import CnameTargetTaken, TargetContest, find_contests
from common.enrolment.ownership import is_lost_target, lost_target
from common.urls import hide_query

MinimumTls: TypeAlias = Literal["1.2", "1.3"]
"""The oldest version of TLS that edges speak with visitors."""

SendHost: TypeAlias = Literal["origin", "customer"]
"""The name that edges send in Host to the origin: the origin's own or the customer's."""

ErrorStatus: TypeAlias = Literal["502", "http"]
"""The status of a refused change of Power or Secure: always 502, as specified, or the one that HTTP has for it."""

_COLUMNS = """id, name, cname_target, secure_cname_target, application_url, webhook_url, root_path_access,
    tier, client_secret, webhook_secret, service_auth, next_service_auth, created_at, deleting_at,
    send_host, origin_server_name, origin_verify, signature_key, maintenance, connect,
    buffer_uploads_bytes, http2, minimum_tls, error_status, response_policy, metadata_fields, organisation_id, is_test,
    secret_generation,
    case when previous_expires_at > now() then previous_client_secret end as previous_client_secret,
    case when previous_signature_until > now() then previous_signature_until end as previous_signature_until,
    case when previous_webhook_until > now() then previous_webhook_until end as previous_webhook_until,
    (select (status, reason, set_at) from edge_policies where scope = 'application' and subject = applications.id)
        as suspension"""


MOST_OF_ORGANISATION = 1000
"""Applications that the owners of an organisation may make; operators may give it more."""


@dataclass(frozen=True, slots=True)
class NewApplication:
    """An application to create. The id is the caller's: the envelopes are sealed under it. Targets are A-labels."""

    id: str
    name: str
    cname_target: str
    client_secret: bytes
    webhook_secret: bytes
    secure_cname_target: str | None = None
    application_url: str | None = None
    webhook_url: str | None = None
    root_path_access: tuple[str, ...] = ()
    tier: str = "premium"
    organisation_id: str | None = None
    error_status: ErrorStatus = "502"
    is_test: bool = False


class Suspension(NamedTuple):
    """An operator's order to answer every request of the application with this status (`common.db.policies`)."""

    status: Literal[403, 451]
    reason: str
    since: datetime

    def as_json(self) -> dict[str, object]:
        """Return the suspension as the API and commands print it; `since` in ISO 8601."""
        return {"status": self.status, "reason": self.reason, "since": self.since.isoformat()}


@dataclass(frozen=True, slots=True)
class Application:
    """An application with all its settings; secrets are envelopes.

    `previous_client_secret` is there while it still opens tokens, `service_auth` and `signature_key` while they are on,
    `previous_signature_until` and `previous_webhook_until` while a previous key or secret signs too.
    `buffer_uploads_bytes`: the largest upload that edges take in whole before they ask the origin; None: streamed.
    `http2`: edges offer HTTP/2 at its domains. `connect`: it has subscribed to the connect modal. `secret_generation`
    counts its client secrets. `deleting_at`: it is being deleted since then, and no token of it works. Without an
    organisation, only operators see it in the dashboard. `is_test`: its certificates are the internal authority's.
    """

    id: str
    name: str
    cname_target: str
    secure_cname_target: str | None
    application_url: str | None
    webhook_url: str | None
    root_path_access: tuple[str, ...]
    tier: str
    client_secret: bytes
    previous_client_secret: bytes | None
    webhook_secret: bytes
    previous_webhook_until: datetime | None
    service_auth: bytes | None
    next_service_auth: bytes | None
    send_host: SendHost
    origin_server_name: str | None
    origin_verify: bool
    signature_key: bytes | None
    previous_signature_until: datetime | None
    maintenance: bool
    connect: bool
    buffer_uploads_bytes: int | None
    created_at: datetime
    deleting_at: datetime | None
    organisation_id: str | None = None
    secret_generation: int = 1
    suspension: Suspension | None = None
    http2: bool = True
    minimum_tls: MinimumTls = "1.2"
    error_status: ErrorStatus = "502"
    response_policy: Mapping[str, Any] | None = None
    metadata_fields: tuple[str, ...] = ()
    is_test: bool = False


class ApplicationChanges(TypedDict, total=False):
    """The settings that `update_application` can set; a setting that is left out stays."""

    name: str
    cname_target: str
    secure_cname_target: str | None
    application_url: str | None
    webhook_url: str | None
    root_path_access: tuple[str, ...]
    tier: str
    webhook_secret: bytes
    service_auth: bytes | None
    next_service_auth: bytes | None
    send_host: SendHost
    origin_server_name: str | None
    origin_verify: bool
    maintenance: bool
    connect: bool
    buffer_uploads_bytes: int | None
    http2: bool
    minimum_tls: MinimumTls
    error_status: ErrorStatus
    response_policy: dict[str, Any] | None
    metadata_fields: tuple[str, ...]
    organisation_id: str | None


@dataclass(frozen=True, slots=True)
class TargetLoss:
    """What another application lost to the one that sets a cname target.

    A domain, or, with `settings` before and after, a target of its own.
    """

    contest: TargetContest
    settings: tuple[Application, Application] | None = None


@dataclass(frozen=True, slots=True)
class StoredApplication:
    """An application as it is now, and what others lost to it, for the audit log."""

    application: Application
    losses: tuple[TargetLoss, ...]


async def create_application(connection: Connection[Record], new: NewApplication) -> StoredApplication:
    """Store a new application, reserve its cname targets, and return it with what others lost to it.

    Raises: `CnameTargetTaken`.
    """
    losses = await _reserve_targets(connection, new.id, {new.cname_target, new.secure_cname_target}, ())
    row = await connection.fetchrow(
        "insert into applications (id, name, cname_target, client_secret, webhook_secret,"
        " secure_cname_target, application_url, webhook_url, root_path_access, tier, organisation_id,"
        " error_status, is_test)"
        f" values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) returning {_COLUMNS}",
        new.id,
        new.name,
        new.cname_target,
        new.client_secret,
        new.webhook_secret,
        new.secure_cname_target,
        new.application_url,
        new.webhook_url,
        new.root_path_access,
        new.tier,
        new.organisation_id,
        new.error_status,
        new.is_test,
    )
    assert row is not None
    return StoredApplication(_application(row), losses)


async def list_applications(connection: Connection[Record]) -> list[Application]:
    """Return all applications, oldest first."""
    rows = await connection.fetch(f"select {_COLUMNS} from applications order by created_at, id")
    return [_application(row) for row in rows]


async def find_names(connection: Connection[Record], ids: Collection[str]) -> dict[str, str]:
    """Return the names of the applications with these ids; what is no such id is left out."""
    rows = await connection.fetch("select id, name from applications where id = any($1::text[])", list(ids))
    return {row["id"]: row["name"] for row in rows}


async def list_visible(
    connection: Connection[Record],
    organisation_ids: Sequence[str] | None,
    *,
    text: str = "",
    after: tuple[str, str] = ("", ""),
    most: int,
) -> list[Application]:
    """Return a page of the organisations' applications (None: all), sorted by name, after the name and id `after`.

    `text`, in lower case, narrows it to those that have it in their name or cname target, or as their id.
    """
    ours = "$1::text[] is null" if organisation_ids is None else "organisation_id = any($1::text[])"
    rows = await connection.fetch(
        f"select {_COLUMNS} from applications where {ours} and (lower(name), id) > (lower($2), $3)"
        " and ($4 = '' or strpos(lower(name), $4) > 0 or id = $4 or strpos(cname_target, $4) > 0)"
        " order by lower(name), id limit $5",
        organisation_ids,
        *after,
        text,
        most,
    )
    return [_application(row) for row in rows]


async def count_of_organisation(connection: Connection[Record], organisation_id: str) -> int:
    """Lock the organisation, and count its applications, so that two requests do not both make its last one.

    The count stops above `MOST_OF_ORGANISATION`.
    """
    await connection.execute("select from organisations where id = $1 for update", organisation_id)
    count: int = await connection.fetchval(
        "select count(*) from (select from applications where organisation_id = $1 limit $2) found",
        organisation_id,
        MOST_OF_ORGANISATION + 1,
    )
    return count


async def list_visible_ids(
    connection: Connection[Record], organisation_ids: Sequence[str], *, most: int = 1000
) -> list[str]:
    """Return the ids of at most `most` applications of these organisations."""
    rows = await connection.fetch(
        "select id from applications where organisation_id = any($1) order by organisation_id, id limit $2",
        organisation_ids,
        most,
    )
    return [row["id"] for row in rows]


async def lock_application(connection: Connection[Record], application_id: str) -> Application | None:
    """Return the application as it is now, or None; other transactions wait to change it until this one ends."""
    row = await connection.fetchrow(f"select {_COLUMNS} from applications where id = $1 for update", application_id)
    return _application(row) if row else None


async def get_application(connection: Connection[Record], application_id: str) -> Application | None:
    """Return the application, or None if there is none with this id."""
    row = await connection.fetchrow(f"select {_COLUMNS} from applications where id = $1", application_id)
    return _application(row) if row else None


async def update_application(
    connection: Connection[Record],
    application_id: str,
    *,
    proven: Collection[TargetContest] = (),
    **changes: Unpack[ApplicationChanges],
) -> StoredApplication | None:
    """Change the given settings, and return the application as it is now; None if it does not exist.

    A webhook URL that is set, even to what it was, makes its endpoint begin anew. With the contests in `proven`, cname
    targets move here, and what others lost by that is returned too.

    Raises: `CnameTargetTaken`.
    """
    unknown = changes.keys() - ApplicationChanges.__annotations__.keys()
    if unknown:
        raise TypeError(f"an application has no {', '.join(sorted(unknown))} to set")
    before = await get_application(connection, application_id)
    if before is None:
        return None
    if not changes:
        return StoredApplication(before, ())
    targets = {changes.get("cname_target"), changes.get("secure_cname_target")}
    losses = await _reserve_targets(connection, application_id, targets, proven)
    await _remember_targets(connection, application_id, changes)
    assignments = ", ".join(_assignment(column, place) for place, column in enumerate(changes, start=2))
    row = await connection.fetchrow(
        f"update applications set {assignments} where id = $1 returning {_COLUMNS}",
        application_id,
        *changes.values(),
    )
    if "webhook_url" in changes:
        await webhook_endpoints.reset(connection, application_id)
    return StoredApplication(_application(row), losses) if row is not None else None


def settings_of(application: Application) -> dict[str, Any]:
    """Return the application's settings as the audit log records them.

    Of X-Service-Auth, and of the query of the webhook's URL, the log gets only a mark that changes with its value.
    """
    return {
        "name": application.name,
        "cname_target": application.cname_target,
        "secure_cname_target": application.secure_cname_target,
        "application_url": application.application_url,
        "webhook_url": _marked_url(application.webhook_url),
        "root_path_access": application.root_path_access,
        "tier": application.tier,
        "service_auth": _mark(application.service_auth),
        "next_service_auth": _mark(application.next_service_auth),
        "send_host": application.send_host,
        "origin_server_name": application.origin_server_name,
        "origin_verify": application.origin_verify,
        "maintenance": application.maintenance,
        "connect": application.connect,
        "buffer_uploads_bytes": application.buffer_uploads_bytes,
        "http2": application.http2,
        "minimum_tls": application.minimum_tls,
        "error_status": application.error_status,
        "response_policy": application.response_policy,
        "metadata_fields": application.metadata_fields,
        "organisation_id": application.organisation_id,
        "is_test": application.is_test,
    }


def _mark(envelope: bytes | None) -> str:
    """Return `off`, or `on` with six hex digits that change with the envelope."""
    return "off" if envelope is None else f"on ({_digest(envelope)})"


def _marked_url(url: str | None) -> str | None:
    """Return the URL with six hex digits in place of its query, that change with it."""
    return None if url is None else hide_query(url, f"… ({_digest(url.encode())})")


def _digest(value: bytes) -> str:
    return hashlib.sha256(value).hexdigest()[:6]


async def _reserve_targets(
    connection: Connection[Record],
    application_id: str,
    targets: Collection[str | None],
    proven: Collection[TargetContest],
) -> tuple[TargetLoss, ...]:
    """Reserve cname targets for the application; move here those whose contests are proven or have lapsed.

    Returns what other applications lost. Raises: `CnameTargetTaken`.
    """
    wanted = sorted(filter(None, targets))
    if not wanted:
        return ()
    await locks.hold(connection, "domain", *wanted)  # so that they are not enrolled at the same time
    if proven:
        await locks.hold(connection, "moves")
    await connection.execute("lock table applications in share row exclusive mode")
    contests = await find_contests(connection, application_id, wanted)
    if unproven := [contest for contest in contests if not contest.has_lapsed and contest not in proven]:
        raise CnameTargetTaken(unproven)
    losses = [await _take_from_rival(connection, contest) for contest in contests]
    return tuple(loss for loss in losses if loss is not None)


async def _take_from_rival(connection: Connection[Record], contest: TargetContest) -> TargetLoss | None:
    """End what the rival has of the name; return None where it only had it once."""
    match contest.kind:
        case "target":
            settings = await _release_lost_target(connection, contest.target, contest.rival)
            return None if settings is None else TargetLoss(contest, settings)
        case "domain" if await ownership.revoke_ownership(connection, contest.target, contest.rival, "moved"):
            return TargetLoss(contest)
    return None


async def _release_lost_target(
    connection: Connection[Record], target: str, application_id: str
) -> tuple[Application, Application] | None:
    """Remove a target from the application that lost it, which is not remembered as having had it.

    Returns the application before and after.
    """
    before = await get_application(connection, application_id)
    row = await connection.fetchrow(
        "update applications set cname_target = case when cname_target = $2 then $3 else cname_target end,"
        " cname_target_set_at = case when cname_target = $2 then now() else cname_target_set_at end,"
        " secure_cname_target_set_at = case when secure_cname_target = $2 then null"
        "  else secure_cname_target_set_at end,"
        f" secure_cname_target = nullif(secure_cname_target, $2) where id = $1 returning {_COLUMNS}",
        application_id,
        target,
        lost_target(application_id),
    )
    return None if before is None or row is None else (before, _application(row))


def _assignment(column: str, place: int) -> str:
    """Return the SQL that sets a column; a cname target that changes gets the time from which it counts, too."""
    assigned = f"{column} = ${place}"
    if column not in ("cname_target", "secure_cname_target"):
        return assigned
    since = f"case when {column} is distinct from ${place} then now() else {column}_set_at end"
    return f"{assigned}, {column}_set_at = {since}"


async def _remember_targets(connection: Connection[Record], application_id: str, changes: ApplicationChanges) -> None:
    """Remember the application as the last holder of the targets that the changes make it give up."""
    changed = [column for column in ("cname_target", "secure_cname_target") if column in changes]
    if not changed:
        return
    row = await connection.fetchrow(
        "select cname_target, secure_cname_target from applications where id = $1", application_id
    )
    if row is not None:
        after = set((dict(row) | changes).values())
        targets = [each for each in row.values() if each and each not in after and not is_lost_target(each)]
        await ownership.remember_targets(connection, targets, application_id)


def _application(row: Record) -> Application:
    suspension = row["suspension"]
    values = {
        "root_path_access": tuple(row["root_path_access"]),
        "metadata_fields": tuple(row["metadata_fields"]),
        "suspension": None if suspension is None else Suspension(*suspension),
    }
    return Application(**{**row, **values})
