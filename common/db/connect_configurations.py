"""Registered configurations of the connect modal as rows: what the flows of browsers may ask for.

Owns the SQL of ``connect_configurations``. A row never changes: the same configuration, registered again, is the same
row, and another one is another row. Removing one ends the links and flows that were made with it.

Functions that write need a transaction; the caller opens it.
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from common.db import flow_ends, shares
from common.db.application_secrets import is_of_living_secret
from common.db.session import Connection
from common.errors import FrontageError

MOST = 20_000
"""The most configurations of an application: one for each customer, where each has an origin of its own."""

_ID = re.compile(r"cfg_[0-9a-f]{32}")
_COLUMNS = "id, application_id, config, secret_generation, created_at, expires_at"
_LIVING = f"(expires_at is null or expires_at > now()) and {is_of_living_secret('connect_configurations')}"


class TooManyConfigurations(FrontageError):
    """The application has registered `MOST` configurations."""


@dataclass(frozen=True, slots=True)
class RegisteredConfiguration:
    """A registered configuration of the connect modal.

    `secret_generation`: of the client secret whose token registered it; None where no token did.
    """

    id: str
    application_id: str
    config: Mapping[str, Any]
    secret_generation: int | None
    created_at: datetime
    expires_at: datetime | None


async def register(
    connection: Connection,
    application_id: str,
    config: Mapping[str, Any],
    *,
    secret_generation: int | None,
    lifetime_days: int | None,
    by_key: str | None = None,
) -> tuple[RegisteredConfiguration, bool]:
    """Return the row of this configuration, and whether it is new; it ends as this registration has it.

    `by_key`: the API key that registers it. The revocation of a key ends it where that key registered it last, and no
    token or user ever did without a key.

    Raises: `TooManyConfigurations`.
    """
    digest = hashlib.sha256(json.dumps(config, sort_keys=True, separators=(",", ":")).encode()).digest()
    await _refuse_beyond_bound(connection, application_id, digest)
    row = await connection.fetchrow(
        "insert into connect_configurations (id, application_id, digest, config, secret_generation, by_key, expires_at)"
        " values ($1, $2, $3, $4, $5, $6, now() + make_interval(days => $7)) on conflict (application_id, digest)"
        " do update set expires_at = excluded.expires_at,"
        " by_key = case when connect_configurations.by_key is not null then excluded.by_key end,"
        " secret_generation = case"
        "  when connect_configurations.secret_generation is null or excluded.secret_generation is null then null"
        "  else greatest(connect_configurations.secret_generation, excluded.secret_generation) end"
        f" returning {_COLUMNS}, xmax = 0 as is_new",
        f"cfg_{secrets.token_hex(16)}",
        application_id,
        digest,
        dict(config),
        secret_generation,
        by_key,
        lifetime_days,
    )
    assert row is not None, "an upsert returns its row"
    return _configuration(row), row["is_new"]


async def _refuse_beyond_bound(connection: Connection, application_id: str, digest: bytes) -> None:
    """Refuse another configuration of an application that has `MOST`.

    Raises: `TooManyConfigurations`.
    """
    is_full = await connection.fetchval(
        "select not exists (select from connect_configurations where application_id = $1 and digest = $2) and"
        " (select count(*) from (select from connect_configurations where application_id = $1 limit $3) own) >= $3",
        application_id,
        digest,
        MOST,
    )
    if is_full:
        raise TooManyConfigurations(application_id)


async def find(connection: Connection, configuration_id: str, application_id: str) -> RegisteredConfiguration | None:
    """Return the application's configuration; None where there is none, or no longer."""
    if not _ID.fullmatch(configuration_id):
        return None
    row = await connection.fetchrow(
        f"select {_COLUMNS} from connect_configurations where id = $1 and application_id = $2 and {_LIVING}",
        configuration_id,
        application_id,
    )
    return None if row is None else _configuration(row)


async def lock_living(connection: Connection, application_id: str, configuration_id: str) -> bool:
    """Keep the configuration from being removed until the transaction ends, and return whether it is there."""
    if not _ID.fullmatch(configuration_id):
        return False
    found = await connection.fetchval(
        f"select true from connect_configurations where id = $1 and application_id = $2 and {_LIVING} for key share",
        configuration_id,
        application_id,
    )
    return bool(found)


async def list_registered(
    connection: Connection, application_id: str, *, before: datetime | None, limit: int
) -> list[RegisteredConfiguration]:
    """Return the application's configurations, newest first; those registered before `before`."""
    rows = await connection.fetch(
        f"select {_COLUMNS} from connect_configurations"
        " where application_id = $1 and created_at < coalesce($2::timestamptz, 'infinity')"
        f" and {_LIVING} order by created_at desc, id desc limit $3",
        application_id,
        before,
        limit,
    )
    return list(map(_configuration, rows))


async def remove(connection: Connection, application_id: str, configuration_id: str) -> dict[str, Any] | None:
    """Remove the configuration, and end its links and flows; return what was registered.

    None where the application does not have it.
    """
    if not _ID.fullmatch(configuration_id):
        return None
    config: dict[str, Any] | None = await connection.fetchval(
        "delete from connect_configurations where id = $1 and application_id = $2 returning config",
        configuration_id,
        application_id,
    )
    if config is None:
        return None
    await shares.revoke_of_configuration(connection, configuration_id)
    await flow_ends.end_of_configuration(connection, configuration_id)
    return config


def _configuration(row: Any) -> RegisteredConfiguration:
    return RegisteredConfiguration(**{name.strip(): row[name.strip()] for name in _COLUMNS.split(",")})
