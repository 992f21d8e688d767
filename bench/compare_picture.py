"""The table of `bench.compare` as a picture: one panel a case, one bar a proxy, a line where our bar lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.cases import CostLimit

_COLUMNS = 4
_OURS, _OTHERS, _LINE, _INK = "#0f766e", "#cbd5e1", "#b91c1c", "#0f172a"


@dataclass(frozen=True, slots=True)
class Panel:
    """One case of the picture. `costs` are microseconds of CPU a request, by proxy."""

    title: str
    costs: Mapping[str, float]
    bar: CostLimit | None


def draw(path: Path, panels: Sequence[Panel], *, ours: str) -> bool:
    """Write the picture as a PNG, and return whether matplotlib was there to do it."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra, and slow to import
    except ImportError:
        return False
    rows = -(-len(panels) // _COLUMNS)
    columns = min(_COLUMNS, len(panels))
    figure = Figure(figsize=(4.2 * columns, 2.35 * rows + 0.6), layout="constrained", facecolor="white")
    figure.suptitle("CPU time per request (µs, lower is better)", fontsize=14, fontweight="bold", color=_INK)
    axes = figure.subplots(rows, columns, squeeze=False).flat
    for panel, place in zip(panels, axes, strict=False):
        _draw_panel(place, panel, ours)
    for place in list(axes)[len(panels) :]:
        place.set_axis_off()
    figure.savefig(path, dpi=130)
    return True


def _draw_panel(place: Any, panel: Panel, ours: str) -> None:
    names, costs = list(panel.costs), list(panel.costs.values())
    place.barh(names, costs, color=[_OURS if name == ours else _OTHERS for name in names], height=0.72)
    # One slow proxy must not press the others flat: its bar leaves the panel, its label has the figure.
    most = min(max(costs), 4 * sorted(costs)[len(costs) // 2])
    place.set_xlim(0, most * 1.2)
    for row, cost in enumerate(costs):
        text = f"{cost:.1f}" if cost < 100 else f"{cost:.0f}"
        at, side = (most * 1.18, "right") if cost > most else (cost + most * 0.02, "left")
        place.text(at, row, f"{text} →" if cost > most else text, ha=side, va="center", fontsize=8, color=_INK)
    place.set_title(panel.title, fontsize=10, loc="left", color=_INK)
    place.invert_yaxis()
    place.tick_params(labelsize=8, length=0)
    place.xaxis.set_visible(False)
    for side in ("top", "right", "bottom"):
        place.spines[side].set_visible(False)
    if panel.bar is not None and panel.bar.peer in panel.costs:
        place.axvline(panel.costs[panel.bar.peer] * panel.bar.factor, color=_LINE, linestyle="--", linewidth=1)
        place.text(
            0.99, 1.02, f"goal {panel.bar}", transform=place.transAxes, ha="right", va="bottom", fontsize=8, color=_LINE
        )
