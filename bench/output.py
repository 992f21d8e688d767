"""Where figures are written: JSON beside the tables, in ``bench/output`` (not kept in the repository)."""

from __future__ import annotations

import json
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

DIRECTORY = Path(__file__).parent / "output"


def write(name: str, figures: dict[str, Any]) -> Path:
    """Write ``<name>.json`` with the time and the machine it was measured on."""
    DIRECTORY.mkdir(exist_ok=True)
    path = DIRECTORY / f"{name}.json"
    measured = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
    }
    path.write_text(json.dumps(measured | figures, indent=2) + "\n")
    return path
