"""Reads the certificate state of a domain and the ACME account key's thumbprint from the replica."""

from __future__ import annotations

from typing import Protocol

from edge.replica.records import AcmeKeyRecord, OrderRecord, RecordReader, RecordUnusable, read_record
from edge.routing.certificates import CertificateState


class AttendedReader(RecordReader, Protocol):
    """A reader that knows whether monitors run: `edge.replica.reader.ReplicaReader`."""

    def is_unattended(self) -> bool:
        """Return whether no monitor obtains certificates."""


def read_certificate_state(reader: AttendedReader, domain: str) -> CertificateState:
    """Return what the replica holds of the domain's certificate."""
    order = reader.get_raw("order", domain)
    hold_until = 0.0 if order is None else read_hold_until(reader, order)
    return CertificateState(reader.get_raw("certificate", domain) is not None, order is not None, hold_until)


def read_hold_until(reader: AttendedReader, order: bytes) -> float:
    """Return the unix seconds until which handshakes wait for the order.

    0.0 for an order that cannot be read, and while no monitor obtains certificates: a client that fails at once fares
    better than one that waits in vain.
    """
    if reader.is_unattended():
        return 0.0
    try:
        return read_record(OrderRecord, order).hold_until
    except RecordUnusable:
        return 0.0


def read_thumbprint(reader: RecordReader) -> bytes | None:
    """Return the ACME account key's thumbprint, None without a key or with one that cannot be read."""
    content = reader.get_raw("acme_key", "current")
    try:
        return None if content is None else read_record(AcmeKeyRecord, content).thumbprint.encode()
    except RecordUnusable:
        return None
