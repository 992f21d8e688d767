"""``python -m api.sdk.archive``: keeps the script of the SDK's version beside its integrity hash.

Pages pin a version by its address and its integrity hash, so that address answers for ever, with the same bytes. What
is on the main branch counts as released: a change of the script raises ``version`` in ``package.json``, runs this
command and commits both (a test asks for it). A kept version that would change is refused.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from api.sdk.assets import ARCHIVE, ENTRY, HERE, VERSION, integrity, join

HASHES = "integrity.json"
"""The hash of each kept version, by the version."""


def main() -> None:
    try:
        sys.stdout.write(f"{keep(VERSION, join(HERE / ENTRY), ARCHIVE)}\n")
    except ValueError as error:
        sys.exit(f"api.sdk.archive: {error}")


def keep(version: str, script: str, archive: Path) -> Path:
    """Where the script is kept. Raises: `ValueError` for another script of a version that is kept already."""
    path, hashes = archive / f"{version}.js", archive / HASHES
    if path.exists() and path.read_text("utf-8") != script:
        raise ValueError(f"{version} is released and its bytes never change: raise the version in package.json")
    archive.mkdir(exist_ok=True)
    path.write_text(script, "utf-8")
    known = json.loads(hashes.read_text("utf-8")) if hashes.exists() else {}
    hashes.write_text(json.dumps(known | {version: integrity(script.encode())}, indent=2) + "\n", "utf-8")
    return path


if __name__ == "__main__":
    main()
