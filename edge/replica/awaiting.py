"""Whether HTTPS at a domain would fail because its certificate is still on its way."""

from __future__ import annotations

from edge.replica.records import OrderRecord, Reader, RecordUnusable, read_record


def is_awaiting_certificate(reader: Reader, domain: str, now: float) -> bool:
    """True when there is none and handshakes are no longer held for it; `now` in unix seconds.

    While they are held (`edge.tls.shared`), a client that is sent to HTTPS only has to wait a moment.
    """
    if reader.get_raw("certificate", domain) is not None:
        return False
    order = reader.get_raw("order", domain)
    try:
        return order is None or read_record(OrderRecord, order).hold_until <= now
    except RecordUnusable:
        return True
