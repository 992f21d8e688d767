"""Issuance: one claimed order, from wanted to live on every edge.

Each step writes its outcome under the order's fence, so a monitor may die after any of them and another goes on:
before the certificate is stored it is issued again, after that only the edges are waited for. What a step raises
is the runner's to deal with (`common.claims`). Keys exist here between making and sealing, nowhere else.
"""

from __future__ import annotations

from datetime import datetime
from random import Random
from typing import Literal

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from common.claims import outlast_outage
from common.clock import Clock
from common.db import certificates, orders
from common.db.certificates import Certificate
from common.db.orders import Order
from common.db.pool import Database
from common.liveness import await_edges
from common.logs import get_logger
from common.secrets import Keyring
from monitor.certificates.issuer import IssuanceFailed, Issuer, Placed
from monitor.certificates.phases import Phases

_log = get_logger("monitor.certificates.issuance")

LIVE_WITHIN_SECONDS = 1.0
RENEWAL_FRACTION = 2 / 3
_RENEWAL_SPREAD = 0.01  # of the lifetime: domains powered together do not renew together


def next_step(order: Order) -> Literal["issue", "await edges", "renew"]:
    """What a claimed order asks for (the table is in `common.db.orders`)."""
    if order.state != "issued" or order.in_service is None:
        return "issue"
    return "renew" if order.in_service.is_live else "await edges"


def renewal_time(not_before: datetime, not_after: datetime, random: Random) -> datetime:
    fraction = RENEWAL_FRACTION + random.uniform(-_RENEWAL_SPREAD, _RENEWAL_SPREAD)
    return not_before + (not_after - not_before) * fraction


class _Forgetful:
    """A journal that keeps nothing: an order whose holder died is started over."""

    placed: Placed | None = None

    async def reserve(self, issuer: str) -> None: ...

    async def record_placed(self, placed: Placed) -> None: ...

    async def record_failed_validation(self, placed: Placed) -> None: ...


class Issuance:
    """Created by the monitor's ``__main__``; `perform` is what its runner does with a claimed order."""

    def __init__(self, database: Database, issuer: Issuer, keyring: Keyring, clock: Clock, random: Random) -> None:
        self._database = database
        self._issuer = issuer
        self._keyring = keyring
        self._clock = clock
        self._random = random

    async def perform(self, order: Order) -> None:
        step = next_step(order)
        if order.in_service is not None and step == "await edges":
            phases = Phases(self._clock, order.phases)
            valid = order.in_service.not_before, order.in_service.not_after
        else:
            phases = Phases(self._clock)
            phases.add("wait", order.waited_seconds)
            if step == "renew":
                await self._begin_renewal(order)
            certificate = await self._issue(order, phases)
            valid = certificate.not_before, certificate.not_after
        await self._await_edges(order, phases)
        await self._record_live(order, renewal_time(*valid, self._random), phases)
        _log.info("certificate is live", domain=order.domain, step=step, phases=phases.as_seconds())

    async def _begin_renewal(self, order: Order) -> None:
        async with self._database.transaction() as connection:
            await orders.record_renewal_begun(connection, order)

    async def _issue(self, order: Order, phases: Phases) -> Certificate:
        with phases.timed("key"):
            key = ec.generate_private_key(ec.SECP256R1())
            request = signing_request(order.domain, key)
        issued = await self._issuer.issue(order.domain, request, phases, _Forgetful())
        leaf = checked_leaf(issued.chain, order.domain, key)
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        certificate = Certificate(
            issuer=issued.issuer,
            chain=issued.chain,
            private_key=self._keyring.seal(secret, certificates.key_identity(order.domain)),
            not_before=leaf.not_valid_before_utc,
            not_after=leaf.not_valid_after_utc,
        )

        async def store() -> None:
            async with self._database.transaction() as connection:
                await orders.record_issued(connection, order, certificate, phases.as_seconds())

        with phases.timed("store"):
            await outlast_outage(store)
        return certificate

    async def _await_edges(self, order: Order, phases: Phases) -> None:
        """Until every edge with a lease has the certificate, or long enough: a dead edge delays nobody."""
        with phases.timed("live"):
            missing = await await_edges(self._database, self._clock, within_seconds=LIVE_WITHIN_SECONDS)
        if missing:
            _log.warning("edges did not report a certificate", domain=order.domain, edges=missing)

    async def _record_live(self, order: Order, renew_at: datetime, phases: Phases) -> None:
        async def write() -> None:
            async with self._database.transaction() as connection:
                await orders.record_live(connection, order, renew_at, phases.as_seconds())

        await outlast_outage(write)


def signing_request(domain: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateSigningRequest:
    return (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name([]))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(domain)]), critical=True)
        .sign(key, hashes.SHA256())
    )


def checked_leaf(chain: str, domain: str, key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    """The chain's leaf. An edge could not serve one for another key or name, so it never gets that far.

    Raises: `IssuanceFailed`.
    """
    try:
        leaf = x509.load_pem_x509_certificate(chain.encode("ascii"))
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound) as error:
        raise IssuanceFailed("the issuer sent something that is no certificate") from error
    if leaf.public_key() != key.public_key():
        raise IssuanceFailed("the issuer sent a certificate for another key")
    if domain not in names.get_values_for_type(x509.DNSName):
        raise IssuanceFailed("the issuer sent a certificate for another domain")
    return leaf
