"""`frontage backup` and `restore`: all that was stored is there again, sealed secrets too, embedded or not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.private_stage import private_environment
from tests.acceptance.terminal import Terminal
from tests.children import ROOT


def environment(state_dir: Path) -> dict[str, str]:
    return private_environment(state_dir) | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    }


def frontage(*arguments: str, env: dict[str, str], status: int = 0) -> str:
    """What it prints on standard output, or its error."""
    argv = [sys.executable, "-m", "common.cli", *arguments]
    done = subprocess.run(argv, env=env, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == status, done.stderr
    return done.stderr if status else done.stdout


@contextmanager
def up(env: dict[str, str]) -> Iterator[None]:
    with Terminal.opened(env, {}) as terminal:
        terminal.start("frontage up", "ready")
        yield


def test_a_backup_of_the_embedded_database_restores_into_a_new_one(tmp_path: Path) -> None:
    before, after = environment(tmp_path / "before"), environment(tmp_path / "after")
    file = str(tmp_path / "frontage.dump")
    with up(before):
        made = json.loads(
            frontage("app", "create", "--name", "Acme", "--cname-target", "apps.acme.example", env=before)
        )
        frontage("backup", file, env=before)
        assert "exists" in frontage("backup", file, env=before, status=1)
    assert os.stat(file).st_mode & 0o077 == 0
    assert "no master key" in frontage("restore", file, env=after, status=1)
    (tmp_path / "after").mkdir(exist_ok=True)
    shutil.copy(tmp_path / "before" / "master.key", tmp_path / "after" / "master.key")
    frontage("restore", file, env=after)
    assert "not empty" in frontage("restore", file, env=after, status=1)
    with up(after):
        assert json.loads(frontage("app", "show", made["applicationId"], env=after))["name"] == "Acme"
        assert frontage("token", made["applicationId"], env=after).count(".") == 2  # the client secret opens
        assert "already runs" in frontage("restore", file, env=after, status=1)
