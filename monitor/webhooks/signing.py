"""Standard Webhooks headers: they prove to the receiver that a body is authentic and fresh, and identify duplicates.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from math import floor

from standardwebhooks import Webhook


def signed_headers(event_id: str, body: bytes, secrets: Iterable[str], now: datetime) -> dict[str, str]:
    """Return the headers that identify the event and sign its body.

    `event_id` is the same on every attempt. `secrets` are in their ``whsec_`` form: one signature for each, so that
    receivers can change over during a rotation.
    """
    signatures = [Webhook(secret).sign(event_id, now, body.decode()) for secret in secrets]
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(floor(now.timestamp())),
        "webhook-signature": " ".join(signatures),
    }
