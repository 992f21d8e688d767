"""The internal authority: what it signs verifies everywhere, and there is only ever one."""

import os
import ssl
import stat
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from common.clock import SystemClock
from common.errors import OperatorError
from monitor.certificates.internal import InternalIssuer, open_internal, root_path
from monitor.certificates.issuance import check_leaf, signing_request
from monitor.certificates.issuer import IssuanceFailed
from monitor.certificates.phases import Phases
from tests.journal import MemoryJournal
from tests.tls_parts import keyring

DOMAIN = "shop.customer.example"


class LaterClock(SystemClock):
    def __init__(self, later: timedelta) -> None:
        self._later = later

    def now(self) -> datetime:
        return datetime.now(UTC) + self._later


async def issue(issuer: InternalIssuer, domain: str = DOMAIN) -> tuple[str, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    issued = await issuer.issue(domain, signing_request(domain, key), Phases(SystemClock()), MemoryJournal())
    return issued.chain, key


@pytest.fixture
def issuer(tmp_path: Path) -> InternalIssuer:
    return open_internal(tmp_path, keyring(), SystemClock())


async def test_leaf_verifies_under_the_root_for_its_domain_only(issuer: InternalIssuer, tmp_path: Path) -> None:
    chain, key = await issue(issuer)
    leaf = check_leaf(chain, DOMAIN, key)
    root = x509.load_pem_x509_certificate(root_path(tmp_path).read_bytes())
    policy = PolicyBuilder().store(Store([root]))
    policy.build_server_verifier(x509.DNSName(DOMAIN)).verify(leaf, [])
    with pytest.raises(VerificationError):
        policy.build_server_verifier(x509.DNSName("other.customer.example")).verify(leaf, [])
    assert leaf.not_valid_before_utc < datetime.now(UTC) - timedelta(minutes=30)
    assert leaf.not_valid_after_utc - leaf.not_valid_before_utc == timedelta(days=90)


async def test_openssl_accepts_the_leaf_strictly(issuer: InternalIssuer, tmp_path: Path) -> None:
    chain, _ = await issue(issuer)
    (tmp_path / "leaf.pem").write_text(chain)
    command = ["openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-verify_hostname", DOMAIN]
    verified = subprocess.run(
        [*command, "-CAfile", str(root_path(tmp_path)), str(tmp_path / "leaf.pem")],
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert verified.returncode == 0, verified.stdout + verified.stderr


@pytest.mark.parametrize("domain", [DOMAIN, "a." + ".".join(["b" * 60] * 4)])
async def test_tls_client_that_trusts_the_root_shakes_hands(
    issuer: InternalIssuer, tmp_path: Path, domain: str
) -> None:
    chain, key = await issue(issuer, domain)
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "leaf.pem").write_bytes(chain.encode() + secret)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(tmp_path / "leaf.pem")
    trusting = ssl.create_default_context(cafile=str(root_path(tmp_path)))
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = serving.wrap_bio(to_server, to_client, server_side=True)
    client = trusting.wrap_bio(to_client, to_server, server_hostname=domain)
    for side in (client, server, client, server):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    assert client.version() == "TLSv1.3"
    assert client.getpeercert() is not None


async def test_authority_is_kept_and_its_key_is_private(issuer: InternalIssuer, tmp_path: Path) -> None:
    root = root_path(tmp_path).read_bytes()
    chain, _ = await issue(open_internal(tmp_path, keyring(), SystemClock()))
    assert root_path(tmp_path).read_bytes() == root
    assert x509.load_pem_x509_certificate(chain.encode()).issuer == x509.load_pem_x509_certificate(root).subject
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in root_path(tmp_path).parent.iterdir()}
    assert modes == {"root.pem": 0o644, "root.key": 0o600}


def test_monitors_that_start_at_once_share_one_authority(tmp_path: Path) -> None:
    starters = 8
    together = threading.Barrier(starters)
    keys = keyring()  # here, since threads that ask at once may make several

    def start(_: int) -> bytes:
        together.wait()
        open_internal(tmp_path, keys, SystemClock())
        return root_path(tmp_path).read_bytes()

    with ThreadPoolExecutor(starters) as threads:
        assert len(set(threads.map(start, range(starters)))) == 1
    assert os.listdir(tmp_path) == ["ca"]


@pytest.mark.parametrize("damage", [b"", b"no key", None])
def test_damaged_authority_stops_the_start(tmp_path: Path, damage: bytes | None) -> None:
    open_internal(tmp_path, keyring(), SystemClock())
    if damage is None:
        open_internal(tmp_path / "another", keyring(), SystemClock())
        damage = root_path(tmp_path / "another").with_name("root.key").read_bytes()
    root_path(tmp_path).with_name("root.key").write_bytes(damage)
    with pytest.raises(OperatorError, match=r"is damaged: restore it, or remove it|cannot open the key of"):
        open_internal(tmp_path, keyring(), SystemClock())


def test_authority_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the state directory should be")
    with pytest.raises(OperatorError, match="cannot use the certificate authority in"):
        open_internal(tmp_path / "state", keyring(), SystemClock())


def test_authority_about_to_expire_stops_the_start(issuer: InternalIssuer, tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="about to expire"):
        open_internal(tmp_path, keyring(), LaterClock(timedelta(days=3600)))


async def test_request_signed_by_another_key_is_refused(issuer: InternalIssuer) -> None:
    genuine = signing_request(DOMAIN, ec.generate_private_key(ec.SECP256R1())).public_bytes(Encoding.DER)
    forged = x509.load_der_x509_csr(genuine[:-4] + bytes(4))
    with pytest.raises(IssuanceFailed):
        await issuer.issue(DOMAIN, forged, Phases(SystemClock()), MemoryJournal())
