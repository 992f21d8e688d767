"""The interface of issuers. An issuer receives a domain and a signing request, never a key, a row or a lease.

State that must outlive the process goes through the caller's `Journal`, one for each attempt.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from cryptography import x509

from monitor.certificates.phases import Phases
from monitor.claims import WorkFailed

FailureKind = Literal["rate_limited", "caa", "validation", "unavailable", "other"]
"""Of a failed order: too many (the CA's word or our own ledger's), the DNS forbids it, the CA could not validate the
domain, the CA or the DNS could not be asked, and the rest. All but ``validation`` let the next issuer have a try."""


ChallengeKind = Literal["http-01", "dns-01"]
"""How a CA validates a domain (RFC 8555 §8): at the edges it leads to, or in the zone its challenge is delegated to."""


class IssuanceFailed(WorkFailed):
    """The issuer did not give a certificate; the text is for the domain's owner, in plain words."""

    def __init__(self, words: str, *, retry_after_seconds: float = 0.0, kind: FailureKind = "other") -> None:
        super().__init__(words, retry_after_seconds=retry_after_seconds)
        self.kind: FailureKind = kind
        self.is_open = False
        """Whether the order stands at the CA, to be carried on there and nowhere else."""


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate chain (PEM, leaf first) and its issuer.

    `issuer` is the value of ``certificates.issuer``: ``internal``, or the URL of an ACME directory.
    """

    issuer: str
    chain: str


@dataclass(frozen=True, slots=True)
class Placed:
    """An order that a CA has accepted, with the URL at which the same account and signing key find it again."""

    issuer: str
    url: str
    placed_at: datetime


class Journal(Protocol):
    """Durable notes of one attempt. Each method returns once its note is durable; they are called in this order.

    All raise `FenceLost` when another worker holds the order; the CA is then asked nothing more.
    """

    @property
    def placed(self) -> Placed | None:
        """Return the order that an earlier attempt placed for the same signing key; None to begin a new one."""

    @property
    def ways(self) -> Sequence[ChallengeKind]:
        """Return the kinds of challenge that may be answered in this attempt, the best first; at least one."""

    async def publish_challenges(self, values: Collection[str]) -> None:
        """Have these TXT values answered where the domain's challenge is delegated to."""

    async def reserve(self, issuer: str, *, is_exempt: bool = False) -> None:
        """Count an order that is about to be placed, unless the CA does not count it (a renewal with ``replaces``).

        Raises: `IssuanceFailed` (rate_limited).
        """

    async def give_back(self, issuer: str) -> None:
        """Give back a reservation for which the CA certainly made no order."""

    async def record_placed(self, placed: Placed) -> None:
        """Store the order and the request's key: from now on the CA may issue a certificate that needs both."""

    async def record_failed_validation(self, placed: Placed) -> None:
        """Count a failed validation, as the CA does. Idempotent for each order."""


@dataclass(frozen=True, slots=True)
class RenewalWindow:
    """The window in which the CA suggests renewing (RFC 9773 §4.2), and when to ask it again."""

    start: datetime
    end: datetime
    ask_again_seconds: float


class Issuer(Protocol):
    """Issues certificates and revokes them."""

    async def issue(
        self,
        domain: str,
        request: x509.CertificateSigningRequest,
        phases: Phases,
        journal: Journal,
        *,
        replaces: Issued | None = None,
    ) -> Issued:
        """Issue a chain for the request's key and for `domain` alone, and time the phases of it.

        May be called again for an order whose worker died: with the same request and its journal's notes that order is
        continued, else a new one is placed; a lost order never leads to a second certificate. `replaces` is the
        certificate that a renewal takes the place of.

        Raises: `IssuanceFailed`; what the journal raises.
        """

    async def renewal_window(self, issued: Issued) -> RenewalWindow | None:
        """Return the window in which to renew; None where the CA suggests none.

        It begins at the present moment where the certificate's issuer is no longer configured.

        Raises: `IssuanceFailed`.
        """

    async def revoke(self, issued: Issued, reason: int) -> None:
        """Have its issuer revoke it (RFC 5280 §5.3.1); one that is revoked already is no failure.

        Raises: `IssuanceFailed`.
        """
