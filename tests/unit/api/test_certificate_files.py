"""What is taken as a partner's own certificate, and the words for what is not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa

from api.rules import certificate_files as files
from api.rules.certificate_files import CertificateUnusable
from tests.certificates import Authority, ec_key, pem, pem_of

DOMAIN = "shop.customer.example"
CA = Authority()
KEY = ec_key()
LEAF = CA.leaf(KEY, DOMAIN, "www.customer.example")


def forged(bits: int) -> rsa.RSAPrivateKey:
    """A long key that took no time to make: its factors are no primes."""
    p, q = 2**bits - 1, 2**bits - 3
    numbers = rsa.RSAPrivateNumbers(p, q, 65537, 65537, 65537, 65537, rsa.RSAPublicNumbers(65537, p * q))
    return numbers.private_key(unsafe_skip_rsa_key_validation=True)


def check(text: str, key: Any = KEY, domain: str = DOMAIN) -> files.CheckedCertificate:
    return files.check_certificate(text, domain, datetime.now(UTC), key=key)


def refused(text: str, key: Any = KEY) -> tuple[str, str]:
    with pytest.raises(CertificateUnusable) as caught:
        check(text, key)
    return caught.value.code, str(caught.value)


@pytest.mark.parametrize(
    "sent",
    [
        pem(LEAF, CA.intermediate),
        pem(CA.root, CA.intermediate, LEAF),
        "Bag Attributes\r\n" + pem(CA.intermediate, Authority().root, LEAF, LEAF).replace("\n", "\r\n"),
    ],
    ids=range(3),
)
def test_a_chain_is_ordered_without_what_the_leaf_does_not_need(sent: str) -> None:
    checked = check(sent)
    assert checked.chain == pem(LEAF, CA.intermediate)
    assert (checked.issuer, checked.serial) == ("Inter", f"{LEAF.serial_number:x}")
    assert checked.names == (DOMAIN, "www.customer.example")


@pytest.mark.parametrize("key", [rsa.generate_private_key(65537, 2048), ec_key(ec.SECP384R1())])
def test_rsa_and_p384_keys_are_taken(key: Any) -> None:
    read = files.read_key(pem_of(key))
    assert check(pem(CA.leaf(key, "*.customer.example"), CA.intermediate), read).names == ("*.customer.example",)
    assert b"PRIVATE KEY" in files.key_pem(read)


def test_a_request_is_answered_without_its_key() -> None:
    request, secret = files.make_request(DOMAIN)
    parsed = x509.load_pem_x509_csr(request.encode())
    leaf = CA.leaf(parsed, DOMAIN)
    sent = pem(leaf, CA.intermediate)
    now = datetime.now(UTC)
    assert files.check_certificate(sent, DOMAIN, now, request=request).chain == sent
    assert check(sent, files.read_key(secret.decode())).chain == sent
    with pytest.raises(CertificateUnusable, match="not for the open request"):
        files.check_certificate(pem(LEAF, CA.intermediate), DOMAIN, now, request=request)


@pytest.mark.parametrize(
    ("leaf", "code", "words"),
    [
        (CA.leaf(KEY, "other.example"), "certificate_name_mismatch", "is for other.example, and not for"),
        (CA.leaf(KEY, "*.shop.customer.example"), "certificate_name_mismatch", "request one that has it"),
        (CA.leaf(KEY, DOMAIN, days=0.9), "certificate_expired", "send one with more than a day"),
        (CA.leaf(KEY, DOMAIN, days=-0.5), "certificate_expired", "ends on"),
        (CA.leaf(KEY, DOMAIN, from_days=1), "certificate_not_yet_valid", "send it then"),
        (CA.leaf(ec_key(), DOMAIN), "certificate_key_mismatch", "send the private key that it was requested with"),
        (CA.leaf(KEY, DOMAIN, is_authority=True), "certificate_purpose", "not for servers"),
        (
            CA.leaf(KEY, DOMAIN, extensions=[x509.ExtendedKeyUsage([x509.OID_CLIENT_AUTH])]),
            "certificate_purpose",
            "TLS server authentication",
        ),
        (
            CA.leaf(KEY, DOMAIN, extensions=[x509.TLSFeature([x509.TLSFeatureType.status_request])]),
            "certificate_purpose",
            "must-staple",
        ),
        (CA.leaf(KEY, DOMAIN, digest=hashes.SHA224()), "certificate_outdated_signature", "request it anew"),
    ],
)
def test_a_certificate_that_would_not_serve_the_domain_is_refused(
    leaf: x509.Certificate, code: str, words: str
) -> None:
    found = refused(pem(leaf, CA.intermediate))
    assert found[0] == code
    assert words in found[1]


def test_a_chain_without_its_intermediate_or_an_authority_is_refused() -> None:
    code, words = refused(pem(LEAF))
    assert (code, "issuer, Inter, is missing" in words) == ("certificate_chain_incomplete", True)
    impostor = Authority()  # of the same names, and other keys
    assert refused(pem(LEAF, impostor.intermediate, impostor.root))[0] == "certificate_chain_incomplete"
    alone = CA._sign("Self", KEY.public_key(), "Self", KEY, names=[DOMAIN])
    assert "signed itself" in refused(pem(alone))[1]


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (pem_of(KEY, b"secret"), "key_encrypted", "openssl pkey"),
        (pem_of(rsa.generate_private_key(65537, 1024)), "key_unsupported", "1024 bits"),
        (pem_of(forged(2052)), "key_unsupported", "4104 bits"),
        (pem_of(ec_key(ec.SECP521R1())), "key_unsupported", "P-256"),
        (pem_of(ed25519.Ed25519PrivateKey.generate()), "key_unsupported", "neither RSA nor ECDSA"),
        (pem_of(dsa.generate_private_key(1024)), "key_unsupported", "neither RSA nor ECDSA"),
        (pem(LEAF), "key_invalid", "BEGIN PRIVATE KEY"),
        ("-----BEGIN PRIVATE KEY-----\n" + "A" * 20_000, "key_invalid", "more than"),
        ("", "key_invalid", "not readable"),
        ("\0é" * 99, "key_invalid", "not readable"),
    ],
    ids=range(10),
)
def test_a_key_that_edges_cannot_use_is_refused(text: str, code: str, words: str) -> None:
    with pytest.raises(CertificateUnusable, match=words) as caught:
        files.read_key(text)
    assert caught.value.code == code
    assert "AAAA" not in str(caught.value)


def test_a_key_whose_parts_do_not_fit_is_refused() -> None:
    first, second = (rsa.generate_private_key(65537, 2048).private_numbers() for _ in range(2))
    mixed = rsa.RSAPrivateNumbers(
        first.p, first.q, second.d, second.dmp1, second.dmq1, first.iqmp, first.public_numbers
    ).private_key(unsafe_skip_rsa_key_validation=True)
    read = files.read_key(pem_of(mixed))
    assert refused(pem(CA.leaf(read, DOMAIN), CA.intermediate), read)[0] == "key_invalid"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "garbage",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\n" * 2000,
        pem(LEAF)[:-40],
        pem(*[LEAF] * 11),
        pem(LEAF) * 200,
        pem_of(KEY),
        "\0\ud7ffé",
    ],
    ids=range(9),
)
def test_hostile_text_is_refused(text: str) -> None:
    assert refused(text)[0] == "certificate_invalid"
