"""Read which commit a Git checkout is at, from its files.

Needs the standard library only: `build_command.py` runs it by its path in an isolated build.
"""

from __future__ import annotations

import re
from pathlib import Path

COMMIT_FILE = "commit.txt"
"""In the package `common` of what was built from a checkout: the checkout's commit."""

_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_LONGEST_FILE = 4_000_000  # packed-refs of a large repository
_SHOWN_DIGITS = 12


def read_commit(root: Path) -> str | None:
    """Return the commit, shortened, that the checkout at `root` is at; None where it is no checkout."""
    directory = _git_directory(root)
    head = _read(directory / "HEAD")
    if not head.startswith("ref: "):
        return _as_commit(head)
    ref = head.removeprefix("ref: ")
    common = directory / (_read(directory / "commondir") or ".")  # a worktree keeps its branches there
    loose = _as_commit(_read(directory / ref)) or _as_commit(_read(common / ref))
    return loose or _find_packed(_read(common / "packed-refs"), ref)


def read_built_commit(package: Path) -> str | None:
    """Return the commit that the package in `package` was built from, if it was recorded."""
    return _as_commit(_read(package / COMMIT_FILE))


def _git_directory(root: Path) -> Path:
    """Return the directory of Git's files: `.git`, or what the file of this name of a worktree names."""
    named = root / ".git"
    if named.is_file():
        return root / _read(named).removeprefix("gitdir: ")
    return named


def _find_packed(packed: str, ref: str) -> str | None:
    for line in packed.splitlines():
        commit, _, name = line.partition(" ")
        if name == ref:
            return _as_commit(commit)
    return None


def _as_commit(text: str) -> str | None:
    return text[:_SHOWN_DIGITS] if _COMMIT.fullmatch(text) or _is_shown(text) else None


def _is_shown(text: str) -> bool:
    return len(text) == _SHOWN_DIGITS and re.fullmatch(r"[0-9a-f]+", text) is not None


def _read(path: Path) -> str:
    try:
        with path.open(encoding="ascii", errors="replace") as file:
            return file.read(_LONGEST_FILE).strip()
    except OSError:
        return ""
