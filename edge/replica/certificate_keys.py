"""Decides whether the private keys of certificates can be used here; workers and supervisor judge alike.

It imports no database, whose modules would lengthen the start of a worker.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from common.errors import SecretUnreadable
from common.secrets import Keyring
from edge.replica.records import CertificateRecord, RecordUnusable, read_record

_FEW: Final = 5
"""So many unusable certificates may be no more than damaged records of single domains."""


@dataclass(frozen=True, slots=True)
class CertificateUse:
    """How many of the certificates that a worker was asked for lately it can use, and how many not.

    `example` is the domain of one of the latter; `lacks_key`: its master keys open none, or lack one that is in use.
    """

    usable: int = 0
    unusable: int = 0
    example: str | None = None
    lacks_key: bool = False

    @property
    def is_failing(self) -> bool:
        """Return whether most handshakes fail here."""
        return self.lacks_key or (self.unusable > _FEW and self.unusable >= self.usable)


def worst_use(uses: Iterable[CertificateUse]) -> CertificateUse:
    """Return what the worker with the most unusable certificates reports: workers are asked for the same names."""
    return max(uses, key=lambda each: (each.is_failing, each.unusable), default=CertificateUse())


def key_identity(domain: str) -> str:
    """Return the identity of a domain's key, as `common.db.certificates.key_identity`."""
    return f"certificate/{domain}/private-key"


def is_key_missing(keyring: Keyring, sample: Mapping[str, bytes]) -> bool:
    """Return whether `keyring` lacks the master key of a record in `sample` (by domain), or opens none of them.

    It opens none where other bytes have the same key id. A damaged record among others does not count.
    """
    envelopes = {key_identity(domain): _envelope(record) for domain, record in sample.items()}
    sealed = {identity: envelope for identity, envelope in envelopes.items() if envelope is not None}
    if not all(keyring.has_key_for(envelope, identity) for identity, envelope in sealed.items()):
        return True
    return bool(sealed) and not any(_opens(keyring, envelope, identity) for identity, envelope in sealed.items())


def _opens(keyring: Keyring, envelope: bytes, identity: str) -> bool:
    try:
        keyring.open(envelope, identity)
    except SecretUnreadable:
        return False
    return True


def _envelope(certificate: bytes) -> bytes | None:
    """Return the key's envelope, None where the record is damaged."""
    try:
        return base64.b64decode(read_record(CertificateRecord, certificate).private_key)
    except (RecordUnusable, binascii.Error):
        return None
