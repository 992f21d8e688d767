"""Which servers are trusted: by the system's roots, and certificate authorities by the operator's own too."""

from __future__ import annotations

import ssl

from common.errors import OperatorError
from common.settings import Settings


def verifying_context() -> ssl.SSLContext:
    """Return the TLS context of a client that verifies servers by the system's roots.

    From Python 3.13 on, its default refuses what RFC 5280 wants of a certificate's form, too, which private authorities
    often break; what is trusted must not depend on the version.
    """
    context = ssl.create_default_context()
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def authority_trust(settings: Settings) -> ssl.SSLContext:
    """Return the TLS context for connections to certificate authorities.

    Raises: `OperatorError` if the operator's file of roots cannot be used.
    """
    context = verifying_context()
    if settings.acme_ca_file is not None:
        try:
            context.load_verify_locations(cafile=settings.acme_ca_file)
        except OSError as error:  # ssl.SSLError is one
            why = "it holds no certificates" if isinstance(error, ssl.SSLError) else error.strerror
            raise OperatorError(f"FRONTAGE_ACME_CA_FILE: cannot use {settings.acme_ca_file}: {why}") from error
    return context
