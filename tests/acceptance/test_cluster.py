"""The cluster run in short: a role is killed, Postgres is killed and switched over, and nothing is lost."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bench.cluster.patroni import missing_programs

pytestmark = pytest.mark.skipif(bool(missing_programs()), reason=f"needs {', '.join(missing_programs())}")


@pytest.mark.timeout(600)
def test_what_is_answered_survives_failovers_and_visitors_notice_nothing() -> None:
    faults = ("--only", "kill-role", "kill-postgres", "switch-over")

    done = subprocess.run(
        [sys.executable, "-m", "bench.cluster", "--seed", "3", "--minutes", "0.1", "--directory", "/var/tmp", *faults],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 kill postgres" in done.stdout.replace("-", " ")
