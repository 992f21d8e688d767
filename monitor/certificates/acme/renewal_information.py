"""Reads when a CA suggests renewing a certificate (ARI, RFC 9773)."""

from __future__ import annotations

from typing import Final

from acme import messages
from cryptography import x509
from josepy.errors import DeserializationError
from josepy.json_util import encode_b64jose

from monitor.certificates.acme.transport import CaResponse
from monitor.certificates.issuer import RenewalWindow

_SHORTEST_SECONDS: Final = 60.0  # §4.3.2: between a minute and a day, whatever the CA asks for
_LONGEST_SECONDS: Final = 86_400.0
_DEFAULT_SECONDS: Final = 6 * 3600.0


def certificate_id(chain: str) -> str:
    """Return the certificate's identifier (RFC 9773 §4.1).

    It joins the authority key identifier of the leaf and its serial number as DER encodes it.

    Raises: ValueError when the chain cannot be parsed, or its leaf names no authority's key.
    """
    leaf = x509.load_pem_x509_certificate(chain.encode("ascii"))
    try:
        authority = leaf.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier
    except x509.ExtensionNotFound as error:
        raise ValueError("the certificate names no authority's key") from error
    if authority is None:
        raise ValueError("the certificate names no authority's key")
    serial = leaf.serial_number.to_bytes(leaf.serial_number.bit_length() // 8 + 1, "big")  # a sign bit of its own
    return f"{encode_b64jose(authority)}.{encode_b64jose(serial)}"


def read_window(answer: CaResponse) -> RenewalWindow:
    """Parse the suggested window from a CA's response.

    Raises: ValueError for a response that holds none (RFC 9773 §4.2: a window ends after its start).
    """
    try:
        window = messages.RenewalInfo.from_json(answer.json()).suggested_window
        start, end = window.start, window.end
    except (TypeError, AttributeError, DeserializationError) as error:
        raise ValueError("not renewal information") from error
    if start is None or end is None or end <= start:
        raise ValueError("not a window of time")
    seconds = answer.retry_after_seconds or _DEFAULT_SECONDS
    return RenewalWindow(start, end, min(max(seconds, _SHORTEST_SECONDS), _LONGEST_SECONDS))
