"""Programs that are started beside us: why one did not start, and its end."""

from __future__ import annotations

import subprocess
from pathlib import Path

_STOP_SECONDS = 5.0


def last_log_line(log: Path) -> str:
    """Return the last line of the log, or that there is none."""
    lines = log.read_text("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "it gave no reason"


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Ask the process to end, and kill it where it does not."""
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
