"""What a process started by a test is given: this Python's way to the packages, and nothing else of ours."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WITHOUT_AUTHORITIES = {"SSL_CERT_FILE": os.devnull, "SSL_CERT_DIR": os.devnull}
"""What keeps OpenSSL from reading the system's authorities."""


def clean_environment(*before: Path, **more: str) -> dict[str, str]:
    """`before` are directories whose packages come first."""
    path = [*map(str, before), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(path), **WITHOUT_AUTHORITIES, **more}
