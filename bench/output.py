"""Where figures are written: JSON and pictures beside the tables, in ``bench/output`` (not kept in the repository).

Where the package's own folder cannot be written to, as in a system-wide installation: ``bench-output`` in the
current directory.
"""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from common.errors import OperatorError

DIRECTORY = Path(__file__).parent / "output"
_ELSEWHERE = "bench-output"


def directory(preferred: Path = DIRECTORY) -> Path:
    """Return the directory for figures, created if it is missing.

    Raises: `OperatorError` when neither can be written to.
    """
    for place in (preferred, Path.cwd() / _ELSEWHERE):
        try:
            place.mkdir(exist_ok=True)
        except OSError:
            continue
        if os.access(place, os.W_OK | os.X_OK):
            return place
    raise OperatorError(f"cannot write to {preferred}, nor here: change to a directory of your own")


def write(name: str, figures: dict[str, Any], preferred: Path = DIRECTORY) -> Path:
    """Write ``<name>.json`` with the time and the machine it was measured on."""
    path = directory(preferred) / f"{name}.json"
    measured = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
    }
    path.write_text(json.dumps(measured | figures, indent=2) + "\n")
    return path
