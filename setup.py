"""Records in a wheel which commit it is built from; all else about the build is in pyproject.toml."""

from __future__ import annotations

import runpy
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

_ROOT = Path(__file__).resolve().parent
_GIT = runpy.run_path(str(_ROOT / "common" / "git_commit.py"))


class BuildWithCommit(build_py):
    """Builds the packages, and writes the commit beside `common`'s modules where the source is a checkout."""

    def run(self) -> None:
        """Build; an editable installation runs from the checkout, which names its commit at any time."""
        super().run()
        commit = _GIT["read_commit"](_ROOT)
        if commit is not None and not self.editable_mode:
            (Path(self.build_lib) / "common" / _GIT["COMMIT_FILE"]).write_text(f"{commit}\n", "ascii")


setup(cmdclass={"build_py": BuildWithCommit})
