"""The canary: one known secret a master key, so that a wrong key fails at start and not in the middle of work."""

from __future__ import annotations

from common.db.session import Connection
from common.errors import OperatorError, SecretUnreadable
from common.secrets import CANARY_IDENTITY, CANARY_TEXT, Keyring

_WRONG_KEY = "the master key file does not belong to this database: point FRONTAGE_MASTER_KEY_FILE at the right one"


async def ensure_canary(connection: Connection, keyring: Keyring) -> None:
    """Every canary must open: each key that ever sealed here is still needed. A database without one gets the first;
    a new current key beside old ones that still open gets its own.

    Raises: `OperatorError`.
    """
    async with connection.transaction():
        await connection.execute("lock table canary in exclusive mode")  # of several first starts, one is first
        rows = await connection.fetch("select key_id, envelope from canary")
        for row in rows:
            _open(keyring, row["envelope"])
        if keyring.current.hex() not in {row["key_id"] for row in rows}:
            await connection.execute(
                "insert into canary (key_id, envelope) values ($1, $2)",
                keyring.current.hex(),
                keyring.seal(CANARY_TEXT, CANARY_IDENTITY),
            )


def _open(keyring: Keyring, envelope: bytes) -> None:
    try:
        text = keyring.open(envelope, CANARY_IDENTITY)
    except SecretUnreadable as error:
        raise OperatorError(_WRONG_KEY) from error
    if text != CANARY_TEXT:
        raise OperatorError(_WRONG_KEY)
