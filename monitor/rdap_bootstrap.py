"""Refreshes the list of RDAP servers: one of the monitors fetches it once a day (RFC 9224 §3)."""

from __future__ import annotations

import asyncio

import aiohttp

from common.addresses import AddressPolicy
from common.db import rdap_bootstrap
from common.db.pool import Database
from common.dns import Resolver
from common.domain_check.rdap import get
from common.domain_check.registration import InvalidRdap, parse_bootstrap
from common.logs import get_logger

_log = get_logger("monitor.rdap_bootstrap")

_PERIOD_SECONDS = 600.0
_WITHIN_SECONDS = 30.0


class BootstrapRefresh:
    """Refreshes the list of RDAP servers. Created by `monitor.wiring`; the monitor's ``__main__`` runs `run` as a task.

    `source` is the file's URL. A file with fewer domains than `fewest` is refused.
    """

    def __init__(
        self,
        database: Database,
        resolver: Resolver,
        policy: AddressPolicy,
        source: str,
        *,
        fewest: int,
        period_seconds: float = _PERIOD_SECONDS,
    ) -> None:
        self._database = database
        self._resolver = resolver
        self._policy = policy
        self._source = source
        self._fewest = fewest
        self._period_seconds = period_seconds

    async def run(self) -> None:
        """Refresh the list when it is due, until cancelled.

        Raises: `DatabaseUnavailable`.
        """
        while True:
            async with self._database.transaction() as connection:
                is_due = await rdap_bootstrap.claim(connection, self._source)
            if is_due:
                await self._refresh()
            await asyncio.sleep(self._period_seconds)

    async def _refresh(self) -> None:
        """Fetch the list and store it; a list that cannot be fetched, or is damaged, leaves the stored one."""
        try:
            async with asyncio.timeout(_WITHIN_SECONDS):
                response = await get(self._resolver, self._policy, self._source)
            if response.status != 200:
                raise InvalidRdap(f"status {response.status}")
            parse_bootstrap(response.body, fewest=self._fewest)
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError, InvalidRdap) as error:
            _log.info("the list of RDAP servers was not refreshed", source=self._source, error=str(error))
            return
        async with self._database.transaction() as connection:
            await rdap_bootstrap.keep(connection, self._source, response.body)
