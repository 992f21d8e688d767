"""Envelopes: secrets at rest, AES-256-GCM under a master key that never enters Postgres.

An envelope is ``version (1 byte) | key id (4 bytes) | nonce (12) | ciphertext and tag``. The identity of the
row it belongs to is its associated data, so that an envelope copied into another row does not open.
The key file holds one key a line, ``<key id in hex> <key in base64>``; the first seals, all open (rotation).
This module must not log, cache or print what it opens.
"""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from common.errors import OperatorError, SecretUnreadable

_VERSION = b"\x01"
_KEY_ID_BYTES = 4
_NONCE_BYTES = 12
_HEADER_BYTES = 1 + _KEY_ID_BYTES + _NONCE_BYTES
CANARY_IDENTITY = "canary"
CANARY_TEXT = b"frontage"


@dataclass(frozen=True, slots=True)
class Keyring:
    """Master keys by id; `current` seals. Created by `load_keyring`, held by a role for its life."""

    current: bytes
    keys: dict[bytes, AESGCM]
    current_key: bytes = field(repr=False)

    def derive(self, purpose: str) -> bytes:
        """32 bytes for one purpose, the same in every process that has this key (HKDF, RFC 5869)."""
        return HKDF(SHA256(), 32, salt=None, info=purpose.encode()).derive(self.current_key)

    def seal(self, secret: bytes, identity: str) -> bytes:
        """An envelope that opens only with the same `identity`, e.g. ``"application/ab12/client-secret"``."""
        nonce = os.urandom(_NONCE_BYTES)
        return _VERSION + self.current + nonce + self.keys[self.current].encrypt(nonce, secret, identity.encode())

    def open(self, envelope: bytes, identity: str) -> bytes:
        """Raises: `SecretUnreadable` when the key, the identity or the bytes are not the ones sealed."""
        key = self.keys.get(envelope[1 : 1 + _KEY_ID_BYTES])
        if envelope[:1] != _VERSION or key is None:
            raise SecretUnreadable("the master key file does not hold the key this secret was sealed with")
        nonce = envelope[1 + _KEY_ID_BYTES : _HEADER_BYTES]
        try:
            return key.decrypt(nonce, envelope[_HEADER_BYTES:], identity.encode())
        except InvalidTag as error:
            raise SecretUnreadable("a stored secret is damaged or belongs to another row") from error


def load_keyring(path: Path, *, create: bool = False) -> Keyring:
    """Read the master key file, mode 0600; with `create`, make one where there is none.

    Raises: `OperatorError` when the file is missing, unreadable or not of the form above.
    """
    if create and not path.exists():
        _create_key_file(path)
    try:
        lines = path.read_text("ascii").split("\n")
    except FileNotFoundError as error:
        raise OperatorError(
            f"no master key at {path}: start `frontage up` or `frontage migrate` once, "
            "or point FRONTAGE_MASTER_KEY_FILE at it"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorError(f"cannot read the master key file {path}: {error}") from error
    keys: dict[bytes, bytes] = {}
    try:
        for line in filter(None, map(str.strip, lines)):
            key_id, key = line.split()
            keys[_parse_key_id(key_id)] = base64.b64decode(key, validate=True)
        ciphers = {key_id: AESGCM(key) for key_id, key in keys.items()}
    except ValueError as error:
        raise OperatorError(f"the master key file {path} is damaged: restore it from your backup") from error
    if not keys:
        raise OperatorError(f"the master key file {path} is empty: restore it from your backup")
    current, current_key = next(iter(keys.items()))
    return Keyring(current, ciphers, current_key)


def _parse_key_id(text: str) -> bytes:
    key_id = bytes.fromhex(text)
    if len(key_id) != _KEY_ID_BYTES:
        raise ValueError("a key id is four bytes")
    return key_id


def _create_key_file(path: Path) -> None:
    """Write a fresh key; whoever comes second keeps the first one's file."""
    line = f"{os.urandom(_KEY_ID_BYTES).hex()} {base64.b64encode(os.urandom(32)).decode()}\n"
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            return
        finally:
            draft.unlink()
    except OSError as error:
        raise OperatorError(f"cannot write the master key file {path}: {error.strerror or error}") from error
