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

from api.cli.backup import without_newer_settings
from bench.private_stage import private_environment
from tests.acceptance.terminal import Terminal
from tests.children import ROOT


def environment(state_dir: Path) -> dict[str, str]:
    return private_environment(state_dir) | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    }


def frontage(*arguments: str, env: dict[str, str], status: int = 0) -> str:
    """What it prints on standard output, or its error."""
    argv = [sys.executable, "-m", "api.cli", *arguments]
    done = subprocess.run(argv, env=env, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == status, done.stderr
    return done.stderr if status else done.stdout


@contextmanager
def up(env: dict[str, str]) -> Iterator[None]:
    with Terminal.opened(env, {}) as terminal:
        terminal.start("frontage up", "ready")
        yield


def test_an_older_server_is_not_given_a_setting_that_it_does_not_know() -> None:
    script = [
        b"--\n",
        b"SET lock_timeout = 0;\n",
        b"SET transaction_timeout = 0;\n",
        b"COPY public.t (c) FROM stdin;\n",
    ]
    data = [b"SET transaction_timeout = 0;\n", b"\\.\n"]
    assert list(without_newer_settings([*script, *data])) == [script[0], script[1], script[3], *data]


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
    half = tmp_path / "half.dump"
    half.write_bytes(Path(file).read_bytes()[: os.stat(file).st_size * 3 // 4])
    assert "pg_restore failed" in frontage("restore", str(half), env=after, status=1)
    frontage("restore", file, env=after)  # into what is still empty
    assert "not empty" in frontage("restore", file, env=after, status=1)
    with up(after):
        assert json.loads(frontage("app", "show", made["applicationId"], env=after))["name"] == "Acme"
        assert frontage("token", made["applicationId"], env=after).count(".") == 2  # the client secret opens
        assert "already runs" in frontage("restore", file, env=after, status=1)
