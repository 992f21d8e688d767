"""Which RDAP servers there are: the list that a monitor has fetched, else the packaged one."""

from __future__ import annotations

from common.clock import Clock
from common.db import rdap_bootstrap
from common.db.pool import Database
from common.domain_check.registration import NO_SERVERS, Bootstrap, fewest_domains, packaged_bootstrap, parse_bootstrap
from common.errors import DatabaseUnavailable
from common.settings import IANA_RDAP_BOOTSTRAP

_KEPT_SECONDS = 600.0
_MISSING_SECONDS = 5.0  # as long as no monitor has fetched the list


class RdapServers:
    """The list of RDAP servers. One instance per process.

    Mutable state: the list, and when to look for it again.
    """

    def __init__(self, database: Database, source: str | None, clock: Clock) -> None:
        """`source`: the URL it is fetched from; None where RDAP is off."""
        self._database = database
        self._source = source
        self._clock = clock
        self._list = packaged_bootstrap() if source == IANA_RDAP_BOOTSTRAP else NO_SERVERS
        self._look_at = clock.monotonic()

    async def find(self) -> Bootstrap:
        """Return the list of servers; the one that was there before, where Postgres cannot be asked."""
        now = self._clock.monotonic()
        if self._source is None or now < self._look_at:
            return self._list
        self._look_at = now + _MISSING_SECONDS
        try:
            async with self._database.connection() as connection:
                content = await rdap_bootstrap.find(connection, self._source)
        except DatabaseUnavailable:
            return self._list
        if content is not None:
            self._list = parse_bootstrap(content, fewest=fewest_domains(self._source))
            self._look_at = now + _KEPT_SECONDS
        return self._list
