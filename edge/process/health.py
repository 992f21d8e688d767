"""The state of the edge that the admin port shows, and the actions it may request: plain values, no behaviour."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from common.metrics import Family


@dataclass(frozen=True, slots=True)
class EdgeHealth:
    """What `/readyz` shows.

    An edge that cannot follow the feed (Postgres is out of reach, a copy is held, the disk is full) is ready, since it
    serves from its replica; `is_current` is false once it reports that. One whose master key opens no certificates, or
    that cannot use most of them, is not ready; nor is one that ends, or whose copy is older than
    EDGE_READY_MAX_AGE_SECONDS allows.
    """

    is_ready: bool
    is_current: bool
    details: dict[str, Any]


@dataclass(frozen=True, slots=True)
class View:
    """The supervisor's functions that the admin port calls."""

    health: Callable[[], EdgeHealth]
    measurements: Callable[[], list[Family]]
    accept_held_copy: Callable[[], bool]
