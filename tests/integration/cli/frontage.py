"""The command line as people run it: a process, an environment, what it prints and leaves."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.lab.ports import free_ports
from tests.children import clean_environment
from tests.integration.postgres.running import servers_of
from tests.waiting import wait_until

# A role's stand-in: same start, same words, no work. It leaves its pid where the test finds it, and fails when told.
STAND_IN = """
import os
from pathlib import Path
from common.errors import OperatorError
from common.processes import announce_ready, run_role

async def serve(settings, stop):
    (settings.state_dir / "{role}.pid").write_text(str(os.getpid()))
    if (settings.state_dir / "{role}.fails").exists():
        raise OperatorError("stand-in told to fail")
    announce_ready()
    await stop.wait()

run_role("{role}", serve)
"""
ROLES = ("api", "monitor", "edge")


def write_stand_ins(directory: Path) -> Path:
    for role in ROLES:
        (directory / role).mkdir(parents=True)
        (directory / role / "__init__.py").touch()
        (directory / role / "__main__.py").write_text(STAND_IN.format(role=role))
    return directory


def environment(state_dir: Path, *, roles: Path | None = None, **settings: str) -> dict[str, str]:
    """Settings on free ports; `settings` are FRONTAGE_ names without the prefix."""
    names = ("EDGE_HTTP", "EDGE_HTTPS", "EDGE_ADMIN", "API_LISTEN", "API_ADMIN", "MONITOR_ADMIN")
    listen = {name: f"127.0.0.1:{port}" for name, port in zip(names, free_ports(len(names)), strict=True)}
    given = {"STATE_DIR": str(state_dir), **listen, **settings}
    variables = {f"FRONTAGE_{name}": value for name, value in given.items()}
    return clean_environment(*([roles] if roles else []), COLUMNS="200", NO_COLOR="1", **variables)


def argv(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "common.cli", *arguments]


def run(*arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv(*arguments), check=False, env=env, capture_output=True, text=True, timeout=60, cwd="/")


@contextlib.contextmanager
def running_up(state_dir: Path, env: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """`frontage up`; ended, and seen to leave nothing, when the block is left."""
    process = subprocess.Popen(argv("up"), env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/")
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=120)
        finally:
            process.kill()
            process.wait()
        wait_until(lambda: not servers_of(state_dir), "the database outlived `frontage up`")
