"""``python -m api.sdk.release DIRECTORY``: write the SDK's script as the release file of its version.

Pages pin a version by its address and its integrity hash, so that address must answer for ever, with the same bytes.
Release files lie outside the source: the API serves those in ``sdk/`` of its state directory beside its own version. A
version that is released never changes: the command refuses to write other bytes over it, and a changed script needs a
new ``version`` in ``package.json``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from api.sdk.assets import ENTRY, HERE, VERSION, integrity, join


def main() -> None:
    """Write the release file of this version."""
    if len(sys.argv) != 2:
        sys.exit("Usage: python -m api.sdk.release DIRECTORY")
    script = join(HERE / ENTRY)
    try:
        path = write_release(VERSION, script, Path(sys.argv[1]))
    except (ValueError, OSError) as error:
        sys.exit(f"api.sdk.release: {error}")
    sys.stdout.write(f"{path} {integrity(script.encode())}\n")


def write_release(version: str, script: str, directory: Path) -> Path:
    """Write the release file of `version` into `directory` and return its path.

    Raises: `ValueError` for another script of a version that is released already.
    """
    path = directory / f"{version}.js"
    if path.exists() and path.read_text("utf-8") != script:
        raise ValueError(f"{version} is released and its bytes never change: raise the version in package.json")
    directory.mkdir(parents=True, exist_ok=True)
    path.write_text(script, "utf-8")
    return path


if __name__ == "__main__":
    main()
