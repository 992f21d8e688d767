"""Envelopes: secrets at rest, AES-256-GCM under a master key that never enters Postgres.

An envelope is ``version (1 byte) | key id (4 bytes) | nonce (12) | ciphertext and tag``. The identity of the
row it belongs to is its associated data, so that an envelope copied into another row does not open.
A master key seals nothing itself: each room has a key of its own, derived from it (HKDF, RFC 5869). The room of an edge
holds what edges present or send (certificates' keys, X-Service-Auth tokens, signature keys); all else, such as client
secrets, webhook secrets and CA accounts' keys, is in the other. Envelopes of version 1 were sealed under the master key
itself; they open with the whole key only.
The key file holds one key a line, ``<key id in hex> <key in base64>``; the first seals, all open. The file of an edge
may hold the keys of the edges' room only: ``<key id in hex> edge <key in base64>`` (`api.cli.master_key`, export).
A file that is replaced while a role runs (rotation) is read again: before anything is sealed, and when an envelope
does not open.
This module must not log, cache or print what it opens.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from common import atomic_files
from common.errors import OperatorError, SecretUnreadable

_VERSION = b"\x02"
_MASTER_VERSION = b"\x01"
"""Sealed under the master key itself, before there were rooms."""
_KEY_ID_BYTES = 4
_NONCE_BYTES = 12
_HEADER_BYTES = 1 + _KEY_ID_BYTES + _NONCE_BYTES
_EDGE_ONLY = "this key file opens the secrets of edges only: it is for edges"
CANARY_IDENTITY = "canary"
CANARY_TEXT = b"frontage"
SEALED_FILES: Mapping[str, str] = MappingProxyType({"ca/root.key": "ca/root-key"})
"""Envelopes in a state directory, by their identity: the internal issuer's key (`monitor.certificates.internal`)."""


EDGE_PURPOSES = frozenset({"private-key", "service-auth", "signature-key"})
"""Last parts of the identities of secrets that an edge opens."""

Room: TypeAlias = Literal["edge", "control"]
_ROOMS: tuple[Room, ...] = get_args(Room)
_Stamp: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class MasterKey:
    """A line of the key file.

    `room` is set if it holds the key of that room only, instead of the master key.
    """

    id: bytes
    key: bytes = field(repr=False)
    room: Room | None = None

    @property
    def line(self) -> str:
        """The key as a line of the key file."""
        key = base64.b64encode(self.key).decode()
        return " ".join(filter(None, (self.id.hex(), self.room, key))) + "\n"

    def room_key(self, room: Room) -> bytes | None:
        """Return the key of that room, or None if this line does not give it."""
        if self.room is None:
            return _derive(self.key, f"room/{room}")
        return self.key if self.room == room else None

    def of_edge(self) -> MasterKey:
        """Return the part of the key that an edge needs."""
        key = self.room_key("edge")
        assert key is not None, "every line gives the edges' room"
        return MasterKey(self.id, key, "edge")


def room_of(identity: str) -> Room:
    """Return the room of a secret with this identity."""
    return "edge" if identity.rpartition("/")[2] in EDGE_PURPOSES else "control"


def new_master_key() -> MasterKey:
    """Make a random master key."""
    return MasterKey(os.urandom(_KEY_ID_BYTES), os.urandom(32))


class Keyring:
    """Seals and opens secrets with the master keys of a file. Created by `load_keyring`, held by a role for its life.

    Mutable state: the keys, as the file last had them. A file that is gone or damaged meanwhile changes nothing.
    `revision` counts the files read: what did not open under one revision may open under the next.
    """

    def __init__(self, path: Path) -> None:
        """Read the key file.

        Raises: `OperatorError`.
        """
        self._path = path
        self._stamp = _file_stamp(path)
        self.revision = 0
        self._take(read_key_file(path))

    def __repr__(self) -> str:
        return f"<Keyring {self._current.hex()} of {len(self._ids)}>"

    @property
    def current(self) -> bytes:
        """The id of the key that seals."""
        self.follow_file()
        return self._current

    @property
    def ids(self) -> frozenset[bytes]:
        """The ids of all keys in the file."""
        self.follow_file()
        return self._ids

    @property
    def is_for_edges(self) -> bool:
        """Whether it seals and opens the secrets of edges only."""
        return (self.current, "control") not in self._ciphers

    def derive(self, purpose: str) -> bytes:
        """Derive 32 bytes for one purpose, the same in every process that has this key or its edges' part."""
        self.follow_file()
        return _derive(self._edge_key, purpose)

    def seal(self, secret: bytes, identity: str) -> bytes:
        """Seal a secret into an envelope that opens only with the same `identity`.

        An identity is such as ``"application/ab12/client-secret"``.
        """
        current, nonce = self.current, os.urandom(_NONCE_BYTES)
        cipher = self._ciphers.get((current, room_of(identity)))
        if cipher is None:
            raise SecretUnreadable(_EDGE_ONLY)
        return _VERSION + current + nonce + cipher.encrypt(nonce, secret, identity.encode())

    def open(self, envelope: bytes, identity: str) -> bytes:
        """Open an envelope.

        Raises: `SecretUnreadable` when the key, the identity or the bytes are not the ones sealed.
        """
        revision = self.revision
        try:
            return self._open(envelope, identity)
        except SecretUnreadable:
            if self.follow_file() == revision:
                raise
        return self._open(envelope, identity)

    def _open(self, envelope: bytes, identity: str) -> bytes:
        key_id = key_id_of(envelope)
        if envelope[:1] not in {_VERSION, _MASTER_VERSION} or key_id not in self._ids:
            raise SecretUnreadable("the master key file does not hold the key this secret was sealed with")
        key = self._ciphers.get((key_id, room_of(identity) if envelope[:1] == _VERSION else None))
        if key is None:
            raise SecretUnreadable(_EDGE_ONLY)
        nonce = envelope[1 + _KEY_ID_BYTES : _HEADER_BYTES]
        try:
            return key.decrypt(nonce, envelope[_HEADER_BYTES:], identity.encode())
        except InvalidTag as error:
            raise SecretUnreadable("a stored secret is damaged or belongs to another row") from error

    def has_key_for(self, envelope: bytes, identity: str) -> bool:
        """Return whether the key file has the key that the envelope was sealed under.

        The envelope is not opened: one that is damaged passes, and so does what has not the form of an
        envelope.
        """
        if envelope[:1] not in {_VERSION, _MASTER_VERSION} or len(envelope) <= _HEADER_BYTES:
            return True
        if key_id_of(envelope) not in self._ids:
            self.follow_file()
        room = room_of(identity) if envelope[:1] == _VERSION else None
        return (key_id_of(envelope), room) in self._ciphers

    def follow_file(self) -> int:
        """Read the file again if another has taken its place; return the `revision`."""
        stamp = _file_stamp(self._path)
        if stamp not in (None, self._stamp):
            with suppress(OperatorError):
                self._take(read_key_file(self._path))
                self._stamp = stamp
                self.revision += 1
        return self.revision

    def _take(self, keys: tuple[MasterKey, ...]) -> None:
        ciphers: dict[tuple[bytes, Room | None], AESGCM] = {}
        for each in keys:
            if each.room is None:
                ciphers[each.id, None] = AESGCM(each.key)
            for room in _ROOMS:
                if (room_key := each.room_key(room)) is not None:
                    ciphers[each.id, room] = AESGCM(room_key)
        self._ids = frozenset(each.id for each in keys)
        self._ciphers: Mapping[tuple[bytes, Room | None], AESGCM] = ciphers
        self._current, self._edge_key = keys[0].id, keys[0].of_edge().key


