"""What a partner's own certificate has to be: its chain and key, read from PEM, and a request for one.

The bytes are foreign. Their length, the number of certificates and the sizes of keys are bounded before anything is
computed with them, so that none costs more than a few milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeAlias, TypeVar

from cryptography import x509
from cryptography.exceptions import InternalError, InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID

from common.db.certificates import describe_leaf as describe
from common.db.certificates import name_of
from common.errors import FrontageError

MOST_CHAIN_BYTES: Final = 64 * 1024
MOST_KEY_BYTES: Final = 16 * 1024
MOST_CERTIFICATES: Final = 10
LEAST_LEFT: Final = timedelta(days=1)
"""From its last day on, ours serves."""
_RSA_BITS: Final = range(2048, 4096 + 1)  # a handshake with a longer key takes edges many times as long
_MOST_AUTHORITY_BITS: Final = 8192
_MOST_EXPONENT: Final = 2**32
_CURVES: Final = (ec.SECP256R1, ec.SECP384R1)
_HASHES: Final = (hashes.SHA256, hashes.SHA384, hashes.SHA512)
_MUST_STAPLE: Final = x509.TLSFeatureType.status_request
_PEM: Final = re.compile(rb"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]{1,65536}-----END CERTIFICATE-----")

Key: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
_Extension = TypeVar("_Extension", bound=x509.ExtensionType)


class CertificateUnusable(FrontageError):
    """A certificate or key that edges cannot serve. `code` is for programs; the text says what to do."""

    def __init__(self, code: str, words: str) -> None:
        super().__init__(words)
        self.code = code


@dataclass(frozen=True, slots=True)
class CheckedCertificate:
    """A certificate that edges can serve. `chain` is PEM: the leaf first, each issuer after what it has signed."""

    chain: str
    issuer: str
    serial: str
    names: tuple[str, ...]
    not_before: datetime
    not_after: datetime


def read_key(text: str) -> Key:
    """Read a private key of a kind that edges can use. Raises: `CertificateUnusable`."""
    pem = text.encode()
    if len(pem) > MOST_KEY_BYTES:
        raise CertificateUnusable("key_invalid", f"the private key has more than {MOST_KEY_BYTES} bytes: send one key")
    if b"ENCRYPTED" in pem:
        words = "the private key is encrypted: decrypt it first, `openssl pkey -in key.pem -out plain.pem`"
        raise CertificateUnusable("key_encrypted", words)
    try:
        key = load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=True)  # proven by a signature instead
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        words = "the private key is not readable PEM: it begins with -----BEGIN PRIVATE KEY-----"
        raise CertificateUnusable("key_invalid", words) from error
    if isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
        _refuse_weak(key.public_key())
        return key
    raise CertificateUnusable("key_unsupported", "the key is neither RSA nor ECDSA: make one of RSA 2048 or P-256")


def check_certificate(
    text: str, domain: str, now: datetime, *, key: Key | None = None, request: str | None = None
) -> CheckedCertificate:
    """Check what was sent as the certificate of `domain`, for `key` or for the key of `request` (PEM).

    Certificates may stand in any order; those that the leaf does not need are left out. The expected root is, too.

    Raises: `CertificateUnusable`.
    """
    found = _read_certificates(text)
    expected = _public_bytes(key.public_key() if key is not None else _request_key(request or ""))
    leaf = next((each for each in found if _public_bytes(_public_key(each)) == expected), None)
    if leaf is None:
        raise CertificateUnusable(
            "certificate_key_mismatch",
            "the certificate is for another key: send the private key that it was requested with"
            if key is not None
            else "the certificate is not for the open request: have that one signed, or send the private key with it",
        )
    if key is not None:
        _prove(key)
    names = _check_leaf(leaf, domain, now)
    chain = _order(leaf, found, now)
    serial, authority = describe(leaf)
    return CheckedCertificate(
        "".join(each.public_bytes(Encoding.PEM).decode() for each in chain),
        authority,
        serial,
        names,
        leaf.not_valid_before_utc,
        leaf.not_valid_after_utc,
    )


def make_request(domain: str) -> tuple[str, bytes]:
    """Make a key and a request to sign for the domain. Return the request and the key, both PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = x509.CertificateSigningRequestBuilder().add_extension(
        x509.SubjectAlternativeName([x509.DNSName(domain)]), critical=False
    )
    common_name = [x509.NameAttribute(x509.NameOID.COMMON_NAME, domain)] if len(domain) <= 64 else []  # its bound
    request = builder.subject_name(x509.Name(common_name)).sign(key, hashes.SHA256())
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return request.public_bytes(Encoding.PEM).decode(), secret


