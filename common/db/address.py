"""Finds the database's address: the setting, or else the embedded server. Opens no connection."""

from __future__ import annotations

from common.errors import OperatorError
from common.postgres import running_dsn
from common.settings import Settings


def resolve_dsn(settings: Settings) -> str:
    """Return FRONTAGE_DATABASE_URL, or the DSN of the embedded server that runs on this state directory.

    Raises: `OperatorError`.
    """
    dsn = settings.database_url or running_dsn(settings.state_dir)
    if dsn is None:
        raise OperatorError(
            f"no database: set FRONTAGE_DATABASE_URL, or start `frontage up` (none runs on {settings.state_dir})"
        )
    return dsn
