"""Which build this is: of a checkout by Git's files, of an installation by what was recorded when it was built."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from common.builds import Build, read_build
from common.git_commit import read_built_commit, read_commit

ROOT = Path(__file__).resolve().parents[3]


def git(directory: Path, *arguments: str) -> str:
    own = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
    command = ["git", "-c", "user.name=x", "-c", "user.email=x@x.test", *arguments]
    done = subprocess.run(command, cwd=directory, env=own, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    directory = tmp_path / "checkout"
    directory.mkdir()
    git(directory, "init", "-q", "-b", "main")
    git(directory, "commit", "-q", "--allow-empty", "-m", "First")
    return directory


def commit_of(directory: Path) -> str:
    return git(directory, "rev-parse", "HEAD")[:12]


def test_a_checkout_is_at_its_branch(checkout: Path) -> None:
    assert read_commit(checkout) == commit_of(checkout)
    before = commit_of(checkout)
    git(checkout, "commit", "-q", "--allow-empty", "-m", "Second")
    assert read_commit(checkout) == commit_of(checkout) != before


def test_branches_may_be_packed_and_the_head_detached(checkout: Path) -> None:
    git(checkout, "pack-refs", "--all")
    assert read_commit(checkout) == commit_of(checkout)
    git(checkout, "checkout", "-q", "--detach")
    assert read_commit(checkout) == commit_of(checkout)


def test_a_worktree_is_at_its_own_branch(checkout: Path, tmp_path: Path) -> None:
    git(checkout, "worktree", "add", "-q", "-b", "other", str(tmp_path / "other"))
    git(tmp_path / "other", "commit", "-q", "--allow-empty", "-m", "Second")
    assert read_commit(tmp_path / "other") == commit_of(tmp_path / "other") != read_commit(checkout)


def test_what_is_no_checkout_has_only_a_version(tmp_path: Path, checkout: Path) -> None:
    assert read_build(tmp_path / "common").commit is None
    (checkout / ".git" / "HEAD").write_text("ref: refs/heads/none\n")
    assert read_commit(checkout) is None
    (checkout / ".git" / "HEAD").write_text("<html>")
    assert read_commit(checkout) is None


def test_what_is_built_from_a_checkout_records_its_commit(checkout: Path, tmp_path: Path) -> None:
    (checkout / "common").mkdir()
    for name in ("__init__.py", "git_commit.py", "build_command.py"):
        shutil.copy(ROOT / "common" / name, checkout / "common")
    for package in ("lab", "lab/shown"):
        (checkout / package).mkdir()
        (checkout / package / "module.py").touch()
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    (checkout / "pyproject.toml").write_text(
        '[project]\nname = "frontage"\nversion = "1"\n[tool.setuptools]\npackages = ["common", "lab", "lab.shown"]\n'
        '[tool.frontage.wheel]\nleaves-out = ["lab"]\nbut-for = ["lab.shown"]\n'
        f"[tool.setuptools.cmdclass]\nbuild_py = {json.dumps(settings['cmdclass']['build_py'])}\n"
    )
    assert _recorded_commit(checkout, tmp_path / "first") == commit_of(checkout)
    installed = {path.relative_to(tmp_path / "first") for path in (tmp_path / "first").rglob("module.py")}
    assert installed == {Path("lab/shown/module.py")}
    shutil.rmtree(checkout / ".git")
    assert _recorded_commit(checkout, tmp_path / "second") is None


def _recorded_commit(checkout: Path, built: Path) -> str | None:
    """Build as an isolated build does, without the checkout on Python's path; return the commit of what was built."""
    build = [sys.executable, "-P", "-c", "import setuptools; setuptools.setup()", "-q", "build_py"]
    subprocess.run([*build, "--build-lib", str(built)], cwd=checkout, check=True, capture_output=True)
    return read_built_commit(built / "common")


def test_a_build_is_one_word_and_one_metric() -> None:
    assert str(Build("1.2.0", "0123456789ab")) == "1.2.0+0123456789ab"
    assert str(Build("1.2.0", None)) == "1.2.0"
    assert Build("1.2.0", None).family().samples == {("1.2.0", ""): [1]}
