"""The key of our ACME accounts, changed by an operator; monitors do the work (`monitor.certificates.acme.rollover`)."""

from __future__ import annotations

from dataclasses import dataclass

from api.rights import Rights
from common.accounts import Permission
from common.db import acme_accounts, audit
from common.db.pool import Database
from common.errors import OperatorError


@dataclass(frozen=True, slots=True)
class AccountKeyService:
    """Requests another account key, with an operator's rights. One instance per process or command."""

    database: Database

    async def request(self, rights: Rights) -> None:
        """Request another key; a request that stands stays. Raises: `Refused`, `OperatorError`."""
        rights.require_operator(Permission.OWN)
        async with self.database.transaction() as connection:
            if not await acme_accounts.has_key(connection):
                raise OperatorError("there is no ACME account yet: a monitor with FRONTAGE_ISSUER=acme makes one")
            await acme_accounts.request_rollover(connection)
            await audit.record(connection, "certificate.roll_account_key", "certificates")

    async def cancel(self, rights: Rights) -> None:
        """Withdraw the request while no CA was asked. Raises: `Refused`, `OperatorError`."""
        rights.require_operator(Permission.OWN)
        async with self.database.transaction() as connection:
            if not await acme_accounts.cancel_rollover(connection):
                raise OperatorError("no change of the account key can be withdrawn: none waits for its first CA")
            await audit.record(connection, "certificate.keep_account_key", "certificates")

    async def look(self, rights: Rights) -> tuple[bool, str | None]:
        """Return whether a change is requested, and what has kept it from going on. Raises: `Refused`."""
        rights.require_operator(Permission.VIEW)
        async with self.database.connection() as connection:
            return await acme_accounts.find_rollover_error(connection)
