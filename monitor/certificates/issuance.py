"""Issuance: one claimed order, from wanted to live on every edge, and looked after until it is renewed.

Each step writes its outcome under the order's fence, so a monitor may die after any of them and another goes on:
before an order is placed at a CA it is started over, from then on the very order is carried on with the key kept
beside it, and once the certificate is stored only the edges are waited for. What a step raises is the runner's to
deal with (`monitor.claims`), but for a CA's limits and a lack of edges, which are no failure. Keys exist here between
making and sealing, nowhere else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from common.clock import Clock
from common.db import certificates, order_outcomes, orders, own_certificates
from common.db.ca_ledger import Limits
from common.db.certificates import Certificate
from common.db.order_queue import Order
from common.db.pool import Connection, Database
from common.db.renewal_risks import Risk
from common.errors import SecretUnreadable
from common.liveness import await_edges
from common.logs import get_logger
from common.secrets import Keyring, key_id_of
from monitor.certificates import renewal
from monitor.certificates.dns_moved_away import FindLead, IsDelegated
from monitor.certificates.issuer import ChallengeKind, IssuanceFailed, Issued, Issuer, Placed, RenewalWindow
from monitor.certificates.journal import OrderJournal, UpdateZone
from monitor.certificates.phases import Phases
from monitor.certificates.rehearsal import Rehearse, rehearse_nothing
from monitor.claims import WorkFailed, backoff_seconds, write_when_available

_log = get_logger("monitor.certificates.issuance")

LIVE_WITHIN_SECONDS = 1.0
_NO_EDGE_SECONDS = 5.0  # short: an operator who mends an edge waits for it
_DNS_UNKNOWN = "the domain's DNS could not be asked: it is asked again before a certificate is ordered"
_DNS_UNKNOWN_SECONDS = 60.0
_NOT_DELEGATED = "a wildcard's certificate needs its delegated challenge: set the CNAME record that the diagnosis shows"
_DNS_REASONS = {"past its target": orders.DNS_BYPASSES_TARGET, "elsewhere": orders.DNS_MOVED_AWAY}
_FIRST_RETURN_CHECK_SECONDS = 300.0
_LAST_RETURN_CHECK_SECONDS = 12 * 3600.0
_OWN_ENDS_SOON = timedelta(days=own_certificates.WARNED_DAYS[0])


async def _is_never_delegated(_domain: str, _application_id: str) -> bool:
    return False


class Issuance:
    """Carries out claimed orders. Created by `monitor.wiring`; its runners call `perform`."""

    def __init__(
        self,
        database: Database,
        issuer: Issuer,
        keyring: Keyring,
        clock: Clock,
        random: Random,
        *,
        find_lead: FindLead,
        is_delegated: IsDelegated = _is_never_delegated,
        test_issuer: Callable[[], Awaitable[Issuer]] | None = None,
        update_zone: UpdateZone | None = None,
        rehearse: Rehearse = rehearse_nothing,
        limits: Limits,
        on_event: Callable[[], None] = lambda: None,
    ) -> None:
        """Create the issuance; `on_event` is called after an event was recorded, to start its delivery.

        `test_issuer` returns the issuer of applications for tests; None where theirs is that of all. It may raise
        `IssuanceFailed`.
        """
        self._database = database
        self._issuer = issuer
        self._test_issuer = test_issuer
        self._keyring = keyring
        self._clock = clock
        self._random = random
        self._find_lead = find_lead
        self._is_delegated = is_delegated
        self._update_zone = update_zone
        self._rehearse = rehearse
        self._limits = limits
        self._on_event = on_event

    async def perform(self, order: Order) -> None:
        """Do the next step of a claimed order: issue, wait for the edges, renew, or set the renewal time anew.

        Raises: `WorkFailed`, `FenceLost`, `DatabaseUnavailable`.
        """
        step = renewal.next_step(order)
        phases = Phases(self._clock, order.phases if step == "await edges" else None)
        ways: Sequence[ChallengeKind] = ("dns-01",) if order.is_wildcard else ("http-01",)
        if step != "await edges":
            phases.add("wait", order.waited_seconds)
        if order.is_prepared and (step == "check renewal" or not renewal.needs_dns_check(order, step)):
            ways = ("dns-01",)  # for a new order its delegation was seen just now
        elif renewal.needs_dns_check(order, step):
            with phases.timed("checks"):
                found = await self._check_dns(order)
            if found is None:
                return
            ways = found
        if step == "check renewal":
            await self._check_renewal(order, ways)
        elif step == "await edges" and order.in_service is not None:
            await self._go_live(order, order.in_service.not_before, order.in_service.not_after, phases)
        else:
            await self._obtain(order, step, ways, phases)

    async def _obtain(self, order: Order, step: renewal.Step, ways: Sequence[ChallengeKind], phases: Phases) -> None:
        """Issue and go live, or wait for the CA's limits.

        Raises: `WorkFailed` where there is no way to validate the domain.
        """
        if not ways:
            raise WorkFailed(_NOT_DELEGATED)
        if step == "renew":
            await self._write(lambda connection: order_outcomes.record_renewal_begun(connection, order))
        try:
            certificate = await self._issue(order, ways, phases)
        except IssuanceFailed as error:
            if error.kind != "rate_limited" or not error.retry_after_seconds:
                raise
            await self._defer(order, error)
        else:
            await self._go_live(order, certificate.not_before, certificate.not_after, phases)

    async def _issue(self, order: Order, ways: Sequence[ChallengeKind], phases: Phases) -> Certificate:
        """Have the issuer issue a certificate, and store it with its sealed key."""
        with phases.timed("key"):
            key, sealed, placed = self._open_or_create_key(order)
            request = signing_request(order.domain, key)
        journal = OrderJournal(
            self._database,
            order,
            self._limits,
            renewal.urgency(order, self._clock.now()),
            self._clock.now,
            ways=ways,
            placed=placed,
            sealed_key=sealed,
            update_zone=self._update_zone,
        )
        replaces = await self._find_certificate_in_service(order)
        try:
            issuer = await self._issuer_of(order)
            issued = await issuer.issue(order.domain, request, phases, journal, replaces=replaces)
        finally:
            await journal.end_challenges()
        leaf = check_leaf(issued.chain, order.domain, key)
        serial, authority = certificates.describe_leaf(leaf)
        certificate = Certificate(
            issuer=issued.issuer,
            chain=issued.chain,
            private_key=self._reseal(order.domain, sealed),
            not_before=leaf.not_valid_before_utc,
            not_after=leaf.not_valid_after_utc,
            serial=serial,
            authority=authority,
        )
        with phases.timed("store"):
            await self._write(
                lambda connection: order_outcomes.record_issued(connection, order, certificate, phases.as_seconds())
            )
        return certificate

    async def _issuer_of(self, order: Order) -> Issuer:
        """Return the issuer of the order's application. Raises: `IssuanceFailed`."""
        return await self._test_issuer() if order.is_test and self._test_issuer is not None else self._issuer

    def _open_or_create_key(self, order: Order) -> tuple[ec.EllipticCurvePrivateKey, bytes, Placed | None]:
        """Return the order's private key, its envelope, and the order already placed for it.

        A new key is made, and no placed order returned, where there is none or its key cannot be opened.
        """
        identity = certificates.key_identity(order.domain)
        if order.placed is not None:
            try:
                key = load_pem_private_key(self._keyring.open(order.placed.key, identity), None)
            except SecretUnreadable:
                _log.error("the key of an order cannot be opened: it is started over", domain=order.domain)
            else:
                assert isinstance(key, ec.EllipticCurvePrivateKey), "no other is ever sealed under this identity"
                placed = Placed(order.placed.issuer, order.placed.url, order.placed.placed_at)
                return key, order.placed.key, placed
        key = ec.generate_private_key(ec.SECP256R1())
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return key, self._keyring.seal(secret, identity), None

    def _reseal(self, domain: str, sealed: bytes) -> bytes:
        """Seal the key under the current master key; an order may take longer than a rotation waits."""
        if key_id_of(sealed) == self._keyring.current:
            return sealed
        identity = certificates.key_identity(domain)
        return self._keyring.seal(self._keyring.open(sealed, identity), identity)

    async def _find_certificate_in_service(self, order: Order) -> Issued | None:
        """Return the certificate that is in service for the order's domain, or None."""
        if order.in_service is None:
            return None
        async with self._database.connection() as connection:
            chain = await certificates.chain_in_service(connection, order.domain)
        return None if chain is None else Issued(order.in_service.issuer, chain)

    async def _defer(self, order: Order, error: IssuanceFailed) -> None:
        """Postpone an order until the CA's limit has room, and a random pause longer."""
        pause = renewal.slot_pause_seconds(order, self._clock.now(), self._random)
        delay = error.retry_after_seconds + pause
        _log.info("order waits for a limit", domain=order.domain, seconds=round(delay), reason=str(error))
        await self._write(
            lambda connection: order_outcomes.defer(connection, order, delay_seconds=delay, words=str(error))
        )

    # Until it is renewed -----------------------------------------------------------------------------------

    async def _go_live(self, order: Order, not_before: datetime, not_after: datetime, phases: Phases) -> None:
        """Wait until every edge with a lease has the certificate, and record it as live.

        The wait lasts at most `LIVE_WITHIN_SECONDS`. While no edge can serve the certificate it is not live, and the
        order is postponed.
        """
        with phases.timed("live"):
            reach = await await_edges(self._database, self._clock, within_seconds=LIVE_WITHIN_SECONDS)
        if not reach.is_served:
            words = "no edge runs that can serve the certificate"
            _log.warning("a certificate is not served", domain=order.domain, edges=reach.labels)
            pause = self._random.uniform(0.5, 1.0) * _NO_EDGE_SECONDS
            await self._write(
                lambda connection: order_outcomes.defer(connection, order, delay_seconds=pause, words=words)
            )
            return
        if reach.behind:
            _log.warning("edges did not report a certificate", domain=order.domain, edges=reach.labels)
        renew_at = renewal.renewal_time(not_before, not_after, self._random)
        await self._write(
            lambda connection: order_outcomes.record_live(connection, order, renew_at, phases.as_seconds())
        )
        self._on_event()
        _log.info("certificate is live", domain=order.domain, kind=order.kind, phases=phases.as_seconds())

    async def _check_renewal(self, order: Order, ways: Sequence[ChallengeKind]) -> None:
        """Ask the issuer when to renew, and record that time and the time of the next question."""
        assert order.in_service is not None, "what is not in service is issued"
        window = await self._find_renewal_window(order)
        renew_at = renewal.renewal_time(
            order.in_service.not_before, order.in_service.not_after, self._random, window, order.renew_at
        )
        risk = await self._rehearse_renewal(order, ways)
        awaits_dns = order.dns_moved_away and not order.is_prepared  # of a prepared domain other work looks for it
        soon = awaits_dns or (risk is not None and not risk.counts)
        again = renewal.next_check_seconds(window, self._random, soon=soon)
        await self._write(
            lambda connection: order_outcomes.record_renewal_check(
                connection, order, renew_at, next_check_seconds=again, risk=risk
            )
        )
        self._on_event()

    async def _rehearse_renewal(self, order: Order, ways: Sequence[ChallengeKind]) -> Risk | None:
        """Return what would fail at the domain's renewal, with how often it was found; what is unknown stays.

        While a certificate of the partner's is served for long, ours is not needed, and nothing is at risk; nor is
        anything of an application for tests, whose domains no CA validates.
        """
        if order.is_test or (order.own_until is not None and order.own_until - self._clock.now() > _OWN_ENDS_SOON):
            return None
        found = await self._rehearse(order, ways or ("dns-01",))
        if found == "unknown":
            return order.risk
        if found is not None and order.risk is not None and order.risk.code == found.code:
            return replace(found, seen=order.risk.seen + 1)
        return found

    async def _find_renewal_window(self, order: Order) -> RenewalWindow | None:
        """Return the renewal window that the issuer suggests; None where it suggests none or fails."""
        in_service = await self._find_certificate_in_service(order)
        if in_service is None:
            return None
        try:
            issuer = await self._issuer_of(order)
            return await issuer.renewal_window(in_service)
        except IssuanceFailed as error:  # the lifetime is the fallback
            _log.info("the CA gave no renewal time", domain=order.domain, reason=str(error))
            return None

    async def _check_dns(self, order: Order) -> Sequence[ChallengeKind] | None:
        """Check the domain's DNS, record a change, and return the ways in which a CA can validate the domain.

        None where the DNS has moved away, unless the domain's challenge is delegated. Without an answer
        nothing changes; a first certificate for which a check was requested waits, since the DNS of an imported name
        was never asked.

        Raises: `WorkFailed` for such a name.
        """
        lead = await self._find_lead(order.domain, order.application_id)
        is_delegated = order.label is not None and await self._is_delegated(order.domain, order.application_id)
        if lead is None and order.is_recheck and order.kind == "new" and order.in_service is None:
            raise WorkFailed(_DNS_UNKNOWN, retry_after_seconds=_DNS_UNKNOWN_SECONDS)
        if lead == "here" or (lead is None and not order.dns_moved_away):
            if order.dns_moved_away:
                await self._write(lambda connection: order_outcomes.record_dns_returned(connection, order))
                self._on_event()
            return renewal.order_ways(order, leads_here=True, is_delegated=is_delegated)
        reason = None if lead is None else _DNS_REASONS[lead]
        if is_delegated:
            await self._write(lambda connection: order_outcomes.record_dns_left(connection, order, reason))
            self._on_event()
            return renewal.order_ways(order, leads_here=False, is_delegated=True)
        again = backoff_seconds(
            order.attempts, self._random, first=_FIRST_RETURN_CHECK_SECONDS, longest=_LAST_RETURN_CHECK_SECONDS
        )
        await self._write(
            lambda connection: order_outcomes.record_dns_moved_away(connection, order, reason, next_check_seconds=again)
        )
        self._on_event()
        _log.info(
            "the domain's DNS has moved away", domain=order.domain, leads=lead, looked_again_in_seconds=round(again)
        )
        return None

    async def _write(self, write: Callable[[Connection], Awaitable[None]]) -> None:
        await write_when_available(self._database, write)


def signing_request(domain: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateSigningRequest:
    """Create a signing request for the domain."""
    return (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name([]))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(domain)]), critical=True)
        .sign(key, hashes.SHA256())
    )


def check_leaf(chain: str, domain: str, key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    """Return the chain's leaf after checking that it is for this key and domain.

    An edge could not serve one for another key or name.

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
