"""Changes the key of our ACME accounts at every CA (RFC 8555 §7.3.5), where an operator has asked for it.

Rules
    every CA can be asked before the next key is made; it is stored before any CA is asked to take it
    orders that run then have the same seconds to end, whichever monitor goes on
    meanwhile no order is placed or continued, since edges answer challenges by the thumbprint of one key
    a CA is asked whether it knows the next key first: so a monitor may die at any step, and several may do this at once
    the key is put in place once every CA has taken it
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from common.db import acme_accounts
from common.db.acme_accounts import Rollover
from common.db.pool import Database
from common.errors import DatabaseUnavailable, OperatorError
from common.logs import get_logger
from common.secrets import Keyring
from monitor.certificates.acme.account import AcmeAccount, new_key, open_key, open_sealed
from monitor.certificates.issuer import IssuanceFailed

_log = get_logger("monitor.certificates.acme")

_PERIOD_SECONDS: Final = 2.0
ORDERS_END_SECONDS: Final = 10.0


class KeyRollover:
    """Changes the key when it is requested. One instance per process; `open_acme` runs it as a task."""

    def __init__(
        self,
        database: Database,
        keyring: Keyring,
        accounts: Sequence[AcmeAccount],
        *,
        orders_end_seconds: float = ORDERS_END_SECONDS,
    ) -> None:
        """Prepare to run. `orders_end_seconds`: how long orders that run may go on with the key so far."""
        self._database = database
        self._keyring = keyring
        self._accounts = accounts
        self._orders_end_seconds = orders_end_seconds

    async def run(self) -> None:
        """Look for requests, until cancelled."""
        while True:
            with suppress(DatabaseUnavailable, IssuanceFailed):  # logged by what claims orders
                await self.roll_if_requested()
                for account in self._accounts:
                    await account.read_key()
            await asyncio.sleep(_PERIOD_SECONDS)

    async def roll_if_requested(self) -> None:
        """Change the key if that is requested; what keeps it from going on is stored. Raises: `DatabaseUnavailable`."""
        rollover = await self._find()
        if rollover is None:
            return
        try:
            await self._roll(rollover)
        except (IssuanceFailed, OperatorError) as error:
            _log.warning("the key of the ACME accounts cannot be changed yet", reason=str(error))
            async with self._database.connection() as connection:
                await acme_accounts.record_rollover_error(connection, str(error))

    async def _roll(self, rollover: Rollover) -> None:
        if rollover.key is None:
            for account in self._accounts:
                await account.find_key_change()
            async with self._database.transaction() as connection:
                await acme_accounts.keep_next_key(connection, new_key(self._keyring))
            made = await self._find()
            if made is None or made.key is None:  # another monitor was faster, or an operator cancelled it
                return
            rollover = made
        assert rollover.key is not None, "it was made"
        await asyncio.sleep(max(0.0, self._orders_end_seconds - rollover.made_seconds))
        old, new = await open_key(self._database, self._keyring), open_sealed(rollover.key, self._keyring)
        for account in self._accounts:
            await account.roll(old, new)
        async with self._database.transaction() as connection:
            await acme_accounts.finish_rollover(connection, rollover.key.thumbprint)
        _log.info("the key of the ACME accounts is changed", thumbprint=rollover.key.thumbprint)

    async def _find(self) -> Rollover | None:
        async with self._database.connection() as connection:
            return await acme_accounts.find_rollover(connection)
