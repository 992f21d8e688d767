"""Which build of Frontage this is: its version, and the commit that it was built from or runs from.

A role reads it once, when it starts: another build may be installed while it runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from common.git_commit import read_built_commit, read_commit
from common.metrics import Family
from common.version import VERSION

_PACKAGE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Build:
    """The version of the program, and the commit that it was built from.

    `commit` is None where neither a checkout nor the installation names one.
    """

    version: str
    commit: str | None

    def __str__(self) -> str:
        """Return both in one word, as a local version of PEP 440."""
        return f"{self.version}+{self.commit}" if self.commit else self.version

    def family(self) -> Family:
        """Return the metric that tells builds apart."""
        return Family(
            "frontage_build_info",
            "Always 1; the labels name the build that runs.",
            "gauge",
            ("version", "commit"),
            samples={(self.version, self.commit or ""): [1]},
        )


def read_build(package: Path = _PACKAGE) -> Build:
    """Return the build that is installed now; `package` is the directory of the package `common`."""
    return Build(VERSION, read_built_commit(package) or read_commit(package.parent))
