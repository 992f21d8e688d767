"""Writes the replica: changes in one transaction, or a whole copy beside the serving one and then a swap.

Content, version and checksum are committed together, so that after a crash the replica is what it was before or what
it was to become. The checksum is over what is really stored. Everything here blocks; all of it is called from one
thread, which LMDB's write transactions are bound to. Whether to apply, copy or hold is decided elsewhere.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import cast

import lmdb
import orjson

from common.db.feed import FeedEntry, Head, digest
from edge.replica.directory import COPIES, META, entry_key, open_for_writing
from edge.replica.proof import Proof
from edge.replica.reader import SERVING, UNATTENDED, WRITER_CUT_OFF, ReplicaReader

_STATE = b"state"
_NODE = b"node"
_ROUTE = "route"


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """The replica's own record of its state. `positions` are its versions in each shard of the feed.

    `skew` is the difference between its checksum and the feed's when it was copied: zero, unless the feed differed from
    its tables.
    """

    serving: int = 0
    identity: str | None = None
    version: int = 0
    checksum: int = 0
    skew: int = 0
    routes: int = 0
    positions: tuple[int, ...] = ()

    @classmethod
    def from_stored(cls, stored: bytes) -> ReplicaState:
        """Return the state that `Store.write_state` wrote; before the feed had shards, without positions."""
        fields = orjson.loads(stored)
        return cls(**fields | {"positions": tuple(fields.get("positions", [fields["version"]]))})

    def equals(self, head: Head) -> bool:
        """Return whether the replica equals the feed at `head`."""
        return (self.identity, self.version, self.checksum ^ self.skew) == (head.identity, head.version, head.checksum)


class Store:
    """Writes a replica, as its only writer. Created by the replicator, which closes it."""

    def __init__(self, path: Path) -> None:
        """Open the directory.

        Raises: `OperatorError` when it cannot be used or another process writes there.
        """
        self.environment, self._lock = open_for_writing(path)
        self.meta = self.environment.open_db(META)
        self.copies = [self.environment.open_db(name) for name in COPIES]
        with self.environment.begin(write=True, db=self.meta) as transaction:
            stored = transaction.get(_STATE)
            self.state = ReplicaState.from_stored(stored) if stored else ReplicaState()
            transaction.put(_NODE, secrets.token_hex(16).encode(), overwrite=False)
            self.node_id = cast("bytes", transaction.get(_NODE)).decode()
            self.is_cut_off = transaction.get(WRITER_CUT_OFF) is not None
            self.is_unattended = transaction.get(UNATTENDED) is not None
        self.proof = Proof()

    def write_state(self, transaction: lmdb.Transaction, state: ReplicaState) -> None:
        """Write the state within the transaction."""
        transaction.put(_STATE, orjson.dumps(asdict(state)), db=self.meta)
        transaction.put(SERVING, b"%d" % state.serving, db=self.meta)

    def set_flags(self, *, is_cut_off: bool, is_unattended: bool) -> None:
        """Publish them to readers, workers of a later life of this node included."""
        with self.environment.begin(write=True, db=self.meta) as transaction:
            for name, is_set in ((WRITER_CUT_OFF, is_cut_off), (UNATTENDED, is_unattended)):
                if is_set:
                    transaction.put(name, b"")
                else:
                    transaction.delete(name)
        self.is_cut_off, self.is_unattended = is_cut_off, is_unattended

    def prove(self) -> bool | None:
        """Read a part of what is stored. At the end of it, return whether all is as it was written; None before."""
        return self.proof.read_on(self.environment, self.copies[self.state.serving], self.state.checksum)

    def reader(self) -> ReplicaReader:
        """Return a reader for this process, which may open the environment only once."""
        return ReplicaReader(Path(self.environment.path()), environment=self.environment)

    def close(self) -> None:
        """Close the environment, and let another writer open it."""
        self.environment.close()
        self._lock.release()


class Update:
    """Writes changes into the serving copy: invisible until `commit`, nothing after `abort`.

    Made anywhere, then `begin`, `put` and `commit` in the thread, and `abort` at last in any case.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._copy = store.copies[store.state.serving]
        self._checksum = store.state.checksum
        self._routes = store.state.routes
        self._changes: list[tuple[bytes, int]] = []
        self._transaction: lmdb.Transaction | None = None

    def begin(self) -> None:
        """Begin the transaction."""
        self._transaction = self._store.environment.begin(write=True)

    def put(self, entries: Iterable[FeedEntry]) -> None:
        """Write these entries."""
        transaction = self._open()
        for kind, key, content, _ in entries:
            name = entry_key(kind, key)
            old = transaction.get(name, db=self._copy)
            change = 0
            if old is not None:
                change ^= digest(kind, key, cast("bytes", old).decode())
            if content is not None:
                change ^= digest(kind, key, content)
                transaction.put(name, content.encode(), db=self._copy)
            elif old is not None:
                transaction.delete(name, db=self._copy)
            self._checksum ^= change
            self._changes.append((name, change))
            if kind == _ROUTE:
                self._routes += (content is not None) - (old is not None)

    def commit(self, head: Head) -> bool:
        """Commit. Return False, with nothing written, if the replica would not equal the feed at `head`."""
        state = replace(
            self._store.state,
            identity=head.identity,
            version=head.version,
            checksum=self._checksum,
            routes=self._routes,
            positions=head.positions,
        )
        if not state.equals(head):
            return False
        transaction = self._open()
        self._store.write_state(transaction, state)
        transaction.commit()
        self._store.state = state
        self._store.proof.changed(self._changes)
        return True

    def abort(self) -> None:
        """Write nothing; harmless after `commit`."""
        if self._transaction is not None:
            self._transaction.abort()

    def _open(self) -> lmdb.Transaction:
        assert self._transaction is not None, "begin comes first"
        return self._transaction


class Copy:
    """Writes a whole copy of the feed at `head` beside the one that serves, in transactions of bounded size."""

    def __init__(self, store: Store, head: Head) -> None:
        self._store = store
        self._head = head
        self._old = store.copies[store.state.serving]
        self._beside = 1 - store.state.serving
        self._new = store.copies[self._beside]
        self._checksum = 0
        self._routes = 0
        self._kept_routes = 0
        with store.environment.begin(write=True) as transaction:
            transaction.drop(self._new, delete=False)

    @property
    def removed_routes(self) -> int:
        """Return how many routes serve now and would not after `swap`."""
        return self._store.state.routes - self._kept_routes

    def put(self, entries: Iterable[FeedEntry]) -> None:
        """Write these entries."""
        with self._store.environment.begin(write=True, db=self._new) as transaction:
            for kind, key, content, _ in entries:
                if content is None:
                    continue
                name = entry_key(kind, key)
                transaction.put(name, content.encode())
                self._checksum ^= digest(kind, key, content)
                if kind == _ROUTE:
                    self._routes += 1
                    self._kept_routes += transaction.get(name, db=self._old) is not None

    def swap(self) -> ReplicaState:
        """Serve the copy and forget the old one; the state now stored."""
        state = ReplicaState(
            serving=self._beside,
            identity=self._head.identity,
            version=self._head.version,
            checksum=self._checksum,
            skew=self._checksum ^ self._head.checksum,
            routes=self._routes,
            positions=self._head.positions,
        )
        with self._store.environment.begin(write=True) as transaction:
            self._store.write_state(transaction, state)
            transaction.drop(self._old, delete=False)
        self._store.state, self._store.proof = state, Proof()
        return state
