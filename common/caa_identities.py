"""What the CAs that may issue our certificates call themselves in CAA records, as far as monitors have asked them."""

from __future__ import annotations

from typing import TypeAlias

from common.db import acme_accounts
from common.db.pool import Database
from common.settings import Settings

Identities: TypeAlias = tuple[tuple[tuple[str, ...], str | None], ...]
"""For each CA its names, and the URL of our account there."""


async def find_identities(database: Database, settings: Settings) -> Identities:
    """Find what each configured CA calls itself in CAA records, and our account there.

    Raises: `DatabaseUnavailable`.
    """
    unknown = (settings.acme_caa_identities, None)
    if not settings.acme_directory:
        return (unknown,)
    async with database.connection() as connection:
        found = [await acme_accounts.find_identity(connection, each) for each in settings.acme_directory]
    return tuple((each.names, each.account_url) if each is not None else unknown for each in found)
