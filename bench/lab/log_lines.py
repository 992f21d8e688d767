"""Reads the log of a program that did not start."""

from __future__ import annotations

from pathlib import Path


def last_log_line(log: Path) -> str:
    """Return the last line of the log, or that there is none."""
    lines = log.read_text("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "it gave no reason"
