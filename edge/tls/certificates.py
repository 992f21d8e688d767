"""The bounded cache of SSL contexts, and the budget for building them.

It owns which certificate a domain presents right now. It must not know handshakes or sockets.

- A context stands for one domain, one application and one record: when the replica's generation moves, both are
  read again at the next handshake, and a difference means another context. Live connections keep theirs.
- A context seals session tickets with its own key: `discard_older_than` ends the key's life.
- Only names with a record get a context. A record that cannot be used is remembered as such until it changes; one
  whose key does not open, only while the master key file stays the same. A failure of this machine, such as too few
  descriptors, is not remembered.
- An expired certificate is presented like any other: the browser's own warning explains more than an alert.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import ssl
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Final, Protocol

from common.errors import SecretUnreadable
from common.logs import get_logger
from common.secrets import Keyring
from edge.replica.certificate_keys import CertificateUse, key_identity
from edge.replica.records import CertificateRecord, RecordUnusable, read_record
from edge.replica.routes import TlsOptions, read_tls_options
from edge.tls.certificate_ends import end_of
from edge.tls.contexts import PROTOCOLS, ServerContext, build_context

_log = get_logger(__name__)

_REVIEWED_AT_ONCE: Final = 64
_SOON_SECONDS: Final = 31 * 86_400.0
_SHORTAGES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC})


class CertificateReader(Protocol):
    """The part of the replica that TLS reads; `edge.replica.reader.ReplicaReader` is one."""

    def generation(self) -> int:
        """Return the number that moves with each commit."""

    def get_raw(self, kind: str, key: str) -> bytes | None:
        """Return the content of a record, None if there is none."""

    def is_cut_off(self) -> bool:
        """Return whether Postgres is out of reach of this node."""

    def is_unattended(self) -> bool:
        """Return whether no monitor obtains certificates."""


class Missing(Enum):
    """Why there is no context at hand."""

    ABSENT = "the replica has no certificate for this name"
    UNBUILT = "there is a certificate; `build` makes its context"
    UNUSABLE = "there is a certificate, and it or its key cannot be used"


@dataclass(slots=True)
class _Entry:
    context: ServerContext | None  # none: unusable
    keys: int | None  # the keyring's revision under which the private key did not open; None: it opened
    digest: bytes
    options: TlsOptions
    generation: int
    built_at: float
    ends_at: float  # unix seconds


class CertificateCache:
    """Keeps the least recently used contexts by domain.

    Created by `TlsShared`; holds keys in memory while it lives.
    """

    def __init__(
        self,
        reader: CertificateReader,
        keyring: Keyring,
        *,
        capacity: int,
        now: Callable[[], float],
        protocols: Sequence[str] = PROTOCOLS,
    ) -> None:
        """Begin empty. `now` is monotonic, in seconds. `protocols` are offered by ALPN, the preferred first."""
        self._protocols = protocols
        self._reader = reader
        self._keyring = keyring
        self._now = now
        self._capacity = capacity
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._unusable: dict[str, None] = {}  # names of entries without a context; those reviewed last come last

    def find(self, domain: str) -> ServerContext | Missing:
        """Return the context to present now, without building one."""
        generation = self._reader.generation()  # before the record: a change in between is seen next time
        entry = self._entries.get(domain)
        if entry is None or entry.generation != generation:
            record = self._reader.get_raw("certificate", domain)
            if record is None:
                self.discard(domain)
                return Missing.ABSENT
            if entry is None or not self._is_current(entry, domain, record):
                return Missing.UNBUILT
            entry.generation = generation
        if entry.keys is not None and entry.keys != self._keyring.follow_file():
            return Missing.UNBUILT
        self._entries.move_to_end(domain)
        return entry.context or Missing.UNUSABLE

    def build(self, domain: str) -> ServerContext | Missing:
        """Build and keep the context (about a millisecond: ask the `BuildBudget` first)."""
        generation = self._reader.generation()
        record = self._reader.get_raw("certificate", domain)
        if record is None:
            self.discard(domain)
            return Missing.ABSENT
        options = read_tls_options(self._reader, domain)
        self.discard(domain)
        try:
            context, keys, ends_at = self._try_build(domain, record, options)
        except OSError as error:
            _log.error("certificate could not be loaded", domain=domain, error=str(error))
            return Missing.UNUSABLE
        self._entries[domain] = _Entry(context, keys, _digest(record), options, generation, self._now(), ends_at)
        if context is None:
            self._unusable[domain] = None
        if len(self._entries) > self._capacity:
            self.discard(next(iter(self._entries)))
        return context or Missing.UNUSABLE

    def discard(self, domain: str) -> None:
        """Forget what is known of the domain."""
        self._entries.pop(domain, None)
        self._unusable.pop(domain, None)

    def discard_older_than(self, seconds: float) -> None:
        """Discard contexts built longer ago, used or not: their session tickets are void from now on."""
        built_before = self._now() - seconds
        for domain in [domain for domain, entry in self._entries.items() if entry.built_at < built_before]:
            self.discard(domain)

    def review(self) -> CertificateUse:
        """Return how many of the certificates that were asked for can be used.

        Names whose record or key file has changed are forgotten first, some at each call: they are built at their next
        handshake.
        """
        for domain in list(islice(self._unusable, _REVIEWED_AT_ONCE)):
            del self._unusable[domain]
            if self.find(domain) is Missing.UNUSABLE:
                self._unusable[domain] = None
            else:
                self.discard(domain)
        unusable = len(self._unusable)
        return CertificateUse(len(self._entries) - unusable, unusable, next(iter(self._unusable), None))

    def ends(self, now: float) -> list[float]:
        """Return when the certificates end that clients of this worker were presented lately, in unix seconds.

        Of those that end soon after `now`, only such as another has not replaced.
        """
        soon = now + _SOON_SECONDS
        return [
            entry.ends_at
            for domain, entry in self._entries.items()
            if entry.context is not None and (entry.ends_at > soon or self._is_in_service(entry, domain))
        ]

    def _is_in_service(self, entry: _Entry, domain: str) -> bool:
        record = self._reader.get_raw("certificate", domain)
        return record is not None and entry.digest == _digest(record)

    def _is_current(self, entry: _Entry, domain: str, record: bytes) -> bool:
        return entry.digest == _digest(record) and entry.options == read_tls_options(self._reader, domain)

    def _try_build(
        self, domain: str, content: bytes, options: TlsOptions
    ) -> tuple[ServerContext | None, int | None, float]:
        """Return the context, or None with the revision of the keys if these are what it fails for; and its end.

        Raises: OSError where this machine lacks what it takes.
        """
        try:
            record = read_record(CertificateRecord, content)
            # Postgres breaks base64 into lines, so it is not decoded strictly; the envelope proves itself.
            envelope = base64.b64decode(record.private_key)
            key = self._keyring.open(envelope, key_identity(domain))
            protocols = self._protocols if options.offers_http2 else PROTOCOLS
            context = build_context(record.chain, key, protocols)
            if options.needs_tls13:
                context.minimum_version = ssl.TLSVersion.TLSv1_3
            return context, None, end_of(record.chain)
        except (RecordUnusable, SecretUnreadable, ValueError, OSError) as error:  # ssl.SSLError is an OSError
            if isinstance(error, OSError) and error.errno in _SHORTAGES:
                raise
            _log.error("certificate cannot be used", domain=domain, error=type(error).__name__)
            return None, self._keyring.revision if isinstance(error, SecretUnreadable) else None, 0.0


class BuildBudget:
    """Allows so many builds a second, and a burst of them at once.

    Kept as the time when all builds so far are paid for.
    """

    def __init__(self, *, per_second: float, burst: int) -> None:
        self._seconds_each = 1 / per_second
        self._credit_seconds = burst * self._seconds_each
        self._paid_at = 0.0

    def take(self, now: float) -> float:
        """Return 0.0 to build now, otherwise the seconds to wait before asking again."""
        paid_at = max(self._paid_at, now) + self._seconds_each
        wait = paid_at - now - self._credit_seconds
        if wait > 1e-9:
            return wait
        self._paid_at = paid_at
        return 0.0


def _digest(record: bytes) -> bytes:
    return hashlib.sha256(record).digest()
