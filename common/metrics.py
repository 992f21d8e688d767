"""Measurements: counted where the work is done, added up over processes; `common.exposition` shows them.

A process counts in plain numbers and hands them out as `Family` values; `Aggregate` adds up those of several
processes and keeps what a process had counted when it ends, so that a restart never turns a counter back.
This module must not count anything itself.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["counter", "gauge", "histogram", "maximum", "minimum"]
"""``maximum`` and ``minimum`` are gauges of which that of all processes counts, and not their sum."""
_PLACE_BY_PLACE: Mapping[str, Callable[[float, float], float]] = {"maximum": max, "minimum": min}
Labels = tuple[str, ...]
Samples = dict[Labels, list[float]]


@dataclass(frozen=True, slots=True)
class Family:
    """One measurement with all its label values.

    `samples` maps label values to numbers that add up place by place: one number for all but histograms; for
    a histogram the count of each bucket (not cumulative, the last one unbounded) and then the sum.
    `name` is without Prometheus' suffixes (``_total``, ``_bucket``); `bounds` are a histogram's upper bounds.
    """

    name: str
    help: str
    kind: Kind
    label_names: Labels = ()
    bounds: tuple[float, ...] = ()
    samples: Samples = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, help_text: str, kind: Kind, value: float) -> Family:
        """Make a family of one number, without labels."""
        return cls(name, help_text, kind, samples={(): [value]})

    def to_plain(self) -> list[Any]:
        """Convert the family to JSON's types only; `from_plain` converts it back."""
        samples = [[labels, numbers] for labels, numbers in self.samples.items()]
        return [self.name, self.help, self.kind, self.label_names, self.bounds, samples]

    @classmethod
    def from_plain(cls, plain: Sequence[Any]) -> Family:
        """Read a family that `to_plain` wrote."""
        name, help_text, kind, label_names, bounds, samples = plain
        by_labels = {tuple(labels): list(numbers) for labels, numbers in samples}
        return cls(name, help_text, kind, tuple(label_names), tuple(bounds), by_labels)


class Aggregate:
    """Families of several processes, added up. The supervisor of the processes creates and feeds it."""

    def __init__(self) -> None:
        self._living: dict[int, list[Family]] = {}
        self._departed: list[Family] = []

    def report(self, process: int, families: list[Family]) -> None:
        """Replace what `process` reported before with what it has counted so far."""
        self._living[process] = families

    def retire(self, process: int) -> None:
        """Keep the counters of a process that has ended, and drop its gauges."""
        last = [family for family in self._living.pop(process, []) if family.kind in ("counter", "histogram")]
        self._departed = add_up([*self._departed, *last])

    def families(self) -> list[Family]:
        """Return the families of living and ended processes, added up."""
        living = [family for families in self._living.values() for family in families]
        return add_up([*self._departed, *living])


def add_up(families: Iterable[Family]) -> list[Family]:
    """Add up families of the same name, in order of first appearance.

    The given families are left as they are.
    """
    totals: dict[str, Family] = {}
    for family in families:
        total = totals.get(family.name)
        if total is None:
            total = totals[family.name] = Family(
                family.name, family.help, family.kind, family.label_names, family.bounds
            )
        combine = _PLACE_BY_PLACE.get(family.kind, operator.add)
        for labels, numbers in family.samples.items():
            held = total.samples.get(labels)
            total.samples[labels] = list(numbers if held is None else map(combine, held, numbers))
    return list(totals.values())
