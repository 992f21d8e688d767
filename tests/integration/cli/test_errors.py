"""What the operator did wrong is one line that says what to do; nothing is ever a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.lab.ports import free_ports
from tests.integration.cli.frontage import environment, run


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return environment(tmp_path / "state")


@pytest.mark.parametrize("command", [["up"], ["edge"], ["migrate"], ["app", "list"], ["token", "x"]])
@pytest.mark.parametrize(
    "bad", [{"FRONTAGE_EDGE_HTPP": "1"}, {"FRONTAGE_EDGE_WORKERS": "many"}], ids=["unknown", "bad-value"]
)
def test_a_bad_variable_is_named_by_every_command(env: dict[str, str], command: list[str], bad: dict[str, str]) -> None:
    result = run(*command, env=env | bad)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.count("\n") == 1
    assert next(iter(bad)) in result.stderr


@pytest.mark.parametrize("command", [["up"], ["migrate"]])
def test_a_state_directory_that_cannot_be_written(tmp_path: Path, env: dict[str, str], command: list[str]) -> None:
    (tmp_path / "file").touch()
    result = run(*command, env=env | {"FRONTAGE_STATE_DIR": str(tmp_path / "file" / "state")})
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.count("\n") == 1
    assert str(tmp_path / "file") in result.stderr


@pytest.mark.parametrize("command", [["up"], ["migrate"]])
def test_a_database_that_cannot_be_reached(env: dict[str, str], command: list[str]) -> None:
    [port] = free_ports(1)
    result = run(*command, env=env | {"FRONTAGE_DATABASE_URL": f"postgresql://me:hidden@127.0.0.1:{port}/none"})
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.count("\n") == 1
    assert "hidden" not in result.stderr


def test_without_a_database_the_way_to_one_is_told(env: dict[str, str]) -> None:
    result = run("migrate", env=env)
    assert result.returncode == 1
    assert "frontage up" in result.stderr


@pytest.mark.parametrize("arguments", [["nosuch"], ["up", "--nosuch"], ["app", "create"]])
def test_a_command_line_nobody_understands_exits_2(env: dict[str, str], arguments: list[str]) -> None:
    assert run(*arguments, env=env).returncode == 2


def test_with_json_an_error_is_a_document_on_standard_output(env: dict[str, str]) -> None:
    [port] = free_ports(1)
    down = run("migrate", "--json", env=env | {"FRONTAGE_DATABASE_URL": f"postgresql://me@127.0.0.1:{port}/none"})
    assert down.returncode == 1
    assert json.loads(down.stdout)["code"] == "database_unavailable"
    assert down.stderr.startswith("frontage: the database cannot be reached")

    usage = run("domain", "show", "--json", env=env)
    assert usage.returncode == 2
    assert json.loads(usage.stdout) == {
        "message": "Missing argument 'DOMAIN'.",
        "code": "usage",
        "hint": "frontage domain show --help",
    }

    name = run("domain", "show", "..", "--json", env=env)
    assert (name.returncode, set(json.loads(name.stdout))) == (1, {"message"})


def test_a_value_that_is_none_of_those_there_are_is_told_which_there_are(env: dict[str, str]) -> None:
    said = " ".join(run("certificate", "revoke", "a.example", "--reason", "foo", env=env).stderr.split())
    assert "Invalid value for '--reason': 'foo' is not one of 'unspecified', 'keyCompromise'," in said


def test_help_names_every_command(env: dict[str, str]) -> None:
    text = run("--help", env=env).stdout
    assert all(command in text for command in ("up", "edge", "api", "monitor", "migrate", "doctor", "token", "app"))


def test_doctor_works_when_nothing_runs_and_says_what_to_do(env: dict[str, str]) -> None:
    [port] = free_ports(1)
    result = run("doctor", env=env | {"FRONTAGE_DNS_SERVERS": f"127.0.0.1:{port}"})
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    for words in ("no database", "free for the roles", f"127.0.0.1:{port} gave no answer", "FRONTAGE_POWER_TARGET"):
        assert words in result.stdout
