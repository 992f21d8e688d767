"""Decide what a wheel holds, and record which commit it is built from; pyproject.toml names the command.

An isolated build has neither the checkout nor the package `common` on its path: setuptools loads this file by its
path alone, so that it imports nothing of ours and runs `git_commit.py` by path.
"""

from __future__ import annotations

import runpy
import tomllib
from pathlib import Path

from setuptools.command.build_py import build_py

_PACKAGE = Path(__file__).resolve().parent
_GIT = runpy.run_path(str(_PACKAGE / "git_commit.py"))


_WHEEL = tomllib.loads((_PACKAGE.parent / "pyproject.toml").read_text("utf-8"))["tool"]["frontage"]["wheel"]


def _is_installed(package: str) -> bool:
    return package.partition(".")[0] not in _WHEEL["leaves-out"] or package.startswith(tuple(_WHEEL["but-for"]))


class BuildWithCommit(build_py):
    """Build the packages, and write the commit beside `common`'s modules where the source is a checkout."""

    packages: list[str]

    def finalize_options(self) -> None:
        """Leave out of a wheel what is run in the clone only; an editable installation has all packages."""
        super().finalize_options()
        if not self.editable_mode:
            self.packages = [package for package in self.packages if _is_installed(package)]

    def run(self) -> None:
        """Build; an editable installation runs from the checkout, which names its commit at any time."""
        super().run()
        commit = _GIT["read_commit"](_PACKAGE.parent)
        if commit is not None and not self.editable_mode:
            (Path(self.build_lib) / "common" / _GIT["COMMIT_FILE"]).write_text(f"{commit}\n", "ascii")
