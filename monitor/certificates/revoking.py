"""Revoking: sends one claimed revocation to the issuer of the certificate (RFC 8555 §7.6)."""

from __future__ import annotations

from common.db import revocations
from common.db.pool import Database
from common.db.revocations import Revocation
from common.logs import get_logger
from monitor.certificates.issuer import Issued, Issuer
from monitor.claims import write_when_available

_log = get_logger("monitor.certificates.revoking")


class Revoking:
    """Carries out claimed revocations. Created by `monitor.wiring`; its runner calls `perform`."""

    def __init__(self, database: Database, issuer: Issuer) -> None:
        self._database = database
        self._issuer = issuer

    async def perform(self, revocation: Revocation) -> None:
        """Revoke the certificate at its issuer and record that.

        The request is idempotent, so a crash in between does no harm.

        Raises: `IssuanceFailed`, `FenceLost`, `DatabaseUnavailable`.
        """
        await self._issuer.revoke(Issued(revocation.issuer, revocation.chain), revocation.reason)
        await write_when_available(
            self._database, lambda connection: revocations.record_revoked(connection, revocation)
        )
        _log.info("certificate is revoked", domain=revocation.domain, reason=revocation.reason)
