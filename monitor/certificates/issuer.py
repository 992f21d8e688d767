"""What every issuer promises. An issuer sees a domain and a signing request, never a key, a row or a lease."""

from __future__ import annotations

from typing import Protocol

from cryptography import x509

from common.claims import WorkFailed
from monitor.certificates.phases import Phases


class IssuanceFailed(WorkFailed):
    """The issuer did not give a certificate; the text is for the domain's owner, in plain words."""


class Issuer(Protocol):
    @property
    def name(self) -> str:
        """What ``certificates.issuer`` says of its certificates."""

    async def issue(self, domain: str, request: x509.CertificateSigningRequest, phases: Phases) -> str:
        """A chain in PEM, leaf first, for the request's key and for `domain` alone.

        May be called again for an order whose holder died: it either finds that order or starts over. Times its
        own phases. Raises: `IssuanceFailed`.
        """
