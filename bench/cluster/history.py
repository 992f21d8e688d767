"""The history of a run: each request with its time and outcome, and each fault. Clients and the nemesis write it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

AFTERMATH_SECONDS = 10.0
"""How long after a failover a client may meet that its last write is gone."""

Kind: TypeAlias = Literal["write", "read", "visit", "ready", "flow"]
Outcome: TypeAlias = Literal["ok", "refused", "unknown", "failed"]


@dataclass(slots=True)
class Operation:
    """One request. Times are seconds since the run began.

    `value`: the version that a write writes, and that the others saw, None where the domain is not enrolled; of a flow,
    its state.
    `unanswered_at`: the end of the last attempt of a write that got no answer, and may have taken effect.
    """

    actor: str
    kind: Kind
    domain: str
    value: str | None
    began: float
    ended: float = 0.0
    outcome: Outcome = "unknown"
    unanswered_at: float | None = None
    detail: str = ""

    def __str__(self) -> str:
        shown = f"{self.began:7.2f} to {self.ended:7.2f}  {self.actor:<9} {self.kind} {self.domain} {self.value}"
        return f"{shown}: {self.outcome} {self.detail}"


@dataclass(slots=True)
class Fault:
    """One fault. `hits`: names of the machines whose own work it may stop; `ended`: when all had recovered."""

    what: str
    hits: frozenset[str]
    began: float
    ended: float = float("inf")
    takes_primary: bool = False
    """Whether the primary may be another one afterwards."""
    lost_from: float = 0.0
    """What was answered before this second, the fault may not have lost."""

    def __str__(self) -> str:
        return f"{self.began:7.2f} to {self.ended:7.2f}  {self.what}"


@dataclass(slots=True)
class History:
    """Everything that happened. `began_at` is on the monotonic clock."""

    began_at: float = field(default_factory=time.monotonic)
    operations: list[Operation] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    """When which edge had a copy that waited for the operator's word."""

    @property
    def now(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.began_at

    def begin(self, actor: str, kind: Kind, domain: str, value: str | None = None) -> Operation:
        """Note a request that begins now."""
        operation = Operation(actor, kind, domain, value, self.now)
        self.operations.append(operation)
        return operation

    def end(self, operation: Operation, outcome: Outcome, detail: str = "") -> None:
        """Note how it ended, now."""
        operation.ended, operation.outcome, operation.detail = self.now, outcome, detail

    @contextmanager
    def fault(self, what: str, *hits: str, takes_primary: bool = False, lost_from: float = 0.0) -> Iterator[Fault]:
        """Note a fault that lasts for the block."""
        fault = Fault(what, frozenset(hits), self.now, takes_primary=takes_primary, lost_from=lost_from)
        self.faults.append(fault)
        try:
            yield fault
        finally:
            fault.ended = self.now

    def may_have_lost(self, operation: Operation) -> bool:
        """Return whether the primary was lost while the request ran, or shortly before it began."""
        return any(
            each.takes_primary and each.began < operation.ended and operation.began < each.ended + AFTERMATH_SECONDS
            for each in self.faults
        )

    def of(self, kind: Kind, domain: str | None = None) -> list[Operation]:
        """Return the requests of that kind, and for one domain if it is given, that have ended."""
        return [
            each
            for each in self.operations
            if each.kind == kind and each.ended and (domain is None or each.domain == domain)
        ]

    def around(self, moment: float, domain: str = "", seconds: float = 6.0) -> list[str]:
        """Return faults, and the writes and reads of the domain, about that moment: the timeline of what went wrong."""
        shown: list[tuple[float, str]] = [
            (each.began, f"{each}")
            for each in self.faults
            if each.began < moment + seconds and each.ended > moment - seconds
        ]
        shown += [
            (each.began, f"{each}")
            for each in self.operations
            if each.domain == domain and each.kind in {"write", "read"} and abs(each.began - moment) < seconds
        ]
        return [line for _, line in sorted(shown)]

    def as_json(self) -> dict[str, Any]:
        """Return faults, and requests but for visits that went well."""
        kept = [each for each in self.operations if each.kind not in {"visit", "ready"} or each.outcome != "ok"]
        return {
            "faults": [_as_json(each) for each in self.faults],
            "held": self.held,
            "operations": [asdict(each) for each in kept],
        }


def _as_json(fault: Fault) -> dict[str, Any]:
    return asdict(fault) | {"hits": sorted(fault.hits)}
