"""The npm package as an archive that the API serves, for projects that install it from there.

It has what ``npm pack`` puts into the published one, but for TypeScript's declarations, which a compiler makes then.
Equal sources make equal bytes, so that a lock file's hash stays true.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any, Final

_HERE: Final = Path(__file__).parent
_OF_PAGES: Final = frozenset({"copy_buttons.js", "shared.js", "returned.js", "script.js"})
_OF_COMPILER: Final = frozenset({"types", "scripts", "devDependencies"})


def make_npm_archive() -> bytes:
    """Return the package as ``npm install`` takes it: a gzipped tar of ``package/``."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in {"package.json": _manifest(), **_sources()}.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size, member.mode = len(content), 0o644
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(plain.getvalue(), mtime=0)


def _sources() -> dict[str, bytes]:
    paths = [*_HERE.glob("*.js"), *_HERE.glob("steps/*.js"), *_HERE.glob("words/*.json")]
    return {
        path.relative_to(_HERE).as_posix(): path.read_bytes() for path in sorted(paths) if path.name not in _OF_PAGES
    }


def _manifest() -> bytes:
    """Return ``package.json`` without what needs the compiler."""
    given: dict[str, Any] = json.loads((_HERE / "package.json").read_text("utf-8"))
    kept = {name: value for name, value in given.items() if name not in _OF_COMPILER}
    return json.dumps(kept | {"exports": f"./{given['main']}"}, indent=2).encode()
