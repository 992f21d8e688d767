"""Checks, a slice at a time, that the stored entries still match the checksum that was compared with Postgres.

The checksum is kept up to date with each change, and compared with the feed's at each catch-up. It does not show what
has changed on the disk since. So all that is stored is read again in the order of its names, a slice at each renewal of
the lease; changes that are committed meanwhile to names that were read already are counted in.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import lmdb

from common.db.feed import digest

_LEAST_ENTRIES = 500
_SLICES = 600
"""Renewals of a lease, one a second, in which a large replica is read once."""


class Proof:
    """One reading of the copy that serves. All of it is called in the thread that writes the replica."""

    def __init__(self) -> None:
        self._copy: Any = None
        self._after = b""
        self._sum = 0

    def changed(self, changes: Iterable[tuple[bytes, int]]) -> None:
        """Count in changes that were committed: names, and the XOR of the digests before and after."""
        for name, change in changes:
            if name <= self._after:
                self._sum ^= change

    def read_on(self, environment: lmdb.Environment, copy: Any, checksum: int) -> bool | None:
        """Read a slice. At the end, return whether the sum is `checksum`, and begin again; None before.

        `copy`: the one that serves. Another one than before is read from its beginning.
        """
        if copy is not self._copy:
            self._copy, self._after, self._sum = copy, b"", 0
        with environment.begin(db=copy) as transaction:
            most = max(_LEAST_ENTRIES, transaction.stat(copy)["entries"] // _SLICES)
            cursor = transaction.cursor()
            is_more = cursor.set_range(self._after + b"\0")
            for _ in range(most):
                if not is_more:
                    found, self._copy = self._sum == checksum, None
                    return found
                name, content = cursor.item()
                self._after = bytes(name)
                kind, _, key = self._after.decode().partition("/")
                self._sum ^= digest(kind, key, bytes(content).decode(errors="replace"))
                is_more = cursor.next()
        return None
