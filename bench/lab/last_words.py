"""What a program that did not start wrote last."""

from __future__ import annotations

from pathlib import Path


def last_words(log: Path) -> str:
    """Return the last line of the log."""
    lines = log.read_text("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "it gave no reason"
