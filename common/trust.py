"""The trust store for connections to certificate authorities: the system's roots and the operator's own."""

from __future__ import annotations

import ssl

from common.errors import OperatorError
from common.settings import Settings


def authority_trust(settings: Settings) -> ssl.SSLContext:
    """Return the TLS context for connections to certificate authorities.

    Raises: `OperatorError` if the operator's file of roots cannot be used.
    """
    context = ssl.create_default_context()
    if settings.acme_ca_file is not None:
        try:
            context.load_verify_locations(cafile=settings.acme_ca_file)
        except OSError as error:  # ssl.SSLError is one
            why = "it holds no certificates" if isinstance(error, ssl.SSLError) else error.strerror
            raise OperatorError(f"FRONTAGE_ACME_CA_FILE: cannot use {settings.acme_ca_file}: {why}") from error
    return context
