"""When the certificates end that a worker presents, as its metrics show it."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from cryptography import x509

from common.metrics import Family, Labels

_DAY_SECONDS: Final = 86_400.0
_DAYS: Final = (0, 1, 3, 7, 30)
_SPANS: Final = ("ended", "0-1", "1-3", "3-7", "7-30", "30-")


def end_of(chain: str) -> float:
    """Return when the first certificate of a chain in PEM ends, in unix seconds; never for one that is not understood.

    OpenSSL presents some that are not.
    """
    try:
        return x509.load_pem_x509_certificate(chain.encode()).not_valid_after_utc.timestamp()
    except ValueError:
        return math.inf


def end_families(ends: Sequence[float], now: float) -> list[Family]:
    """Return the metrics of certificates that end then; all in unix seconds."""
    samples: dict[Labels, list[float]] = {(span,): [0.0] for span in _SPANS}
    for end in ends:
        samples[_SPANS[bisect_left(_DAYS, (end - now) / _DAY_SECONDS)],][0] += 1
    first: dict[Labels, list[float]] = {(): [min(ends)]} if ends and min(ends) < math.inf else {}
    return [
        Family(
            "frontage_edge_certificates",
            "Certificates that clients were presented lately, by days left, once for each worker.",
            "gauge",
            ("days_left",),
            samples=samples,
        ),
        Family(
            "frontage_edge_certificate_end_timestamp_seconds",
            "When the first of them ends, since 1970.",
            "minimum",
            samples=first,
        ),
    ]
