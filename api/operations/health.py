"""Probes of the process."""

from __future__ import annotations

from typing import Final

from api.answers.health import Health
from api.handlers.health import HealthHandlers
from api.operations.operation import Operation

OPERATIONS: Final[tuple[Operation[HealthHandlers], ...]] = (
    Operation(
        "GET",
        "/healthz",
        HealthHandlers.healthz,
        "getHealth",
        "Health",
        "Say that the process runs",
        Health,
        is_open=True,
    ),
    Operation(
        "GET",
        "/readyz",
        HealthHandlers.readyz,
        "getReadiness",
        "Health",
        "Say whether requests can be answered",
        Health,
        errors=(503,),
        is_open=True,
    ),
)
