"""Parts for the TLS tests: a small CA, a replica in memory, and hellos made by the real client."""

from __future__ import annotations

import base64
import ssl
import tempfile
import time
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import orjson
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from common.secrets import Keyring, load_keyring

_SIGNS_CERTIFICATES = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=False,
    encipher_only=False,
    decipher_only=False,
)


class TestCA:
    """Signs leaf certificates; `client_context` trusts it and nothing else."""

    __test__ = False

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test CA")])
        self._serial = 1
        self.pem = self._sign(self._name, self._key, ca=True)

    def _sign(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, ca: bool, domain: str = "") -> str:
        self._serial += 1
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(self._serial)
            .not_valid_before(datetime.now(UTC) - timedelta(days=1))
            .not_valid_after(datetime.now(UTC) + timedelta(days=30))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if ca:
            builder = builder.add_extension(_SIGNS_CERTIFICATES, critical=True)
        if domain:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(domain)]), critical=True)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()

    def issue(self, domain: str) -> tuple[str, bytes]:
        """Chain (PEM) and private key (PEM)."""
        key = ec.generate_private_key(ec.SECP256R1())
        chain = self._sign(x509.Name([]), key, ca=False, domain=domain)
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return chain, pem

    def client_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self.pem)


@cache
def the_ca() -> TestCA:
    return TestCA()


@cache
def keyring() -> Keyring:
    with tempfile.TemporaryDirectory() as folder:
        return load_keyring(Path(folder) / "master.key", create=True)


class MemoryReplica:
    """`generation` and `get_raw` as the replica's reader has them; every change is a new generation."""

    def __init__(self) -> None:
        self._generation = 1
        self._rows: dict[tuple[str, str], dict[str, Any]] = {}
        self.unattended = False
        self.cut_off = False

    def generation(self) -> int:
        return self._generation

    def get(self, kind: str, key: str) -> dict[str, Any] | None:
        return self._rows.get((kind, key))

    def is_cut_off(self) -> bool:
        return self.cut_off

    def is_unattended(self) -> bool:
        return self.unattended

    def get_raw(self, kind: str, key: str) -> bytes | None:
        row = self.get(kind, key)
        return None if row is None else orjson.dumps(row)

    def put(self, kind: str, key: str, row: dict[str, Any]) -> None:
        self._rows[kind, key] = row
        self._generation += 1

    def remove(self, kind: str, key: str) -> None:
        self._rows.pop((kind, key), None)
        self._generation += 1

    def put_certificate(self, domain: str, *, not_after: float | None = None) -> str:
        """A fresh certificate; returns its chain."""
        chain, key = the_ca().issue(domain)
        self.put_certificate_of(domain, chain, key, not_after=not_after)
        return chain

    def put_certificate_of(self, domain: str, chain: str, key: bytes, *, not_after: float | None = None) -> None:
        envelope = keyring().seal(key, f"certificate/{domain}/private-key")
        row = {
            "domain": domain,
            "chain": chain,
            "private_key": base64.encodebytes(envelope).decode(),  # in lines, as Postgres writes it
            "not_after": not_after or time.time() + 86_400,
        }
        self.put("certificate", domain, row)

    def put_order(self, domain: str, *, hold_seconds: float) -> None:
        self.put("order", domain, {"domain": domain, "hold_until": time.time() + hold_seconds})


def client_hello(
    server_name: str | None = "a.example",
    *,
    alpn: tuple[str, ...] = (),
    maximum_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
) -> bytes:
    """The first flight of OpenSSL's own client."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.maximum_version = maximum_version
    if alpn:
        context.set_alpn_protocols(list(alpn))
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=server_name)
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError("a client cannot be done after its first flight")


def in_records(message: bytes, *sizes: int) -> bytes:
    """`message` cut into handshake records of these sizes; the last one takes what is left."""
    records, at = b"", 0
    for size in (*sizes, len(message)):
        part = message[at : at + size]
        at += len(part)
        if part:
            records += b"\x16\x03\x01" + len(part).to_bytes(2) + part
    return records
