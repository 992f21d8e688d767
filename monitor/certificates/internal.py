"""The internal issuer: a certificate authority of our own, so that everything works with no network.

Postgres keeps its root, so that the monitors on all machines sign with one (`common.db.internal_root`). Owns
``<state_dir>/ca``, which has a copy: ``root.pem``, for users to trust, and ``root.key``, sealed under the master key.
The directory is made complete and then renamed into place, so of several monitors that start at once all use the first
one's. Leaves are signed by the root itself: a client that trusts ``root.pem`` needs nothing more.
"""

from __future__ import annotations

import shutil
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from common.atomic_files import replace_file, sync_directory, write_new_file
from common.clock import Clock
from common.db import internal_root
from common.db.internal_root import KEY_IDENTITY, SealedRoot
from common.db.pool import Database
from common.errors import OperatorError, SecretUnreadable
from common.logs import get_logger
from common.secrets import Keyring
from monitor.certificates.issuer import IssuanceFailed, Issued, Journal, RenewalWindow
from monitor.certificates.phases import Phases

_KEY_FILE = "root.key"
_log = get_logger("monitor.certificates.internal")

_ROOT_LIFETIME = timedelta(days=3650)
_LEAF_LIFETIME = timedelta(days=90)
_CLOCK_SKEW = timedelta(hours=1)  # a client whose clock is behind accepts the leaf as well


class InternalIssuer:
    """Signs with the root it was opened with. Holds no other state; created by `open_internal`."""

    name = "internal"
    """The value of ``certificates.issuer`` for its certificates."""

    def __init__(self, root: x509.Certificate, key: ec.EllipticCurvePrivateKey, clock: Clock) -> None:
        self._root = root
        self._key = key
        self._clock = clock

    @property
    def root_fingerprint(self) -> str:
        """Return the SHA-256 fingerprint of the root certificate, in hex."""
        return self._root.fingerprint(hashes.SHA256()).hex()

    async def issue(
        self,
        domain: str,
        request: x509.CertificateSigningRequest,
        phases: Phases,
        journal: Journal,
        *,
        replaces: Issued | None = None,
    ) -> Issued:
        """Sign a certificate for the key of the request.

        Raises: `IssuanceFailed` when the request is not signed by its own key.
        """
        with phases.timed("sign"):
            if not request.is_signature_valid:
                raise IssuanceFailed("the signing request is not signed by its own key")
            leaf = _sign_leaf(self._root, self._key, domain, request, self._clock.now())
        return Issued(self.name, leaf.public_bytes(Encoding.PEM).decode("ascii"))

    async def renewal_window(self, issued: Issued) -> RenewalWindow | None:
        """Return None: this authority suggests no window."""
        return None

    async def revoke(self, issued: Issued, reason: int) -> None:
        """Do nothing: this authority publishes no revocations; the certificate is no longer served."""


def root_path(state_dir: Path) -> Path:
    """Return the path of the root certificate, which a user may trust."""
    return state_dir / "ca" / "root.pem"


def open_internal(state_dir: Path, keyring: Keyring, clock: Clock) -> InternalIssuer:
    """Open the state directory's authority; create it if there is none.

    Raises: `OperatorError` when it cannot be created, is damaged, or ends before its next leaf would.
    """
    directory = root_path(state_dir).parent
    try:
        if not root_path(state_dir).exists():
            _create(directory, keyring, clock.now())
        root, key = _read(directory, keyring)
    except OSError as error:
        raise OperatorError(
            f"cannot use the certificate authority in {directory}: {error.strerror or error}"
        ) from error
    except SecretUnreadable as error:
        raise OperatorError(f"cannot open the key of the certificate authority in {directory}: {error}") from error
    except (ValueError, TypeError) as error:
        raise OperatorError(
            f"the certificate authority in {directory} is damaged: restore it, or remove it to get a new one"
        ) from error
    if root.not_valid_after_utc < clock.now() + _LEAF_LIFETIME:
        raise OperatorError(
            f"the certificate authority in {directory} is about to expire: stop all monitors, remove it and the row of"
            " the database's table internal_root, and start them to get a new one"
        )
    return InternalIssuer(root, key, clock)