def key_pem(key: Key) -> bytes:
    """Return the key as edges load it."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def describe_leaf(chain: str) -> CheckedCertificate:
    """Describe a chain that is served already. Raises: ValueError."""
    leaf = x509.load_pem_x509_certificate(chain.encode("ascii"))
    serial, authority = describe(leaf)
    return CheckedCertificate(
        chain,
        authority,
        serial,
        _names(leaf),
        leaf.not_valid_before_utc,
        leaf.not_valid_after_utc,
    )


def _read_certificates(text: str) -> list[x509.Certificate]:
    pem = text.encode()
    if len(pem) > MOST_CHAIN_BYTES:
        words = f"the chain has more than {MOST_CHAIN_BYTES} bytes: send the certificate and its intermediates only"
        raise CertificateUnusable("certificate_invalid", words)
    blocks = _PEM.findall(pem)
    if not blocks or len(blocks) != pem.count(b"-----BEGIN CERTIFICATE-----"):
        words = "the certificate is not readable PEM: send the file whose blocks begin with -----BEGIN CERTIFICATE-----"
        raise CertificateUnusable("certificate_invalid", words)
    if len(blocks) > MOST_CERTIFICATES:
        words = f"there are more than {MOST_CERTIFICATES} certificates: send the certificate and its intermediates only"
        raise CertificateUnusable("certificate_invalid", words)
    try:
        return [x509.load_pem_x509_certificate(block) for block in blocks]
    except ValueError as error:
        words = "a certificate cannot be parsed: check the file with `openssl x509 -in FILE -text`, and send it whole"
        raise CertificateUnusable("certificate_invalid", words) from error


def _request_key(request: str) -> rsa.RSAPublicKey | ec.EllipticCurvePublicKey:
    key = x509.load_pem_x509_csr(request.encode()).public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey), "as `make_request` makes them"
    return key


def _public_key(certificate: x509.Certificate) -> object:
    try:
        return certificate.public_key()
    except (ValueError, UnsupportedAlgorithm):
        return None


def _public_bytes(key: object) -> bytes | None:
    if not isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey):
        return None
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _refuse_weak(key: object) -> None:
    """Refuse a leaf's key that edges cannot use, or should not. Raises: `CertificateUnusable`."""
    if isinstance(key, rsa.RSAPublicKey):
        if key.key_size not in _RSA_BITS or key.public_numbers().e > _MOST_EXPONENT:
            words = f"the RSA key has {key.key_size} bits: make one of 2048 to 4096, with the usual exponent"
            raise CertificateUnusable("key_unsupported", words)
    elif not (isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, _CURVES)):
        raise CertificateUnusable("key_unsupported", "the key's curve is neither P-256 nor P-384: make one of P-256")


def _prove(key: Key) -> None:
    """Refuse a key whose parts do not fit each other. Raises: `CertificateUnusable`."""
    try:
        if isinstance(key, rsa.RSAPrivateKey):
            signature = key.sign(b"frontage", padding.PKCS1v15(), hashes.SHA256())
            key.public_key().verify(signature, b"frontage", padding.PKCS1v15(), hashes.SHA256())
        else:
            signature = key.sign(b"frontage", ec.ECDSA(hashes.SHA256()))
            key.public_key().verify(signature, b"frontage", ec.ECDSA(hashes.SHA256()))
    except (InvalidSignature, ValueError, InternalError) as error:
        words = "the private key is damaged: it signs, and its public key does not verify. Export it anew"
        raise CertificateUnusable("key_invalid", words) from error