def _derive(key: bytes, purpose: str) -> bytes:
    return HKDF(SHA256(), 32, salt=None, info=purpose.encode()).derive(key)


def key_id_of(envelope: bytes) -> bytes:
    """Return the id of the master key that the envelope was sealed under."""
    return envelope[1 : 1 + _KEY_ID_BYTES]


def _file_stamp(path: Path) -> _Stamp | None:
    """Return a value that differs for each file that takes the path's place, or None without a file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def load_keyring(path: Path, *, create: bool = False) -> Keyring:
    """Read the master key file, mode 0600; with `create`, make one where there is none.

    Raises: `OperatorError` when the file is missing, unreadable or not of the form above.
    """
    if create and not path.exists():
        _create_key_file(path)
    return Keyring(path)


def read_key_file(path: Path) -> tuple[MasterKey, ...]:
    """Read the keys of a file, at least one; the first seals.

    Raises: `OperatorError`.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise OperatorError(
            f"no master key at {path}: if Frontage runs already, set the FRONTAGE_ variables that it was started with, "
            "FRONTAGE_STATE_DIR or FRONTAGE_MASTER_KEY_FILE; if the database has been used before, restore the file; "
            "otherwise `frontage up` or `frontage migrate` makes it"
        ) from error
    except OSError as error:
        raise OperatorError(f"cannot read the master key file {path}: {error.strerror}") from error
    keys: dict[bytes, MasterKey] = {}
    try:
        for line in filter(None, map(str.strip, content.decode("ascii").split("\n"))):
            key = _parse_line(line)
            keys[key.id] = key
    except ValueError as error:
        raise OperatorError(f"the master key file {path} is damaged: restore it from your backup") from error
    if not keys:
        raise OperatorError(f"the master key file {path} is empty: restore it from your backup")
    return tuple(keys.values())


def write_key_file(path: Path, keys: Sequence[MasterKey]) -> None:
    """Replace the key file with one that holds `keys`; the first seals.

    Raises: `OperatorError`.
    """
    replace_file(path, "".join(each.line for each in keys).encode())


def create_key_file(path: Path, keys: Sequence[MasterKey]) -> None:
    """Write a new file, mode 0600.

    Raises: `OperatorError`, also when the file exists.
    """
    try:
        atomic_files.write_new_file(path, "".join(each.line for each in keys).encode())
    except OSError as error:
        raise OperatorError(f"cannot write {path}: {error.strerror or error}") from error


def replace_file(path: Path, content: bytes) -> None:
    """Replace the file at `path` at once and durably; it keeps its owner, and only the owner can read it.

    Raises: `OperatorError`.
    """
    target = path.resolve()
    try:
        owner = target.stat()
        atomic_files.replace_file(target, content, owner=(owner.st_uid, owner.st_gid))
    except OSError as error:
        raise OperatorError(f"cannot write {path}: {error.strerror or error}") from error


def _parse_line(line: str) -> MasterKey:
    """Parse a line of the key file.

    Raises: `ValueError`.
    """
    key_id, *room, text = line.split()
    key = base64.b64decode(text, validate=True)
    AESGCM(key)
    if room not in ([], ["edge"]):
        raise ValueError("a line has a key id, perhaps a room, and a key")
    return MasterKey(_parse_key_id(key_id), key, "edge" if room else None)


def _parse_key_id(text: str) -> bytes:
    key_id = bytes.fromhex(text)
    if len(key_id) != _KEY_ID_BYTES:
        raise ValueError("a key id is four bytes")
    return key_id


def _create_key_file(path: Path) -> None:
    """Write a fresh key; a process that comes second uses the first one's file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        atomic_files.create_file(path, new_master_key().line.encode())
    except OSError as error:
        raise OperatorError(f"cannot write the master key file {path}: {error.strerror or error}") from error
