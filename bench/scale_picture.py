"""Draws the soak of `bench.scale`: the worker's memory, minute by minute."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_GOAL_MB = 200


def draw(path: Path, points: Sequence[tuple[float, float]], *, domains: int) -> bool:
    """Write the picture as a PNG, and return whether matplotlib was there to do it.

    `points` are minutes and megabytes.
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra, and slow to import
    except ImportError:
        return False
    figure = Figure(figsize=(9, 4), layout="constrained", facecolor="white")
    place = figure.add_subplot()
    minutes, megabytes = zip(*points, strict=True)
    place.plot(minutes, megabytes, color="#0f766e", linewidth=1.8)
    place.axhline(_GOAL_MB, color="#b91c1c", linestyle="--", linewidth=1)
    place.text(max(minutes), _GOAL_MB, "goal ", color="#b91c1c", ha="right", va="bottom", fontsize=9)
    place.set_ylim(0, max(_GOAL_MB, *megabytes) * 1.1)
    place.set_xlim(0, max(minutes))
    place.set_title(f"A worker's private memory under load, {domains:,} domains enrolled", loc="left", fontsize=12)
    place.set_xlabel("minutes")
    place.set_ylabel("MB")
    for side in ("top", "right"):
        place.spines[side].set_visible(False)
    figure.savefig(path, dpi=130)
    return True
