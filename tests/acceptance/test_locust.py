"""`locust -f bench/` imports every file of the folder by its bare name, under gevent."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.acceptance.demo_process import ROOT, Demo, environment

BENCH = f"{ROOT}/bench"
_ENDING = f"{ROOT}/tests/acceptance/ending_locust.py"


def locust(*options: str, tmp_path: Path, awaited: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Ends once each of the requests `awaited` was answered, if there are any; else as the options tell it."""
    env = os.environ | {"PYTHONPATH": ROOT, "FRONTAGE_STATE_DIR": str(tmp_path), "AWAITED": ";".join(awaited)}
    files = f"{BENCH},{_ENDING}" if awaited else BENCH
    argv = [sys.executable, "-m", "locust", "-f", files, *options]
    return subprocess.run(argv, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)


def test_every_file_is_importable_and_the_users_are_found(tmp_path: Path) -> None:
    listed = locust("--list", tmp_path=tmp_path)
    assert listed.returncode == 0, listed.stderr
    assert {line.strip() for line in listed.stdout.splitlines() if line.startswith(" ")} == {
        *("Chatter", "Partner", "Uploader", "Visitor"),
    }


def test_without_a_demo_it_says_what_to_start(tmp_path: Path) -> None:
    run = locust("--headless", "-u", "1", "-t", "1s", tmp_path=tmp_path)
    assert run.returncode == 1
    assert "start `frontage demo`" in run.stderr


def test_every_kind_of_user_is_served_on_several_domains(tmp_path: Path) -> None:
    with Demo.started(env=environment(tmp_path), cwd=tmp_path) as demo:
        demo.read_until("Ctrl-C")
        seen = ("edge: page", "edge: upload in chunks", "edge: WebSocket message", "api: GET /power, list")
        run = locust(
            *("--headless", "-u", "12", "-r", "12", "-t", "90s", "--domains", "3"), tmp_path=tmp_path, awaited=seen
        )
        watch = locust(
            "Partner",
            *("--headless", "-u", "2", "-r", "2", "-t", "90s", "--domains", "1", "--tags", "monitor"),
            tmp_path=tmp_path,
            awaited=("api: DELETE /monitor/domains",),
        )
    assert run.returncode == 0, run.stderr
    for name in seen:
        assert name in run.stderr
    assert watch.returncode == 0, watch.stderr
    assert "api: DELETE /monitor/domains" in watch.stderr
