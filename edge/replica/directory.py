"""Opens the replica's directory: where it lies, who may write, which form it has. Decides nothing about its content.

An LMDB environment of three databases: two copies, of which one serves, and ``meta`` that names it. A copy maps
``<kind>/<key>`` to the content as Postgres wrote it, JSON text. A directory has one writer, by `common.file_locks`, and
any number of readers.
"""

from __future__ import annotations

import os
from pathlib import Path

import lmdb

from common.atomic_files import replace_file
from common.errors import OperatorError
from common.file_locks import FileLock

FORMAT = 1
META = b"meta"
COPIES = (b"copy-0", b"copy-1")

_MAP_BYTES = 64 << 30  # address space, not disk: the file grows as it is filled
_MAX_READERS = 1024
_REMOTE_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "fuse.glusterfs", "fuse.sshfs"}
)


def replica_path(state_dir: Path) -> Path:
    """Return where the replica lies."""
    return state_dir / "edge" / "replica"


def entry_key(kind: str, key: str) -> bytes:
    """Return the key of an entry in a copy."""
    return f"{kind}/{key}".encode()


def open_for_writing(path: Path) -> tuple[lmdb.Environment, FileLock]:
    """Return the environment, made if there is none, and the lock that keeps other writers out until closed.

    Raises: `OperatorError`.
    """
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        _refuse_remote(path)
        lock = _lock(path)
        try:
            _check_format(path, create=True)
            return _open(path, writing=True), lock
        except BaseException:
            lock.release()
            raise
    except OSError as error:
        raise OperatorError(f"cannot use the replica's directory {path}: {error.strerror or error}") from error


def open_for_reading(path: Path) -> lmdb.Environment:
    """Return the environment.

    Raises: `OperatorError`, also when no writer has made the environment yet.
    """
    try:
        _check_format(path, create=False)
    except OSError as error:
        raise OperatorError(f"there is no replica to read at {path}: {error.strerror}") from error
    return _open(path, writing=False)


def _open(path: Path, *, writing: bool) -> lmdb.Environment:
    try:
        return lmdb.open(
            str(path),
            map_size=_MAP_BYTES,
            max_dbs=1 + len(COPIES),
            max_readers=_MAX_READERS,
            readonly=not writing,
            create=writing,
            readahead=False,
            mode=0o600,
        )
    except lmdb.Error as error:
        raise OperatorError(
            f"cannot open the replica at {path} ({error}): if it is damaged, move it away and it is copied afresh"
        ) from error


def _lock(path: Path) -> FileLock:
    lock = FileLock.try_acquire(path / "writer.lock")
    if lock is None:
        raise OperatorError(
            f"another edge already runs on {path.parents[1]}: stop it, or give this one a FRONTAGE_STATE_DIR of its"
            " own, with FRONTAGE_MASTER_KEY_FILE naming the key that the first one has"
        )
    return lock


def _check_format(path: Path, *, create: bool) -> None:
    file = path / "format"
    if create and not file.exists():
        replace_file(file, f"{FORMAT}\n".encode())
    found = file.read_text("ascii", "replace").strip()
    if found != str(FORMAT):
        raise OperatorError(
            f"the replica at {path} has format {found}, this program writes {FORMAT}: "
            "move it away and it is copied afresh"
        )


def _refuse_remote(path: Path) -> None:
    """Refuse a network file system: LMDB's locks and maps work among processes of one machine only."""
    kind = _file_system(path)
    if kind in _REMOTE_FILE_SYSTEMS:
        raise OperatorError(f"FRONTAGE_STATE_DIR lies on {kind}, a network file system: the replica needs a local one")


def _file_system(path: Path) -> str | None:
    """Return the type of the file system of `path` (proc(5), mountinfo); None where that is unknown."""
    device = os.stat(path).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        mounts = Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    for mount in mounts:
        fields, _, tail = mount.partition(" - ")
        if fields.split()[2] == wanted:
            return tail.split()[0]
    return None
