"""The condition of this edge: whether its key opens the certificates that it holds, and whether it follows the feed.

The worst of what is wrong counts, with the remedy for the operator (`common.db.edge_nodes.Condition`). Pure, but for
the look at the key file.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path

from common.db import certificates
from common.db.edge_nodes import SERVING, Condition
from common.errors import SecretUnreadable
from common.secrets import Keyring
from edge.replica.catching_up import HeldCopy
from edge.replica.records import CertificateRecord, RecordUnusable, read_record


def is_key_missing(keyring: Keyring, sample: Mapping[str, bytes]) -> bool:
    """Whether `keyring` lacks the master key of a record in `sample` (by domain), or opens none of them, as with other
    bytes under the same key id. A damaged record among others does not count."""
    envelopes = {certificates.key_identity(domain): _envelope(record) for domain, record in sample.items()}
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
    """None where the record is damaged."""
    try:
        return base64.b64decode(read_record(CertificateRecord, certificate).private_key)
    except (RecordUnusable, binascii.Error):
        return None


def condition_of(
    *, key_file: Path, lacks_key: bool, write_error: str | None, replica: Path, held: HeldCopy | None, admin: str
) -> Condition:
    """`write_error`: why the replica could not be written the last time. `admin`: the address of the admin port."""
    if lacks_key:
        return Condition(
            "unusable",
            f"the master key file {key_file} does not open this database's certificates, so every TLS handshake fails:"
            " where the API runs, write one with `frontage master-key export --role edge FILE`, copy it here,"
            " then restart this edge",
        )
    if write_error is not None:
        return Condition(
            "stuck",
            f"cannot write {replica} ({write_error}), and serves what it last knew: free space on that disk,"
            " then it catches up by itself",
        )
    if held is not None:
        return Condition(
            "held",
            f"the database has lost {held.removed_routes} of {held.routes} routes, and the edge still serves them:"
            f" restore it, or agree with `curl -X POST http://{admin}/replica/accept`",
        )
    return SERVING
