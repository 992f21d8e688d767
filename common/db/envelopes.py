"""Envelopes wherever they lie in the database, for sealing all of them anew (`api.cli.master_key`).

Owns which columns hold envelopes and under which identity each is sealed. Nothing here opens one.
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import starmap

from common.db import acme_accounts, application_secrets, certificates, domain_connect_keys, internal_root
from common.db.session import Connection
from common.secrets import Room, room_of

_OLD = "substring({column} from 2 for 4) <> $1"


@dataclass(frozen=True, slots=True)
class SealedColumn:
    """A column of envelopes. Rows are identified by `key`, whose first column the identity is made from."""

    table: str
    column: str
    key: tuple[str, ...]
    identity: Callable[[str], str]

    def __str__(self) -> str:
        return f"{self.table}.{self.column}"


@dataclass(frozen=True, slots=True)
class SealedValue:
    """An envelope with the key of its row."""

    key: tuple[str, ...]
    envelope: bytes


def _account(_: str) -> str:
    return acme_accounts.KEY_IDENTITY


def _root(_: str) -> str:
    return internal_root.KEY_IDENTITY


SEALED_COLUMNS: tuple[SealedColumn, ...] = tuple(
    starmap(
        SealedColumn,
        (
            ("applications", "client_secret", ("id",), application_secrets.client_secret_identity),
            ("applications", "previous_client_secret", ("id",), application_secrets.client_secret_identity),
            ("applications", "webhook_secret", ("id",), application_secrets.webhook_secret_identity),
            ("applications", "previous_webhook_secret", ("id",), application_secrets.webhook_secret_identity),
            ("applications", "service_auth", ("id",), application_secrets.service_auth_identity),
            ("applications", "next_service_auth", ("id",), application_secrets.service_auth_identity),
            ("applications", "signature_key", ("id",), application_secrets.signature_key_identity),
            ("applications", "previous_signature_key", ("id",), application_secrets.signature_key_identity),
            ("acme_key", "private_key", ("thumbprint",), _account),
            ("acme_key_rollover", "private_key", ("thumbprint",), _account),
            ("internal_root", "private_key", ("certificate",), _root),
            ("domain_connect_keys", "private_key", ("label",), domain_connect_keys.key_identity),
            ("orders", "placed_key", ("domain",), certificates.key_identity),
            ("certificates", "private_key", ("domain", "application_id"), certificates.key_identity),
            ("own_certificates", "private_key", ("domain",), certificates.key_identity),
            ("certificate_requests", "private_key", ("domain",), certificates.key_identity),
        ),
    )
)
"""Every one but the canary, which has one row a key."""


async def count_old(connection: Connection, place: SealedColumn, key_id: bytes) -> int:
    """Count the column's envelopes that are sealed under another key."""
    count: int = await connection.fetchval(
        f"select count(*) from {place.table} where {_OLD.format(column=place.column)}", key_id
    )
    return count


async def count_sealed_whole(connection: Connection, room: Room) -> int:
    """Count a room's secrets that are sealed in a form which only a whole master key opens."""
    every = " union all ".join(
        f"select count(*) as n from {place.table} where substring({place.column} from 1 for 1) = '\\x01'"
        for place in SEALED_COLUMNS
        if room_of(place.identity("")) == room
    )
    total: int = await connection.fetchval(f"select sum(n)::bigint from ({every}) counts")
    return total


async def lock_old(
    connection: Connection, place: SealedColumn, key_id: bytes, after: tuple[str, ...] | None, *, most: int
) -> list[SealedValue]:
    """Lock the next rows whose envelope is sealed under another key, and return those envelopes, by their keys."""
    columns = ", ".join(place.key)
    later = f"and ({columns}) > ({', '.join(f'${number + 3}' for number in range(len(place.key)))})" if after else ""
    rows = await connection.fetch(
        f"select {columns}, {place.column} as envelope from {place.table}"
        f" where {_OLD.format(column=place.column)} {later} order by {columns} limit $2 for update",
        key_id,
        most,
        *(after or ()),
    )
    return [SealedValue(tuple(row[column] for column in place.key), row["envelope"]) for row in rows]


async def replace(connection: Connection, place: SealedColumn, sealed: list[SealedValue]) -> None:
    """Replace the envelopes that `lock_old` returned, in its transaction."""
    matches = " and ".join(f"{column} = ${number + 2}" for number, column in enumerate(place.key))
    await connection.executemany(
        f"update {place.table} set {place.column} = $1 where {matches}",
        [(each.envelope, *each.key) for each in sealed],
    )


async def count(connection: Connection, key_id: bytes) -> int:
    """Count the envelopes that are sealed under this key."""
    under = "substring({column} from 2 for 4) = $1"
    every = " union all ".join(
        f"select count(*) as n from {place.table} where {under.format(column=place.column)}" for place in SEALED_COLUMNS
    )
    total: int = await connection.fetchval(f"select sum(n)::bigint from ({every}) counts", key_id)
    return total


@asynccontextmanager
async def rotating(connection: Connection) -> AsyncIterator[bool]:
    """Take the lock of the master key's rotation until the end of the block or session; yield False if it is held."""
    key = "hashtextextended('frontage master key rotation', 0)"
    is_alone: bool = await connection.fetchval(f"select pg_try_advisory_lock({key})")
    try:
        yield is_alone
    finally:
        if is_alone:
            await connection.execute(f"select pg_advisory_unlock({key})")