def _check_leaf(leaf: x509.Certificate, domain: str, now: datetime) -> tuple[str, ...]:
    """Return the names that the leaf is for. Raises: `CertificateUnusable`."""
    try:
        names = _names(leaf)
        is_authority = _is_authority(leaf)
        purposes = _extension(leaf, x509.ExtendedKeyUsage)
        features = _extension(leaf, x509.TLSFeature)
    except (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType) as error:
        raise CertificateUnusable("certificate_invalid", "the certificate's extensions cannot be read") from error
    if leaf.not_valid_before_utc > now:
        words = f"the certificate is valid from {leaf.not_valid_before_utc:%Y-%m-%d %H:%M} UTC on: send it then"
        raise CertificateUnusable("certificate_not_yet_valid", words)
    if leaf.not_valid_after_utc <= now + LEAST_LEFT:
        words = f"the certificate ends on {leaf.not_valid_after_utc:%Y-%m-%d %H:%M} UTC: send one with more than a day"
        raise CertificateUnusable("certificate_expired", words)
    if not any(_covers(name, domain) for name in names):
        shown = ", ".join(names[:5]) or "no name"
        words = f"the certificate is for {shown}, and not for {domain}: request one that has it as a DNS name"
        raise CertificateUnusable("certificate_name_mismatch", words)
    if is_authority or (purposes is not None and ExtendedKeyUsageOID.SERVER_AUTH not in purposes):
        words = "the certificate is not for servers: request one for TLS server authentication"
        raise CertificateUnusable("certificate_purpose", words)
    if features is not None and _MUST_STAPLE in features:
        words = "the certificate demands OCSP stapling (must-staple), which edges do not send: request one without it"
        raise CertificateUnusable("certificate_purpose", words)
    return names


def _order(leaf: x509.Certificate, found: Sequence[x509.Certificate], now: datetime) -> list[x509.Certificate]:
    """Return the leaf and its intermediates, each after what it has signed. Raises: `CertificateUnusable`."""
    chain = [leaf]
    while True:
        lowest = chain[-1]
        if not isinstance(lowest.signature_hash_algorithm, _HASHES):
            words = f"the certificate of {name_of(lowest.subject)} is signed with an outdated hash: request it anew"
            raise CertificateUnusable("certificate_outdated_signature", words)
        issuer = next((each for each in found if each not in chain and _has_issued(each, lowest)), None)
        if issuer is None or issuer.subject == issuer.issuer:
            break
        if issuer.not_valid_after_utc <= now:
            words = (
                f"the intermediate certificate {name_of(issuer.subject)} has expired: send the authority's present one"
            )
            raise CertificateUnusable("certificate_chain_incomplete", words)
        chain.append(issuer)
    if len(chain) == 1 and (issuer is None or leaf.subject == leaf.issuer):
        words = (
            "the certificate signed itself, and browsers refuse it: have an authority sign one"
            if leaf.subject == leaf.issuer
            else f"the certificate of its issuer, {name_of(leaf.issuer)}, is missing: send the whole chain"
        )
        raise CertificateUnusable("certificate_chain_incomplete", words)
    return chain


def _has_issued(issuer: x509.Certificate, certificate: x509.Certificate) -> bool:
    key = _public_key(issuer)
    if issuer.subject != certificate.issuer or not isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey):
        return False
    if isinstance(key, rsa.RSAPublicKey) and (
        key.key_size > _MOST_AUTHORITY_BITS or key.public_numbers().e > _MOST_EXPONENT
    ):
        return False
    try:
        certificate.verify_directly_issued_by(issuer)
        return _is_authority(issuer)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm, x509.DuplicateExtension):
        return False


def _is_authority(certificate: x509.Certificate) -> bool:
    constraints = _extension(certificate, x509.BasicConstraints)
    return constraints is not None and constraints.ca


def _extension(certificate: x509.Certificate, kind: type[_Extension]) -> _Extension | None:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None


def _names(leaf: x509.Certificate) -> tuple[str, ...]:
    names = _extension(leaf, x509.SubjectAlternativeName)
    found = () if names is None else names.get_values_for_type(x509.DNSName)
    return tuple(name.lower() for name in found if name.isascii() and name.isprintable())


def _covers(name: str, domain: str) -> bool:
    """Return whether a name of a certificate, with a wildcard as its first label or none, is for the domain."""
    return name == domain or (name.startswith("*.") and name[1:] == domain[domain.find(".") :])