class SharedIssuer:
    """The installation's authority, opened when it is first needed. One instance per process.

    Mutable state: the issuer, once it is open.
    """

    def __init__(self, database: Database, state_dir: Path, keyring: Keyring, clock: Clock) -> None:
        self._database = database
        self._state_dir = state_dir
        self._keyring = keyring
        self._clock = clock
        self._issuer: InternalIssuer | None = None

    async def open(self) -> InternalIssuer:
        """Return the issuer; where the installation has no root yet, the state directory's becomes it.

        Raises: `OperatorError` as `open_internal`, `DatabaseUnavailable`.
        """
        if self._issuer is None:
            _place(root_path(self._state_dir), await self._find_root())
            self._issuer = open_internal(self._state_dir, self._keyring, self._clock)
        return self._issuer

    async def _find_root(self) -> SealedRoot:
        async with self._database.connection() as connection:
            kept = await internal_root.find(connection)
        if kept is not None:
            return kept
        open_internal(self._state_dir, self._keyring, self._clock)  # makes one where there is none
        path = root_path(self._state_dir)
        try:
            own = SealedRoot(path.read_text("ascii"), (path.parent / _KEY_FILE).read_bytes())
        except OSError as error:
            raise OperatorError(f"cannot read the certificate authority in {path.parent}: {error}") from error
        async with self._database.transaction() as connection:
            return await internal_root.keep(connection, own)


def _place(path: Path, root: SealedRoot) -> None:
    """Write the root to the state directory, unless it is there, sealed alike. Raises: `OperatorError`."""
    key_path, certificate = path.parent / _KEY_FILE, root.certificate.encode("ascii")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        there = [each.read_bytes() for each in (path, key_path) if each.exists()]
        if there == [certificate, root.private_key]:
            return
        replace_file(key_path, root.private_key)
        replace_file(path, certificate, mode=0o644)
    except (OSError, ValueError) as error:
        raise OperatorError(f"cannot write the certificate authority to {path.parent}: {error}") from error
    _log.info("the root of all monitors is placed here", root=str(path))


def _read(directory: Path, keyring: Keyring) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """Read the root certificate and its key."""
    root = x509.load_pem_x509_certificate((directory / "root.pem").read_bytes())
    key = load_pem_private_key(keyring.open((directory / _KEY_FILE).read_bytes(), KEY_IDENTITY), None)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != root.public_key():
        raise ValueError("the root's key is another's")
    return root, key


def _create(directory: Path, keyring: Keyring, now: datetime) -> None:
    """Write a new authority to a draft and rename it; a process that comes second uses the first one's."""
    directory.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    key = ec.generate_private_key(ec.SECP256R1())
    draft = Path(tempfile.mkdtemp(prefix=".ca-", dir=directory.parent))
    try:
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        write_new_file(draft / _KEY_FILE, keyring.seal(secret, KEY_IDENTITY))
        write_new_file(draft / "root.pem", _sign_root(key, now).public_bytes(Encoding.PEM), mode=0o644)
        draft.chmod(0o755)
        sync_directory(draft)
        draft.rename(directory)
        sync_directory(directory.parent)
    except OSError:
        if not (directory / "root.pem").exists():
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _sign_root(key: ec.EllipticCurvePrivateKey, now: datetime) -> x509.Certificate:
    """Create the self-signed root certificate of the key."""
    # Two authorities must not share a name: a client that trusts both would try the wrong one.
    subject = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Frontage Local CA {subject.digest.hex()[:8]}")])
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _ROOT_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(authority=True), critical=True)
        .add_extension(subject, critical=False)
        .sign(key, hashes.SHA256())
    )


def _sign_leaf(
    root: x509.Certificate,
    root_key: ec.EllipticCurvePrivateKey,
    domain: str,
    request: x509.CertificateSigningRequest,
    now: datetime,
) -> x509.Certificate:
    """Sign a leaf for `domain` alone. Of the request only the key counts, as with any authority."""
    subject = root.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))  # a common name holds 64 characters, a domain 253
        .issuer_name(root.subject)
        .public_key(request.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now - _CLOCK_SKEW + _LEAF_LIFETIME)
        # RFC 5280 §4.2.1.6: critical, since the subject is empty
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(domain)]), critical=True)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(request.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(subject), critical=False)
        .sign(root_key, hashes.SHA256())
    )


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    """Return the key usage of an authority or of a leaf."""
    return x509.KeyUsage(
        digital_signature=not authority,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
