"""Records of an established TLS 1.3 connection that no engine would write: key updates and tickets by the thousand."""

from __future__ import annotations

import struct
from pathlib import Path

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

APPLICATION_DATA, HANDSHAKE = 23, 22
TICKET = b"\x04\x00\x00\x0f" + struct.pack("!IIBBHBH", 3600, 1, 1, 0x61, 1, 0x74, 0)  # RFC 8446 §4.6.1


class RecordWriter:
    """Writes what one side sends behind its handshake (RFC 8446 §5.2, §7.2), with a suite of AES-GCM."""

    def __init__(self, key_log: Path, label: str) -> None:
        """`label`, as in the log of keys, says which side that is."""
        secret = next(line.split()[2] for line in key_log.read_text().splitlines() if line.startswith(label))
        self._secret = bytes.fromhex(secret)
        self._hash = hashes.SHA384() if len(self._secret) == 48 else hashes.SHA256()
        self._use_secret()

    def record(self, content: bytes, kind: int = APPLICATION_DATA) -> bytes:
        inner = content + bytes([kind])
        header = b"\x17\x03\x03" + struct.pack("!H", len(inner) + 16)
        nonce = int.from_bytes(self._iv, "big") ^ self._sequence
        self._sequence += 1
        return header + self._aead.encrypt(nonce.to_bytes(12, "big"), inner, header)

    def key_update(self, *, is_answered: bool) -> bytes:
        record = self.record(bytes((24, 0, 0, 1, is_answered)), HANDSHAKE)
        self._secret = self._expand(b"traffic upd", len(self._secret))
        self._use_secret()
        return record

    def _use_secret(self) -> None:
        self._aead = AESGCM(self._expand(b"key", 32 if len(self._secret) == 48 else 16))
        self._iv = self._expand(b"iv", 12)
        self._sequence = 0

    def _expand(self, label: bytes, size: int) -> bytes:
        label = b"tls13 " + label
        info = struct.pack("!HB", size, len(label)) + label + b"\x00"
        return HKDFExpand(self._hash, size, info).derive(self._secret)
