"""What the supervisor tells the admin port about the edge, and lets it do: plain values, no behaviour."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from common.metrics import Family


@dataclass(frozen=True, slots=True)
class Health:
    """What `/readyz` tells. Postgres out of reach is no reason not to be ready: the replica serves on."""

    is_ready: bool
    details: dict[str, Any]


@dataclass(frozen=True, slots=True)
class View:
    """What the admin port asks the supervisor."""

    health: Callable[[], Health]
    measurements: Callable[[], list[Family]]
    accept_held_copy: Callable[[], bool]
