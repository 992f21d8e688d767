"""One domain: its diagnosis and its traffic."""

from __future__ import annotations

from typing import Final

from api.reference import answers
from api.reference.operations.operation import Operation, Query
from api.schemas.traffic import PERIODS

OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        "GET",
        "/domains/{domain}/diagnosis",
        "diagnoseDomain",
        "Domains",
        "Say what is wrong with a domain, and the one thing to do",
        answers.Diagnosis,
        errors=(400,),
        paths={"domain": "A domain, enrolled or not."},
    ),
    Operation(
        "GET",
        "/domains/{domain}/traffic",
        "getTraffic",
        "Domains",
        "Requests, bytes, errors and latency of a domain over time",
        answers.Traffic,
        queries=(
            Query(
                "period",
                {"type": "string", "enum": list(PERIODS), "default": "day"},
                "The last 24 hours by 5 minutes, or the last 30 days by the hour.",
            ),
        ),
        errors=(400,),
        paths={"domain": "A domain of the application."},
    ),
)
