"""Several issuers in the operator's order, as one issuer.

The first that the domain's CAA records allow has the order; where it is unavailable, has had too many orders or
refuses, the next has a try. Not so when the domain itself could not be validated (the next would fail as well), nor
while an order stands at the CA that may still become a certificate: there must be one, not two.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Final

from cryptography import x509

from common import caa
from common.caa import Authorization
from common.clock import Clock
from common.logs import get_logger
from monitor.certificates.acme.issuer import AcmeIssuer
from monitor.certificates.internal import InternalIssuer
from monitor.certificates.issuer import ChallengeKind, IssuanceFailed, Issued, Journal, Placed, RenewalWindow
from monitor.certificates.phases import Phases

_log = get_logger("monitor.certificates.issuers")

_REPLACED_WITHIN: Final = timedelta(days=1)


class Issuers:
    """Several issuers in the operator's order, at least one. Created by `open_acme`; `look_up` asks the DNS afresh."""

    def __init__(
        self, issuers: Sequence[AcmeIssuer], look_up: Callable[[str], Awaitable[Authorization]], clock: Clock
    ) -> None:
        self._issuers = tuple(issuers)
        self._look_up = look_up
        self._clock = clock

    async def issue(
        self,
        domain: str,
        request: x509.CertificateSigningRequest,
        phases: Phases,
        journal: Journal,
        *,
        replaces: Issued | None = None,
    ) -> Issued:
        """Issue from the first CA that the domain's CAA records allow and that does not fail.

        Raises: `IssuanceFailed`; what the journal raises.
        """
        with phases.timed("checks"):
            authorization = await self._find_authorization(domain)
        failures: list[IssuanceFailed] = []
        for issuer in self._by_preference(journal.placed):
            try:
                with phases.timed("checks"):
                    ways = await _find_allowed_ways(authorization, issuer, domain, journal.ways)
                return await issuer.issue(domain, request, phases, journal, ways, replaces=replaces)
            except IssuanceFailed as failure:
                if failure.kind == "validation" or failure.is_open:
                    raise
                _log.warning(
                    "the CA issued no certificate", domain=domain, authority=issuer.authority, reason=str(failure)
                )
                failures.append(failure)
        raise _combine(failures)

    async def renewal_window(self, issued: Issued) -> RenewalWindow | None:
        """Return the window that the certificate's own issuer suggests.

        It begins at the present moment for an issuer that is no longer configured.

        Raises: `IssuanceFailed`.
        """
        for issuer in self._issuers:
            if issuer.name == issued.issuer:
                return await issuer.renewal_window(issued)
        # Issued before a public CA was configured, by a staging CA, or by a CA that is no longer configured.
        now = self._clock.now()
        return RenewalWindow(now, now + _REPLACED_WITHIN, _REPLACED_WITHIN.total_seconds())

    async def revoke(self, issued: Issued, reason: int) -> None:
        """Have the certificate's own issuer revoke it.

        The internal authority, which issues for tests, publishes no revocations.

        Raises: `IssuanceFailed`, also when that issuer is no longer configured.
        """
        if issued.issuer == InternalIssuer.name:
            return None
        for issuer in self._issuers:
            if issuer.name == issued.issuer:
                return await issuer.revoke(issued, reason)
        raise IssuanceFailed(f"{issued.issuer} is no issuer of ours any more: FRONTAGE_ACME_DIRECTORY names them")

    async def _find_authorization(self, domain: str) -> Authorization:
        """Find the CAA records of the domain.

        Raises: `IssuanceFailed` when the DNS could not be asked.
        """
        authorization = await self._look_up(domain)
        if not authorization.is_known:
            raise IssuanceFailed(
                f"the CAA records of {authorization.name} could not be looked up ({authorization.outcome})",
                kind="unavailable",
            )
        return authorization

    def _by_preference(self, placed: Placed | None) -> list[AcmeIssuer]:
        """Return the issuers in the operator's order, but first the one at which an order already stands."""
        return sorted(self._issuers, key=lambda issuer: placed is None or issuer.name != placed.issuer)


async def _find_allowed_ways(
    authorization: Authorization, issuer: AcmeIssuer, domain: str, ways: Sequence[ChallengeKind]
) -> list[ChallengeKind]:
    """Return the ways of validation by which the domain's CAA records let the issuer issue.

    Raises: `IssuanceFailed` where there are none.
    """
    if not authorization.records:
        return [*ways]
    identity = await issuer.identify()
    is_wildcards = authorization.is_wildcards
    given = authorization.records, identity.names, identity.account_url
    found = [way for way in ways if caa.may_issue(*given, way, is_wildcards=is_wildcards)]
    if not found:
        allowed = ", ".join(caa.list_allowed_cas(authorization)) or "no authority"
        raise IssuanceFailed(
            f"the CAA records of {authorization.name} let {allowed} issue, and not"
            f" {identity.names[0] if identity.names else issuer.authority} for {domain}",
            kind="caa",
        )
    return found


def _combine(failures: Sequence[IssuanceFailed]) -> IssuanceFailed:
    """Combine the failures of all issuers. The kind is the one that may pass first; a CAA refusal never does."""
    soonest = min(failures, key=lambda failure: (failure.kind == "caa", failure.retry_after_seconds))
    words = "; ".join(dict.fromkeys(str(failure) for failure in failures))
    return IssuanceFailed(words, kind=soonest.kind, retry_after_seconds=soonest.retry_after_seconds)
