"""Certificates for tests, signed by an authority of their own: a root, an intermediate, and leaves of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat

Key: TypeAlias = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def ec_key(curve: ec.EllipticCurve | None = None) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(curve or ec.SECP256R1())


def pem_of(key: Any, password: bytes | None = None) -> str:
    encryption = BestAvailableEncryption(password) if password else NoEncryption()
    return str(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode())


def pem(*certificates: x509.Certificate) -> str:
    return "".join(each.public_bytes(Encoding.PEM).decode() for each in certificates)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


@dataclass
class Authority:
    """A root and one intermediate, which signs leaves."""

    root_key: ec.EllipticCurvePrivateKey = field(default_factory=ec_key)
    key: ec.EllipticCurvePrivateKey = field(default_factory=ec_key)

    def __post_init__(self) -> None:
        self.root = self._sign("Root", self.root_key.public_key(), "Root", self.root_key, is_authority=True)
        self.intermediate = self._sign("Inter", self.key.public_key(), "Root", self.root_key, is_authority=True)

    def leaf(self, key: Any, *names: str, days: float = 90, **options: Any) -> x509.Certificate:
        """Sign a leaf for `key`, or for the key of a signing request."""
        return self._sign(names[0], key.public_key(), "Inter", self.key, names=names, days=days, **options)

    def _sign(
        self,
        subject: str,
        public_key: Any,
        issuer: str,
        key: Key,
        *,
        names: Sequence[str] = (),
        days: float = 3650,
        from_days: float = -1,
        is_authority: bool = False,
        digest: hashes.HashAlgorithm | None = None,
        extensions: Sequence[x509.ExtensionType] = (),
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(_name(subject))
            .issuer_name(_name(issuer))
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + timedelta(days=from_days))
            .not_valid_after(now + timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )
        if names:
            alternatives = [x509.DNSName(each) for each in names]
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        for each in extensions:
            builder = builder.add_extension(each, critical=False)
        return builder.sign(key, digest or hashes.SHA256())  # type: ignore[arg-type]
