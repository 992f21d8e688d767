"""What the edge's keeper and its generations say to each other, over the socketpair between them: pure encoding.

One message a line, JSON. A keeper talks to generations of versions installed after its own: messages and fields are
only ever added, and neither side minds what it does not know. End of file means that the other side is gone.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

import orjson

from edge.worker_control import Gate

# From the keeper -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Begin:
    """The listening sockets, as inherited descriptors: `http[i]` and `https[i]` are gate i."""

    http: list[int]
    https: list[int]
    admin: int

    @property
    def gates(self) -> tuple[Gate, ...]:
        return tuple(Gate(*pair) for pair in zip(self.http, self.https, strict=True))


@dataclass(frozen=True, slots=True)
class Prepare:
    """Start workers that could accept but do not; the answer is `Prepared`."""


@dataclass(frozen=True, slots=True)
class TakeOver:
    """Go on duty and accept; the answer is `Serving`."""


@dataclass(frozen=True, slots=True)
class StandBack:
    """Go off duty, and serve on; the answer is `StoodBack`. `TakeOver` may follow, or `Leave`."""


@dataclass(frozen=True, slots=True)
class Leave:
    """Another generation serves: accept no more, let what runs come to its end, and exit."""


@dataclass(frozen=True, slots=True)
class Stop:
    """The edge ends: serve until nothing runs or the grace is over, and exit."""


@dataclass(frozen=True, slots=True)
class Renew:
    """Replace the workers one by one."""


@dataclass(frozen=True, slots=True)
class UpgradeFailed:
    """You serve on; `at` is ISO 8601."""

    at: str
    reason: str


Order = Begin | Prepare | TakeOver | StandBack | Leave | Stop | Renew | UpgradeFailed


# From a generation ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prepared:
    """Every gate has a worker that could accept."""


@dataclass(frozen=True, slots=True)
class Serving:
    """It is on duty, and every gate is accepted from."""


@dataclass(frozen=True, slots=True)
class StoodBack:
    """It is off duty: another may write the replica and answer at the admin port."""


Report = Prepared | Serving | StoodBack

_ORDERS: dict[str, type[Order]] = {
    kind.__name__: kind for kind in (Begin, Prepare, TakeOver, StandBack, Leave, Stop, Renew, UpgradeFailed)
}
_REPORTS: dict[str, type[Report]] = {kind.__name__: kind for kind in (Prepared, Serving, StoodBack)}


def encode(message: Order | Report) -> bytes:
    return orjson.dumps({"say": type(message).__name__, **asdict(message)}) + b"\n"


def decode_order(line: bytes) -> Order | None:
    """None for what only a later keeper says. Raises: ValueError."""
    said = orjson.loads(line)
    kind = _ORDERS.get(said["say"])
    return None if kind is None else kind(**_known(kind, said))


def decode_report(line: bytes) -> Report | None:
    """None for what only a later generation says. Raises: ValueError."""
    kind = _REPORTS.get(orjson.loads(line)["say"])
    return None if kind is None else kind()


def _known(kind: type[Order], said: dict[str, Any]) -> dict[str, Any]:
    return {field.name: said[field.name] for field in fields(kind)}
