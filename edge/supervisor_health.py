"""What the supervisor tells the admin port about the edge: plain values, no behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Health:
    """What `/readyz` tells. Postgres out of reach is no reason not to be ready: the replica serves on."""

    is_ready: bool
    details: dict[str, Any]
