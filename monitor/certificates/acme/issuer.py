"""One CA as an issuer: places or finds an order, has it carried on, and translates what went wrong.

An order is placed at most once per attempt and only after the journal has reserved it; it is finalized only after the
journal has recorded it. So after a crash at any step the CA has issued at most one certificate that is not stored yet,
and the next attempt finds it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Final

from acme import messages
from cryptography import x509

from common.clock import Clock
from common.db.acme_accounts import Identity
from common.logs import get_logger
from monitor.certificates.acme.account import AcmeAccount
from monitor.certificates.acme.orders import NewOrder, OrderCourse
from monitor.certificates.acme.problems import AcmeProblem, failure
from monitor.certificates.acme.renewal_information import certificate_id, read_window
from monitor.certificates.acme.transport import CaResponse, Transport, Unavailable
from monitor.certificates.issuer import ChallengeKind, IssuanceFailed, Issued, Journal, Placed, RenewalWindow
from monitor.certificates.phases import Phases

_log = get_logger("monitor.certificates.acme")

# How long an order that a CA has taken is kept to, while that CA cannot be asked: issuing elsewhere meanwhile might
# make two certificates, waiting for ever none.
_CONTINUED_FOR: Final = timedelta(minutes=10)
_REPLACING_REFUSED: Final = frozenset({"alreadyReplaced", "malformed", "unauthorized"})


class AcmeIssuer:
    """One CA as an issuer. Created and closed by `open_acme`."""

    def __init__(
        self,
        transport: Transport,
        account: AcmeAccount,
        clock: Clock,
        *,
        before_validation: Callable[[], Awaitable[None]],
        profile: str | None = None,
    ) -> None:
        """Create the issuer.

        `before_validation` returns once every edge knows the running orders, or after a time-out. `profile` is ordered
        where the CA offers it.
        """
        self.name = transport.directory_url
        self._transport = transport
        self._account = account
        self._clock = clock
        self._before_validation = before_validation
        self._profile = profile

    @property
    def authority(self) -> str:
        """Return the CA's host name, for people."""
        return self._transport.authority

    async def identify(self) -> Identity:
        """Return the account at the CA, registered if there is none, and the CA's CAA names.

        Raises: `IssuanceFailed`, `DatabaseUnavailable`.
        """
        return await self._account.identity()

    async def issue(
        self,
        domain: str,
        request: x509.CertificateSigningRequest,
        phases: Phases,
        journal: Journal,
        ways: Sequence[ChallengeKind],
        *,
        replaces: Issued | None = None,
    ) -> Issued:
        """Issue a certificate as `Issuer.issue` describes, validated in one of `ways`.

        A failure has `is_open` set when the order stands at the CA and is to be continued there.
        """
        with phases.timed("order"):
            await self._account.refresh()
            found = await self._find(domain, journal.placed, phases)
            course, order, placed = found or await self._place(domain, phases, journal, replaces)
        try:
            return Issued(self.name, await course.finish(order, request, ways, journal.publish_challenges))
        except IssuanceFailed as error:
            if error.kind in ("validation", "caa"):
                await journal.record_failed_validation(placed)
            error.is_open = error.kind in ("unavailable", "rate_limited") and self._must_continue(placed)
            raise

    async def renewal_window(self, issued: Issued) -> RenewalWindow | None:
        """Return the window in which the CA suggests renewing, or None where it suggests none.

        Raises: `IssuanceFailed`.
        """
        base = (await self._transport.directory()).to_partial_json().get("renewalInfo")
        if issued.issuer != self.name or base is None:
            return None
        try:
            if x509.load_pem_x509_certificate(issued.chain.encode("ascii")).not_valid_after_utc < self._clock.now():
                return None  # RFC 9773 §4.3: renewal information is not requested for those
            url = f"{base.rstrip('/')}/{certificate_id(issued.chain)}"
            return read_window(await self._transport.get(url))
        except AcmeProblem as problem:
            raise failure(problem, self.authority) from problem
        except ValueError as error:
            raise self._transport.unreadable("renewal window") from error

    async def revoke(self, issued: Issued, reason: int) -> None:
        """Revoke the certificate at the CA; one that is already revoked is no failure.

        Raises: `IssuanceFailed`.
        """
        directory = await self._transport.directory()
        await self._account.refresh()
        leaf = x509.load_pem_x509_certificate(issued.chain.encode("ascii"))
        revocation = messages.Revocation(certificate=leaf, reason=reason)
        try:
            await self._transport.post(directory["revokeCert"], revocation, account_url=await self._account.url())
        except KeyError as error:
            raise IssuanceFailed(f"{self.authority} does not revoke certificates") from error
        except AcmeProblem as problem:
            if problem.code != "alreadyRevoked":
                raise failure(problem, self.authority) from problem
        _log.info("certificate is revoked", authority=self.authority, serial=f"{leaf.serial_number:x}", reason=reason)

    async def _find(
        self, domain: str, placed: Placed | None, phases: Phases
    ) -> tuple[OrderCourse, messages.Order, Placed] | None:
        """Return the order of an earlier attempt, if it can still succeed."""
        if placed is None or placed.issuer != self.name:
            return None
        course = await self._course(placed.url, domain, phases)
        try:
            order = await course.fetch()
        except AcmeProblem as problem:
            _log.info("an order is gone: a new one is placed", domain=domain, reason=str(problem))
            return None
        except IssuanceFailed as error:
            error.is_open = self._must_continue(placed)
            raise
        return None if order.status == messages.STATUS_INVALID else (course, order, placed)

    async def _place(
        self, domain: str, phases: Phases, journal: Journal, replaces: Issued | None
    ) -> tuple[OrderCourse, messages.Order, Placed]:
        """Place a new order at the CA and record it in the journal."""
        directory = await self._transport.directory()
        await self._account.url()  # what can fail without an order fails before one is reserved
        try:
            answer = await self._new_order(directory, domain, journal, self._predecessor(directory, replaces))
        except AcmeProblem as problem:
            raise failure(problem, self.authority) from problem
        if not answer.url:
            raise self._transport.unreadable("new order")
        course = await self._course(answer.url, domain, phases)
        placed = Placed(self.name, answer.url, self._clock.now())
        await journal.record_placed(placed)
        return course, course.read(answer), placed

    async def _new_order(
        self, directory: messages.Directory, domain: str, journal: Journal, predecessor: str | None
    ) -> CaResponse:
        """Request a new order; once more with a new account, or without `replaces`, where the CA refuses either.

        A refused request leaves no order at the CA.

        Raises: `AcmeProblem`, `IssuanceFailed`.
        """
        account_url = await self._account.url()
        try:
            return await self._reserved_order(directory, domain, journal, account_url, predecessor)
        except AcmeProblem as problem:
            if problem.code == "accountDoesNotExist":
                self._account.forget(account_url)
            elif predecessor is not None and problem.code in _REPLACING_REFUSED:
                predecessor = None  # RFC 9773 §5: `replaces` is optional; retry without it
            else:
                raise
        return await self._reserved_order(directory, domain, journal, await self._account.url(), predecessor)

    async def _reserved_order(
        self, directory: messages.Directory, domain: str, journal: Journal, account_url: str, predecessor: str | None
    ) -> CaResponse:
        """Reserve an order in the journal and request it; return the reservation if the CA certainly made no order."""
        identifier = messages.Identifier(typ=messages.IDENTIFIER_FQDN, value=domain)
        order = NewOrder(identifiers=[identifier], replaces=predecessor, profile=self._offered_profile())
        await journal.reserve(self.name, is_exempt=predecessor is not None)
        try:
            return await self._transport.post(
                directory["newOrder"], order, account_url=account_url, is_repeatable=False
            )
        except (AcmeProblem, Unavailable) as error:
            if isinstance(error, AcmeProblem) or not error.was_taken:
                await journal.give_back(self.name)
            raise

    async def _course(self, order_url: str, domain: str, phases: Phases) -> OrderCourse:
        account_url = await self._account.url()
        return OrderCourse(self._transport, account_url, order_url, domain, phases, self._before_validation)

    def _predecessor(self, directory: messages.Directory, replaces: Issued | None) -> str | None:
        """Return the certificate id that a renewal states as `replaces`, or None where it must not state one."""
        if replaces is None or replaces.issuer != self.name or "renewalInfo" not in directory.to_partial_json():
            return None
        try:
            return certificate_id(replaces.chain)
        except ValueError:
            return None

    def _offered_profile(self) -> str | None:
        """Return the profile to order, which is none unless the CA offers it (draft-aaron-acme-profiles §4)."""
        if self._profile is None or self._profile in self._transport.profiles:
            return self._profile
        _log.warning(
            "the CA does not offer FRONTAGE_ACME_PROFILE: its default is ordered",
            authority=self.authority,
            profile=self._profile,
            offered=sorted(self._transport.profiles),
        )
        return None

    def _must_continue(self, placed: Placed) -> bool:
        """Return whether the order is young enough to be continued instead of ordering from another CA."""
        return self._clock.now() - placed.placed_at < _CONTINUED_FOR
