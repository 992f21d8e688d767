"""`frontage up`: one line when it serves, nothing left however it ends. Roles are stand-ins, the database is real."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
from pathlib import Path

import pytest

from common.file_locks import ProcessIdentity
from tests.integration.cli.frontage import ROLES, environment, run, running_up, write_stand_ins
from tests.integration.postgres.running import servers_of
from tests.waiting import wait_until


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def env(tmp_path: Path, state_dir: Path) -> dict[str, str]:
    return environment(state_dir, roles=write_stand_ins(tmp_path / "stand-ins"))


def pid_of(state_dir: Path, role: str) -> int:
    return int((state_dir / f"{role}.pid").read_text() or 0)


def assert_nothing_runs(state_dir: Path, pids: list[int]) -> None:
    wait_until(lambda: all(ProcessIdentity.of(pid) is None for pid in pids), f"a role of {pids} is left")
    wait_until(lambda: not servers_of(state_dir), "the database is left")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_line_when_everything_serves_and_nothing_left_after_a_signal(
    state_dir: Path, env: dict[str, str], number: signal.Signals
) -> None:
    with running_up(state_dir, env) as up:
        line = up.stdout.readline()
        assert line.startswith("ready")
        assert env["FRONTAGE_EDGE_HTTPS"] in line
        assert env["FRONTAGE_API_LISTEN"] in line
        pids = [pid_of(state_dir, role) for role in ROLES]
        up.send_signal(number)
        rest, said = up.communicate(timeout=120)
        assert up.returncode == 0, said
        assert rest == ""
        assert_nothing_runs(state_dir, pids)
        assert list(state_dir.glob("postgres.socket")) == []


def test_killing_it_leaves_nothing_and_the_next_one_starts(state_dir: Path, env: dict[str, str]) -> None:
    with running_up(state_dir, env) as up:
        assert up.stdout.readline().startswith("ready")
        pids = [pid_of(state_dir, role) for role in ROLES]
        up.kill()
        assert_nothing_runs(state_dir, pids)
    with running_up(state_dir, env, "--json") as up:
        document = json.loads("".join(iter(up.stdout.readline, "}\n")) + "}")
    assert document["https"] == f"https://{env['FRONTAGE_EDGE_HTTPS']}"
    assert document["stateDir"] == str(state_dir)


def test_a_second_one_is_refused_by_the_pid_of_the_first(state_dir: Path, env: dict[str, str]) -> None:
    with running_up(state_dir, env) as up:
        assert up.stdout.readline().startswith("ready")
        second = run("up", env=env)
        assert (second.returncode, second.stdout) == (1, "")
        assert second.stderr.count("\n") == 1
        assert f"process {up.pid}" in second.stderr
        assert "FRONTAGE_STATE_DIR" in second.stderr
        assert up.poll() is None


@pytest.mark.parametrize("name", ["EDGE_HTTP", "EDGE_HTTPS", "EDGE_ADMIN", "API_LISTEN", "API_ADMIN", "MONITOR_ADMIN"])
def test_a_port_in_use_is_named_by_its_variable_before_anything_starts(
    state_dir: Path, env: dict[str, str], name: str
) -> None:
    host, _, port = env[f"FRONTAGE_{name}"].partition(":")
    with socket.create_server((host, int(port))):
        result = run("up", env=env)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"frontage: FRONTAGE_{name}: {host}:{port} is in use")
    assert result.stderr.count("\n") == 1
    assert not (state_dir / "postgres").exists()


def test_several_ports_in_use_are_named_in_one_line(env: dict[str, str]) -> None:
    names = ("EDGE_HTTP", "EDGE_HTTPS", "API_LISTEN")
    with contextlib.ExitStack() as taken:
        for name in names:
            host, _, port = env[f"FRONTAGE_{name}"].partition(":")
            taken.enter_context(socket.create_server((host, int(port))))
        result = run("up", env=env)
    assert result.returncode == 1
    assert result.stderr.count("\n") == result.stderr.count("Stop what listens there") == 1
    for name in names:
        address = env[f"FRONTAGE_{name}"]
        assert f"FRONTAGE_{name}: {address} is in use" in result.stderr


def test_one_port_for_two_listeners_is_refused(env: dict[str, str]) -> None:
    result = run("up", env=env | {"FRONTAGE_EDGE_ADMIN": env["FRONTAGE_EDGE_HTTP"]})
    assert result.returncode == 1
    assert result.stderr.startswith("frontage: FRONTAGE_EDGE_ADMIN:")


def test_a_role_that_does_not_start_ends_everything(state_dir: Path, env: dict[str, str]) -> None:
    state_dir.mkdir(mode=0o700)
    (state_dir / "monitor.fails").touch()
    result = run("up", env=env)
    assert (result.returncode, result.stdout) == (1, "")
    assert "frontage monitor: stand-in told to fail" in result.stderr
    assert "Traceback" not in result.stderr
    pids = [pid_of(state_dir, role) for role in ROLES if (state_dir / f"{role}.pid").exists()]
    assert_nothing_runs(state_dir, pids)


def test_a_role_that_crashes_is_started_again(state_dir: Path, env: dict[str, str]) -> None:
    with running_up(state_dir, env) as up:
        assert up.stdout.readline().startswith("ready")
        crashed = pid_of(state_dir, "monitor")
        os.kill(crashed, signal.SIGKILL)
        wait_until(lambda: pid_of(state_dir, "monitor") != crashed, "the monitor was not started again")


def test_a_database_that_dies_comes_back(state_dir: Path, env: dict[str, str]) -> None:
    with running_up(state_dir, env) as up:
        assert up.stdout.readline().startswith("ready")
        postmaster = int((state_dir / "postgres/data/postmaster.pid").read_text().splitlines()[0])
        with contextlib.suppress(ProcessLookupError):
            os.kill(postmaster, signal.SIGKILL)
        wait_until(lambda: run("app", "list", env=env).returncode == 0, "the database did not come back")


def test_an_access_log_on_standard_output_comes_behind_the_ready_line(state_dir: Path) -> None:
    env = environment(state_dir, EDGE_ACCESS_LOG="-", EDGE_WORKERS="2")  # with the roles themselves
    host, _, port = env["FRONTAGE_EDGE_HTTP"].partition(":")
    with running_up(state_dir, env) as up:
        assert up.stdout.readline().startswith("ready")
        for path in ("/first", "/second"):
            with socket.create_connection((host, int(port)), timeout=30) as client:
                client.sendall(f"GET {path} HTTP/1.1\r\nHost: nobody.example\r\nConnection: close\r\n\r\n".encode())
                assert client.recv(12) == b"HTTP/1.1 404"
            line = json.loads(up.stdout.readline())
            assert (line["status"], line["path"]) == (404, path)
