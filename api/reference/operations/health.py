"""Probes of the process."""

from __future__ import annotations

from typing import Final

from api.reference import answers
from api.reference.operations.operation import Operation

OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation("GET", "/healthz", "getHealth", "Health", "Say that the process runs", answers.Health, is_open=True),
    Operation(
        "GET",
        "/readyz",
        "getReadiness",
        "Health",
        "Say whether requests can be answered",
        answers.Health,
        errors=(503,),
        is_open=True,
    ),
)
