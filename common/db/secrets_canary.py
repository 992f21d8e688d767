"""The canary: one known secret a master key, so that a wrong key fails at start and not in the middle of work."""

from __future__ import annotations

from common.db.session import Connection
from common.errors import OperatorError, SecretUnreadable
from common.secrets import CANARY_IDENTITY, CANARY_TEXT, Keyring

_WRONG_KEY = "the master key file does not belong to this database: point FRONTAGE_MASTER_KEY_FILE at the right one"

_EDGE_KEY = (
    "the master key file is an edge's, which opens the secrets of edges only: point FRONTAGE_MASTER_KEY_FILE at the one"
    " that the API and the monitors use"
)


async def ensure_canary(connection: Connection, keyring: Keyring) -> None:
    """Refuse master keys that do not open every canary, and make a canary for the current key if it has none.

    Each key that ever sealed here is still needed, until it is retired. A database without a canary gets the first.

    Raises: `OperatorError`, also for the key file of an edge.
    """
    if keyring.is_for_edges:
        raise OperatorError(_EDGE_KEY)
    async with connection.transaction():
        await connection.execute("lock table canary in exclusive mode")  # of several first starts, one is first
        rows = await connection.fetch("select key_id, envelope from canary where retired_at is null")
        for row in rows:
            _open(keyring, row["envelope"])
        if keyring.current.hex() not in {row["key_id"] for row in rows}:
            await connection.execute(
                "insert into canary (key_id, envelope) values ($1, $2)"
                " on conflict (key_id) do update set envelope = excluded.envelope, retired_at = null",
                keyring.current.hex(),
                keyring.seal(CANARY_TEXT, CANARY_IDENTITY),
            )


async def known_keys(connection: Connection) -> dict[bytes, bool]:
    """Return the ids of the keys that ever sealed here, and whether each is still needed."""
    rows = await connection.fetch("select key_id, retired_at is null as is_needed from canary")
    return {bytes.fromhex(row["key_id"]): row["is_needed"] for row in rows}


async def retire_all_but(connection: Connection, key_id: bytes) -> None:
    """Retire all keys but this one, because no envelope is sealed under any other: roles start without them."""
    await connection.execute(
        "update canary set retired_at = now() where key_id <> $1 and retired_at is null", key_id.hex()
    )


def _open(keyring: Keyring, envelope: bytes) -> None:
    """Refuse keys that do not open the canary.

    Raises: `OperatorError`.
    """
    try:
        text = keyring.open(envelope, CANARY_IDENTITY)
    except SecretUnreadable as error:
        raise OperatorError(_WRONG_KEY) from error
    if text != CANARY_TEXT:
        raise OperatorError(_WRONG_KEY)
