"""Builds applications from the replica's records, once for all of their routes.

Secrets are opened here, and only here. A secret that does not open is done without: the origin will refuse what lacks
its token or signature, which is better than not serving those that do not care. It is tried again once the master key
file is another.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import NamedTuple

from common.errors import SecretUnreadable
from common.logs import get_logger
from common.secrets import Keyring
from edge.replica.records import (
    ApplicationRecord,
    RecordReader,
    RecordUnusable,
    read_record,
)
from edge.replica.response_policies import application_policy
from edge.routing.response_policy import ResponsePolicy
from edge.routing.route import Signing

_MAX_REMEMBERED = 65_536

_log = get_logger("edge.replica.applications")


@dataclass(frozen=True, slots=True, eq=False)
class ReplicatedApplication:
    """An application as served. Replaced, never changed; the very object stays while the record does.

    `record` is None when it is unusable.
    """

    id: str
    content: bytes
    record: ApplicationRecord | None
    response_policy: ResponsePolicy | None = None
    service_auth: bytes = b""
    signing: Signing | None = None


class _RememberedApplication(NamedTuple):
    generation: int
    application: ReplicatedApplication
    revision: int  # of the keyring, before the secrets were opened


class ApplicationTable:
    """Remembers the applications of one route table, which owns it."""

    def __init__(self, reader: RecordReader, keyring: Keyring) -> None:
        self._reader = reader
        self._keyring = keyring
        self._applications: dict[str, _RememberedApplication] = {}
        self._unreadable: set[str] = set()  # of applications with a secret that does not open

    @property
    def lacks_secrets(self) -> bool:
        """Return whether a secret of an application does not open."""
        return bool(self._unreadable)

    def find(self, application_id: str, generation: int) -> ReplicatedApplication | None:
        """Return the application as it was at this generation or is by now."""
        known = self._applications.get(application_id)
        if known is not None and known.generation == generation:
            return known.application
        content = self._reader.get_raw("application", application_id)
        if content is None:
            self._applications.pop(application_id, None)
            self._unreadable.discard(application_id)
            return None
        revision = self._keyring.revision
        if known is not None and self._is_current(known, content):
            application = known.application
        else:
            self._unreadable.discard(application_id)
            application = self._build(application_id, content)
        if known is None and len(self._applications) >= _MAX_REMEMBERED:
            self._applications.pop(next(iter(self._applications)))
        self._applications[application_id] = _RememberedApplication(generation, application, revision)
        return application

    def _is_current(self, known: _RememberedApplication, content: bytes) -> bool:
        if known.application.id in self._unreadable and known.revision != self._keyring.revision:
            return False
        return known.application.content == content

    def _build(self, application_id: str, content: bytes) -> ReplicatedApplication:
        try:
            record = read_record(ApplicationRecord, content)
        except RecordUnusable as error:
            _log.error("application unusable", application=application_id, reason=str(error))
            return ReplicatedApplication(application_id, content, None)
        return ReplicatedApplication(
            application_id,
            content,
            record,
            application_policy(record.response_policy),
            self._open(record.service_auth, application_id, "service-auth"),
            self._signing(record, application_id),
        )

    def _signing(self, record: ApplicationRecord, application_id: str) -> Signing | None:
        key = self._open(record.signature_key, application_id, "signature-key")
        if not key:
            return None
        previous = self._open(record.previous_signature_key, application_id, "signature-key")
        return Signing(key, previous, record.previous_signature_until or 0.0)

    def _open(self, envelope: str | None, application_id: str, purpose: str) -> bytes:
        """Return the secret, b"" for none and for what does not open."""
        if envelope is None:
            return b""
        try:
            return self._keyring.open(base64.b64decode(envelope), f"application/{application_id}/{purpose}")
        except (SecretUnreadable, ValueError):
            _log.error("secret unreadable", application=application_id, purpose=purpose)
            self._unreadable.add(application_id)
            return b""
