"""The command line as people run it: a process, an environment, what it prints and leaves."""

from __future__ import annotations

import atexit
import contextlib
import json
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from bench.lab.ports import free_ports
from tests.children import clean_environment
from tests.integration.cli import forking
from tests.integration.postgres.running import servers_of
from tests.waiting import SECONDS, wait_until

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
    return [sys.executable, "-m", "api.cli", *arguments]


def run(*arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, to its end. One whose environment is nothing but settings is forked by a
    process that has imported the command line already; any other is started as people start it."""
    if env == _of_every_command() | {name: value for name, value in env.items() if name.startswith("FRONTAGE_")}:
        return _forking().run(*arguments, env=env)
    return subprocess.run(argv(*arguments), check=False, env=env, capture_output=True, text=True, timeout=60, cwd="/")


def _of_every_command() -> dict[str, str]:
    return clean_environment(COLUMNS="200", NO_COLOR="1")


class Forking:
    """The process that forks for each command."""

    def __init__(self) -> None:
        self._address = f"\0frontage-tests-{secrets.token_hex(8)}"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self._address)
            listener.listen()
            self._process = subprocess.Popen(
                [sys.executable, "-m", forking.__name__, str(listener.fileno())],
                env=_of_every_command(),
                stdin=subprocess.PIPE,
                pass_fds=[listener.fileno()],
                cwd="/",
            )

    def run(self, *arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
        command: forking.Command = {"arguments": arguments, "environment": env}
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8") as output,
            tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
            socket.socket(socket.AF_UNIX) as connection,
        ):
            connection.settimeout(2 * SECONDS)  # it may still import
            connection.connect(self._address)
            message = json.dumps(command).encode() + b"\n"
            sent = socket.send_fds(connection, [message], [output.fileno(), errors.fileno()])
            connection.sendall(message[sent:])
            status = int(connection.recv(16))
            output.seek(0)
            errors.seek(0)
            return subprocess.CompletedProcess(argv(*arguments), status, output.read(), errors.read())

    def end(self) -> None:
        self._process.communicate()


@cache
def _forking() -> Forking:
    started = Forking()
    atexit.register(started.end)
    return started


@contextlib.contextmanager
def running_up(state_dir: Path, env: dict[str, str], *options: str) -> Iterator[subprocess.Popen[str]]:
    """`frontage up`; ended, and seen to leave nothing, when the block is left."""
    process = subprocess.Popen(
        argv("up", *options), env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/"
    )
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
