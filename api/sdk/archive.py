"""``python -m api.sdk.archive``: keeps the script of the SDK's version, when it is released.

Pages pin a version by its address and its integrity hash, so that address answers for ever, with the same bytes. A
released version that would change is refused: raise ``version`` in ``package.json`` first.
"""

from __future__ import annotations

import sys
from pathlib import Path

from api.sdk.assets import ARCHIVE, ENTRY, HERE, VERSION, join


def main() -> None:
    try:
        sys.stdout.write(f"{keep(VERSION, join(HERE / ENTRY), ARCHIVE)}\n")
    except ValueError as error:
        sys.exit(f"api.sdk.archive: {error}")


def keep(version: str, script: str, archive: Path) -> Path:
    """Where the script is kept. Raises: `ValueError` for another script of a version that is kept already."""
    path = archive / f"{version}.js"
    if path.exists() and path.read_text("utf-8") != script:
        raise ValueError(f"{version} is released and its bytes never change: raise the version in package.json")
    archive.mkdir(exist_ok=True)
    path.write_text(script, "utf-8")
    return path


if __name__ == "__main__":
    main()
