"""Reads the certificate state of a domain and the ACME account key's thumbprint from the replica."""

from __future__ import annotations

from edge.replica.records import AcmeKeyRecord, OrderRecord, Reader, RecordUnusable, read_record
from edge.routing.certificates import CertificateState


def read_certificate_state(reader: Reader, domain: str) -> CertificateState:
    """An order that cannot be read counts as an order for which no handshake waits."""
    order = reader.get_raw("order", domain)
    try:
        hold_until = 0.0 if order is None else read_record(OrderRecord, order).hold_until
    except RecordUnusable:
        hold_until = 0.0
    return CertificateState(reader.get_raw("certificate", domain) is not None, order is not None, hold_until)


def read_thumbprint(reader: Reader) -> bytes | None:
    """None without an account key, or with one that cannot be read."""
    content = reader.get_raw("acme_key", "current")
    try:
        return None if content is None else read_record(AcmeKeyRecord, content).thumbprint.encode()
    except RecordUnusable:
        return None
