"""Charts as SVG, made here: no script draws them, and no style is written into them.

Colours are classes of the stylesheet. Each chart states its figures in its title, for readers who do not see it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from api.dashboard.words import milliseconds
from common.db.status import Expiry

_BAR = Markup(
    '<rect class="bar {}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="{}"><title>{}</title></rect>'
)


class Bar(NamedTuple):
    """`tone`: good, warn, bad, none, or empty for the accent colour."""

    label: str
    value: float
    tone: str = ""


class Slot(NamedTuple):
    """A span of time in a chart.

    `label` stands beneath it, often empty; `words` name it. `half` and `most`: within how many milliseconds half of
    the requests, and 95 %, were responded to; None without requests. `http2`: how many came over HTTP/2.
    """

    label: str
    words: str
    requests: int
    failed: int
    half: float | None = None
    most: float | None = None
    http2: int = 0


def over_time(slots: Sequence[Slot], title: str, *, width: int = 880, height: int = 160) -> Markup:
    """Draw a column for each slot, failed requests at its foot; the highest value above the axis' line."""
    highest = max((slot.requests for slot in slots), default=0) or 1
    step, floor, room = width / max(1, len(slots)), height - 22, height - 44
    parts = _time_axis(slots, f"{highest:,}", width, height)
    for place, slot in enumerate(slots):
        left, thick = place * step + step * 0.1, step * 0.8
        words = f"{slot.words}: {slot.requests:,} requests, {slot.failed:,} failed"
        for tone, value in (("", slot.requests), ("bad", slot.failed)):
            if value:
                tall = max(room * min(value, slot.requests) / highest, 2)
                parts.append(_BAR.format(tone, left, floor - tall, thick, tall, 1, words))
    return _svg(width, height, title, parts)


def latency_over_time(slots: Sequence[Slot], title: str, *, width: int = 880, height: int = 160) -> Markup:
    """Draw a curve of `half` and one of `most`, with gaps where there were no requests.

    The highest value stands above the axis.
    """
    highest = max((slot.most for slot in slots if slot.most), default=0.0) or 1.0
    curves = {"soft": [slot.half for slot in slots], "": [slot.most for slot in slots]}
    words = [f"half within {milliseconds(slot.half)}, 95 % within {milliseconds(slot.most)}" for slot in slots]
    parts = _time_axis(slots, milliseconds(highest), width, height)
    return _svg(width, height, title, parts + _curves(slots, curves, highest, words, width, height))


def http2_over_time(slots: Sequence[Slot], title: str, *, width: int = 880, height: int = 120) -> Markup:
    """Draw the share of requests over HTTP/2, with gaps where there were no requests."""
    curve = [slot.http2 / slot.requests if slot.requests else None for slot in slots]
    words = [f"{slot.http2:,} of {slot.requests:,} over HTTP/2" for slot in slots]
    parts = _time_axis(slots, "100 %", width, height)
    return _svg(width, height, title, parts + _curves(slots, {"": curve}, 1.0, words, width, height))


def _curves(
    slots: Sequence[Slot],
    curves: Mapping[str, Sequence[float | None]],
    highest: float,
    words: Sequence[str],
    width: int,
    height: int,
) -> list[Markup]:
    """Draw a curve for each tone, and for each slot with requests the words that show when it is pointed at."""
    step, floor, room = width / max(1, len(slots)), height - 22, height - 44
    parts = []
    for tone, values in curves.items():
        path, is_begun = "", False
        for place, value in enumerate(values):
            if value is not None:
                # A span between two gaps is a dot: the round end of a line without length.
                path += f"{'L' if is_begun else 'M'}{(place + 0.5) * step:.1f} {floor - room * value / highest:.1f}h0"
            is_begun = value is not None
        parts.append(Markup('<path class="curve {}" d="{}"/>').format(tone, path))
    touch = Markup('<rect class="touch" x="{:.1f}" y="{}" width="{:.1f}" height="{}"><title>{}</title></rect>')
    for place, slot in enumerate(slots):
        if slot.requests:
            parts.append(touch.format(place * step, floor - room, step, room, f"{slot.words}: {words[place]}"))
    return parts


def _time_axis(slots: Sequence[Slot], highest: str, width: int, height: int) -> list[Markup]:
    """Draw the lines of zero and of the highest value, and the labels beneath the slots."""
    step, floor, top = width / max(1, len(slots)), height - 22, 22
    line = Markup('<line class="axis" x1="0" x2="{}" y1="{}" y2="{}"/>')
    text = Markup('<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>')
    parts = [line.format(width, floor, floor), line.format(width, top, top)]
    parts.append(text.format("value", 0, top - 6, "start", highest))
    for number, (place, slot) in enumerate((place, slot) for place, slot in enumerate(slots) if slot.label):
        anchor = "start" if place < 3 else "end" if place > len(slots) - 4 else "middle"
        tone = "label wide-only" if number % 2 else "label"  # half of them find room on a phone
        parts.append(text.format(tone, place * step, height - 4, anchor, slot.label))
    return parts


def columns(bars: Sequence[Bar], title: str, *, width: int = 640, height: int = 160) -> Markup:
    """Draw a column for each bar; labels beneath, values above."""
    highest = max((bar.value for bar in bars), default=0) or 1
    step = width / max(1, len(bars))
    parts = [Markup('<line class="axis" x1="0" x2="{}" y1="{}" y2="{}"/>').format(width, height - 22, height - 22)]
    for place, bar in enumerate(bars):
        tall = max((height - 44) * bar.value / highest, 2 if bar.value else 0)
        left, thick = place * step + step * 0.16, step * 0.68
        middle = left + thick / 2
        parts.append(_BAR.format(bar.tone, left, height - 22 - tall, thick, tall, 3, f"{bar.label}: {bar.value:,.0f}"))
        text = Markup('<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>')
        parts.append(text.format("label", middle, height - 6, bar.label))
        if bar.value:
            parts.append(text.format("value", middle, height - 28 - tall, f"{bar.value:,.0f}"))
    return _svg(width, height, title, parts)


def expiry(spans: Sequence[Expiry]) -> Markup:
    """Certificates by days left."""
    tones = {None: "bad", 0: "bad", 1: "warn", 3: "warn"}
    # The heading says that these are days: without the word, the labels find room on a phone.
    bars = [Bar(span.label.removesuffix(" days"), span.count, tones.get(span.from_days, "")) for span in spans]
    title = "Certificates by days left: " + ", ".join(f"{span.label} {span.count:,}" for span in spans)
    return columns(bars, title, width=880, height=200)


def level(used: float, most: float, title: str, *, width: int = 240, height: int = 8, is_limit: bool = True) -> Markup:
    """How much of a limit is used, which warns as it comes near; or else how much of a whole something is."""
    part = min(1.0, used / most) if most else 0.0
    tone = "" if not is_limit else "bad" if part >= 0.9 else "warn" if part >= 0.7 else ""
    parts = [
        Markup('<rect class="track" width="{}" height="{}" rx="4"/>').format(width, height),
        _BAR.format(tone, 0, 0, width * part, height, 4, f"{used:,.0f} of {most:,.0f}"),
    ]
    return _svg(width, height, title, parts)


def _svg(width: int, height: int, title: str, parts: Sequence[Markup]) -> Markup:
    return Markup('<svg class="chart" role="img" viewBox="0 0 {} {}" aria-label="{}">{}</svg>').format(
        width, height, title, Markup("").join(parts)
    )
