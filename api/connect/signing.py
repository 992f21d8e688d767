"""The apply URL, signed, and the public key as DNS records (draft-ietf-dconn-domainconnect, Signing Procedure).

Rules
    names and values are percent-encoded (RFC 3986), sorted by encoded name, and joined; that text is signed, and stands
        in the URL as it was signed, before ``sig`` and ``key``
    RS256: RSASSA-PKCS1-v1_5 with SHA-256 (RFC 7518 §3.3), the one algorithm that every provider has
    the public key is the base64 of its SubjectPublicKeyInfo, in numbered TXT records of one name
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_private_key,
)

from common.connect.domain_connect.provider_settings import ProviderSettings, template_path
from common.connect.domain_connect.templates import Filled
from common.dns import Answer

_KEY_BITS: Final = 2048
_FRAGMENT_CHARACTERS: Final = 200  # with its head, one string of a TXT record (RFC 1035 §3.3.14)


def new_private_key() -> bytes:
    """Make a private key, in PKCS #8, DER."""
    key = generate_private_key(public_exponent=65537, key_size=_KEY_BITS)
    return key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())


def public_key_records(private_key: bytes) -> list[str]:
    """Return the texts to publish at ``<label>.<syncPubKeyDomain>``, each one TXT record."""
    public = _load(private_key).public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    text = base64.b64encode(public).decode()
    fragments = [text[at : at + _FRAGMENT_CHARACTERS] for at in range(0, len(text), _FRAGMENT_CHARACTERS)]
    return [f"p={number},a=RS256,d={fragment}" for number, fragment in enumerate(fragments, 1)]


def find_publication_fault(texts: Sequence[str], found: Answer) -> str | None:
    """Return why a provider could not read the key from what the zone's own servers have; None if it can."""
    if not found.outcome.is_known:
        return f"its name servers could not be asked ({found.outcome})"
    if missing := len(set(texts) - set(found.values)):
        return f"{missing} of its {len(texts)} TXT records are not published"
    if len(found.values) > len(texts):
        return "it has TXT records that are not the key's, which spoil it"
    return "not all of its name servers have the records" if found.is_disputed else None


def apply_url(
    settings: ProviderSettings,
    provider_id: str,
    filled: Filled,
    apex: str,
    *,
    redirect_uri: str,
    state: str,
    key_label: str,
    private_key: bytes,
) -> str:
    """Return the address that the person goes to. `settings` must have a consent page."""
    assert settings.sync_url is not None, "a provider without a consent page is not offered"
    parameters = {"domain": apex, "redirect_uri": redirect_uri, "state": state, **filled.variables}
    if filled.host:
        parameters["host"] = filled.host
    if filled.groups:
        parameters["groupId"] = ",".join(filled.groups)
    query = signed_query(parameters, key_label, private_key)
    return f"{settings.sync_url}{template_path(provider_id, filled.service)}/apply?{query}"


def signed_query(parameters: Mapping[str, str], key_label: str, private_key: bytes) -> str:
    """Return the parameters as a query, followed by its signature and the label of the key."""
    pairs = sorted((_percent_encode(name), _percent_encode(value)) for name, value in parameters.items())
    query = "&".join(f"{name}={value}" for name, value in pairs)
    signature = _load(private_key).sign(query.encode(), PKCS1v15(), SHA256())
    return f"{query}&sig={_percent_encode(base64.b64encode(signature).decode())}&key={_percent_encode(key_label)}"


def _percent_encode(text: str) -> str:
    return quote(text, safe="")


def _load(private_key: bytes) -> RSAPrivateKey:
    key = load_der_private_key(private_key, None)
    assert isinstance(key, RSAPrivateKey), "made by new_private_key"
    return key
