"""Self-signed certificates for peers, each with a key of its own: ECDSA P-256, the kind our own edge has, or RSA."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


def write_certificates(directory: Path, hosts: Iterable[str]) -> None:
    """Write ``<host>.pem`` for each host: private key and certificate."""
    for host in hosts:
        key, certificate = make_certificate(host)
        (directory / f"{host}.pem").write_text(key + certificate)


def make_certificate(host: str, *, rsa_bits: int = 0) -> tuple[str, str]:
    """Return a private key and a self-signed certificate for `host`, which may be a wildcard; PEM.

    The key is ECDSA unless `rsa_bits` are given.
    """
    key = rsa.generate_private_key(65_537, rsa_bits) if rsa_bits else ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return pem.decode(), certificate.public_bytes(Encoding.PEM).decode()
