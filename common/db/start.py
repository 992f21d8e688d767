"""Checks a database before a role uses it: its schema, and whether the master keys open its secrets.

From then on the role logs outages of the database.
"""

from __future__ import annotations

from common.db.outages import log_outages
from common.db.pool import Database
from common.db.schema import check_schema
from common.db.secrets_canary import ensure_canary
from common.errors import DatabaseUnavailable, OperatorError
from common.secrets import Keyring


async def check_start(database: Database, keyring: Keyring) -> None:
    """Refuse a database that the role cannot start with, and log outages of it from then on.

    Raises: `OperatorError`, also when the database does not answer: a role starts only with a database.
    """
    try:
        async with database.transaction() as connection:
            await check_schema(connection)
            await ensure_canary(connection, keyring)
    except DatabaseUnavailable as error:
        raise OperatorError(error.for_operator) from error
    log_outages()
