"""Certificates that partners bring: stored, requested with a key of ours, shown, and given back.

Foreign bytes are read in a thread. Keys are sealed before they are stored, and never shown.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Literal

from api.errors import CERTIFICATE_UNUSABLE, NO_OWN_CERTIFICATE, NOT_ENROLLED, Refused
from api.notices import Notice
from api.rules import certificate_files
from api.rules.certificate_files import CertificateUnusable, CheckedCertificate, Key
from api.services.enrolment import reach_edges
from common.clock import Clock
from common.db import audit, certificates, domains, own_certificates
from common.db.own_certificates import CertificateRequest, OwnCertificate
from common.db.pool import Database
from common.db.session import Connection
from common.enrolment import changes
from common.names import DomainName
from common.secrets import Keyring


@dataclass(frozen=True, slots=True)
class ShownCertificate:
    """What visitors get at a domain. `stands_by`: beside one of the partner's, ours is ready."""

    domain: str
    source: Literal["own", "ours"] | None
    served: CheckedCertificate | OwnCertificate | None
    is_live: bool
    stands_by: bool
    request: CertificateRequest | None


@dataclass(frozen=True, slots=True)
class OwnCertificateService:
    """Certificates that partners bring. One instance per process; each call takes the caller's application."""

    database: Database
    keyring: Keyring
    clock: Clock

    async def show(self, application_id: str, name: DomainName) -> ShownCertificate:
        """Return the certificate that visitors get, and an open request. Raises: `Refused`."""
        now = self.clock.now()
        async with self.database.connection() as connection:
            await _require_held(connection, application_id, name)
            own = await own_certificates.find(connection, name.text)
            request = await own_certificates.find_request(connection, name.text, application_id)
            ours = await certificates.describe(connection, name.text)
            chain = await certificates.chain_in_service(connection, name.text)
        is_ours_live = ours is not None and ours.live_at is not None and ours.not_after > now
        if own is not None:
            is_live = own.not_after > now
            return ShownCertificate(name.text, "own", own, is_live, is_ours_live, request)
        if chain is None:
            return ShownCertificate(name.text, None, None, is_live=False, stands_by=False, request=request)
        try:
            served = await asyncio.to_thread(certificate_files.describe_leaf, chain)
        except ValueError:
            served = None
        return ShownCertificate(name.text, "ours", served, is_ours_live, stands_by=False, request=request)

    async def request(self, application_id: str, name: DomainName) -> CertificateRequest:
        """Return the open request for the domain, made now where there is none. Raises: `Refused`."""
        async with self.database.transaction() as connection:
            await certificates.lock_domain(connection, name.text)
            await _require_held(connection, application_id, name)
            found = await own_certificates.find_request(connection, name.text, application_id)
            if found is None:
                text, secret = certificate_files.make_request(name.text)
                sealed = self.keyring.seal(secret, certificates.key_identity(name.text))
                await own_certificates.add_request(
                    connection, name.text, application_id, request=text, private_key=sealed
                )
                await audit.record(connection, "certificate.request", name.text, application_id=application_id)
                found = await own_certificates.find_request(connection, name.text, application_id)
        assert found is not None, "it has just been stored under the domain's lock"
        return found

    async def bring(
        self, application_id: str, name: DomainName, certificate: str, private_key: str | None
    ) -> list[Notice]:
        """Serve the domain with this certificate; without a key, with that of the open request.

        Waits a moment for the edges; returns a notice where one does not serve it yet. Raises: `Refused`.
        """
        try:
            key = None if private_key is None else await asyncio.to_thread(certificate_files.read_key, private_key)
            await self._bring(application_id, name, certificate, key)
        except CertificateUnusable as error:
            raise Refused(CERTIFICATE_UNUSABLE, code=error.code, hint=str(error)) from error
        return await reach_edges(self.database, self.clock)

    async def _bring(self, application_id: str, name: DomainName, certificate: str, key: Key | None) -> None:
        """Check and store. Raises: `Refused`, `CertificateUnusable`."""
        now = self.clock.now()
        async with self.database.connection() as connection:
            await _require_held(connection, application_id, name)
            open_request = await own_certificates.find_request(connection, name.text, application_id)
        if key is None and open_request is None:
            words = "send the private key too, or make a request first: POST /domains/:domain/certificate/request"
            raise CertificateUnusable("key_needed", words)
        request = open_request.request if key is None and open_request is not None else None
        checked = await asyncio.to_thread(
            certificate_files.check_certificate, certificate, name.text, now, key=key, request=request
        )
        sealed = None
        if key is not None:
            sealed = self.keyring.seal(certificate_files.key_pem(key), certificates.key_identity(name.text))
        own = OwnCertificate(
            name.text,
            application_id,
            checked.issuer,
            checked.serial,
            checked.names,
            checked.not_before,
            checked.not_after,
            stored_at=now,
        )
        async with self.database.transaction() as connection:
            await certificates.lock_domain(connection, name.text)
            await _require_held(connection, application_id, name)
            if sealed is None and await own_certificates.find_request(connection, name.text, application_id) != (
                open_request
            ):
                words = "the open request has changed meanwhile: read it again, and have that one signed"
                raise CertificateUnusable("certificate_key_mismatch", words)
            await changes.keep_own_certificate(connection, own, chain=checked.chain, private_key=sealed)

    async def remove(self, application_id: str, name: DomainName) -> list[Notice]:
        """Serve the domain with our certificate again, and forget an open request. Raises: `Refused`."""
        async with self.database.transaction() as connection:
            await certificates.lock_domain(connection, name.text)
            await _require_held(connection, application_id, name)
            if not await changes.end_own_certificate(connection, name.text, application_id):
                raise Refused(NO_OWN_CERTIFICATE, hint="ours is served already, and renews itself")
        return await reach_edges(self.database, self.clock)


async def _require_held(connection: Connection, application_id: str, name: DomainName) -> None:
    """Refuse a name that the application does not hold. Raises: `Refused`."""
    if not any(each.application_id == application_id for each in await domains.find(connection, name.text)):
        raise Refused(NOT_ENROLLED, hint=f"{name} is not enrolled by this application: POST /power or /ssl first")
