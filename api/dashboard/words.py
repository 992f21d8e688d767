"""Times and numbers as people read them."""

from __future__ import annotations

from datetime import datetime

import idna

NO_BREAK = "\u00a0"
_UNITS = ((60, 60, "second"), (60, 60, "minute"), (24, 24, "hour"), (100, 30, "day"), (12, 12, "month"))
"""How many of a unit are shown as such, how many make one of the next, and its name: 89 days are no "2 months"."""


def sentence(words: str) -> str:
    """Return words as a sentence: ``expected a host`` as ``Expected a host.``."""
    return f"{words[:1].upper()}{words[1:].rstrip('.')}."


def moment(at: datetime | None) -> str:
    """Return a time as pages show it."""
    return "–" if at is None else at.strftime("%-d %b %Y, %H:%M:%S UTC")


def day(at: datetime | None) -> str:
    """Return a day as pages show it."""
    return "–" if at is None else at.strftime("%-d %b %Y")


def ago(at: datetime | None, now: datetime) -> str:
    """Return ``3 minutes ago``, ``in 2 days``."""
    if at is None:
        return "never"
    distance = (now - at).total_seconds()
    text = _span(abs(distance))
    if text is None:
        return "just now" if distance >= 0 else "in a moment"
    return f"{text} ago" if distance > 0 else f"in {text}"


def until(at: datetime | None, now: datetime) -> str:
    """Return ``62 days left``; ``expired`` when it is over."""
    if at is None:
        return "–"
    left = (at - now).total_seconds()
    if left <= 0:
        return "expired"
    days = int(left // 86_400)
    return f"{days} days left" if days >= 2 else f"{_span(left) or 'a moment'} left"


def count(number: int, noun: str = "", plural: str | None = None) -> str:
    """Return ``1,204 domains``."""
    if not noun:
        return f"{number:,}"
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def seconds(value: float | None) -> str:
    """Return a duration in words."""
    if value is None:
        return "–"
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 120:
        return f"{value:.1f} s"
    return _span(value) or "a moment"


def milliseconds(value: float | None) -> str:
    """Of a histogram's bound; None is beyond its last one."""
    return "over a minute" if value is None else f"{value:g} ms" if value < 1000 else f"{value / 1000:g} s"


def size(value: int) -> str:
    """Return ``1.5 MB``, in powers of ten."""
    shown = float(value)
    for unit in ("bytes", "kB", "MB", "GB"):
        if shown < 1000:
            return f"{shown:.0f} {unit}" if unit == "bytes" or shown >= 100 else f"{shown:.1f} {unit}"
        shown /= 1000
    return f"{shown:,.1f} TB"


def share(part: int, whole: int) -> str:
    """Return ``12 (0.3 %)``, with no line break within the brackets."""
    if not part or not whole:
        return "none"
    percent = 100 * part / whole
    shown = "under 0.1" if percent < 0.1 else f"{percent:.1f}"
    return f"{part:,} " + f"({shown} %)".replace(" ", NO_BREAK)


def unicode_name(name: str) -> str:
    """Return a name with A-labels (``xn--…``) as people write it; empty for any other name.

    It never stands alone: another name can look the same.
    """
    if "xn--" not in name:
        return ""
    try:
        return idna.decode(name)
    except (idna.IDNAError, UnicodeError):
        return ""


def _span(distance: float) -> str | None:
    """None below five seconds."""
    if distance < 5:
        return None
    value = distance
    for most, size, unit in _UNITS:
        if value < most:
            whole = int(value)
            return f"{whole} {unit}{'' if whole == 1 else 's'}"
        value /= size
    years = int(value) or 1
    return f"{years} year{'' if years == 1 else 's'}"
