"""Reading the replica: what a worker asks while it serves. A question costs about a microsecond.

No read transaction outlives a call, so no reader ever keeps the writer from reusing pages.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lmdb
import orjson

from edge.replica.directory import COPIES, META, entry_key, open_for_reading

SERVING = b"serving"
"""In ``meta``: the index of the copy that serves, one ASCII digit; absent while nothing was ever copied."""
WRITER_CUT_OFF = b"cut-off"
"""In ``meta``: there while the writer is cut off from Postgres."""
UNATTENDED = b"unattended"
"""In ``meta``: there while no monitor obtains certificates."""
_CERTIFICATES = b"certificate/"


class ReplicaReader:
    """Reads the replica for one thread. One a process (LMDB's rule); made and closed by the worker."""

    def __init__(self, path: Path, *, environment: lmdb.Environment | None = None) -> None:
        """Open the replica. `environment`: the writer's own, for reading in the process that writes.

        Raises: `OperatorError` when there is no replica at `path`.
        """
        self._is_owner = environment is None
        self._environment = environment or open_for_reading(path)
        self._meta = self._environment.open_db(META, create=False)
        self._copies = [self._environment.open_db(name, create=False) for name in COPIES]
        self._seen = -1
        self._serving: Any = None

    def generation(self) -> int:
        """Return the number that moves with each commit. Ask before reading what is to be remembered under it."""
        with self._environment.begin() as transaction:  # a fifth of what `info` costs
            return transaction.id()

    def get_raw(self, kind: str, key: str) -> bytes | None:
        """Return the content as stored: JSON text."""
        with self._environment.begin() as transaction:
            moment = transaction.id()
            if moment != self._seen:
                serving = transaction.get(SERVING, db=self._meta)
                self._serving = None if serving is None else self._copies[int(serving)]
                self._seen = moment
            if self._serving is None:
                return None
            return transaction.get(entry_key(kind, key), db=self._serving)

    def get(self, kind: str, key: str) -> dict[str, Any] | None:
        """Return the content, decoded."""
        content = self.get_raw(kind, key)
        return None if content is None else orjson.loads(content)

    def is_cut_off(self) -> bool:
        """Return whether Postgres has not answered this node for a whole lease period."""
        with self._environment.begin(db=self._meta) as transaction:
            return transaction.get(WRITER_CUT_OFF) is not None

    def is_unattended(self) -> bool:
        """Return whether no monitor obtains certificates, as far as the writer knows."""
        with self._environment.begin(db=self._meta) as transaction:
            return transaction.get(UNATTENDED) is not None

    def sample_certificates(self) -> dict[str, bytes]:
        """Return the contents of the first and the last certificate, by domain.

        There are fewer where the replica has not as many.
        """
        with self._environment.begin() as transaction:
            serving = transaction.get(SERVING, db=self._meta)
            if serving is None:
                return {}
            with transaction.cursor(db=self._copies[int(serving)]) as cursor:
                found: dict[bytes, bytes] = {}
                if cursor.set_range(_CERTIFICATES):
                    found[cursor.key()] = cursor.value()
                if cursor.set_range(_CERTIFICATES + b"\xff"):
                    cursor.prev()
                elif not cursor.last():
                    return {}
                found[cursor.key()] = cursor.value()
        return {
            key.removeprefix(_CERTIFICATES).decode(): content
            for key, content in found.items()
            if key.startswith(_CERTIFICATES)
        }

    def close(self) -> None:
        """Close the replica, unless the environment is the writer's."""
        if self._is_owner:
            self._environment.close()
