"""What the operator did wrong is one line that says what to do; nothing is ever a traceback."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from bench.lab.ports import free_ports
from common.db.pool import Database
from common.secrets import load_keyring
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
    assert result.stderr.endswith(": start it, or check FRONTAGE_DATABASE_URL\n")


@pytest.fixture
async def stranger(dsn: str, database: Database) -> AsyncIterator[str]:
    """The database's address with a login that was given nothing."""
    name = f"stranger_{secrets.token_hex(6)}"
    async with database.connection() as connection:
        await connection.execute(f"create role {name} login password 'x'")
    parts = urlsplit(dsn)
    yield urlunsplit(parts._replace(netloc=f"{name}:x@{parts.netloc.rpartition('@')[2]}"))
    async with database.connection() as connection:
        await connection.execute(f"drop role {name}")


@pytest.mark.parametrize(
    "command", [["app", "list"], ["status"], ["token", "x"], ["migrate"], ["api"], ["monitor"], ["edge"]]
)
async def test_a_login_without_rights_is_named_with_the_one_to_use(
    stranger: str, tmp_path: Path, env: dict[str, str], command: list[str]
) -> None:
    load_keyring(tmp_path / "state/master.key", create=True)
    result = await asyncio.to_thread(run, *command, env=env | {"FRONTAGE_DATABASE_URL": stranger})
    assert (result.returncode, result.stdout) == (1, "")
    (line,) = result.stderr.splitlines()
    assert "login that owns the tables" in line


async def test_doctor_names_a_login_without_rights(stranger: str, env: dict[str, str]) -> None:
    result = await asyncio.to_thread(run, "doctor", env=env | {"FRONTAGE_DATABASE_URL": stranger})
    assert (result.returncode, result.stderr) == (1, "")
    assert "the database's login may not do this" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"{bad", "is not JSON"), (b"\xff\xfe", "is not UTF-8 text"), (None, "cannot be read: No such")],
)
def test_a_bad_file_of_a_setting_is_named(
    tmp_path: Path, env: dict[str, str], content: bytes | None, words: str
) -> None:
    file = tmp_path / "policy.json"
    if content is not None:
        file.write_bytes(content)
    result = run("app", "set", "x", "--response-policy", str(file), env=env)
    assert result.returncode == 2
    assert f"{file} {words}" in " ".join(result.stderr.split())


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
    assert json.loads(down.stdout) == {
        "message": "the database cannot be reached: Connection refused",
        "code": "database_unavailable",
        "hint": "start it, or check FRONTAGE_DATABASE_URL",
    }
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


@pytest.mark.parametrize("content", [b"nonsense\n", b"\xff\xfe\x00key\n"])
def test_a_damaged_key_file_is_named_with_the_remedy(tmp_path: Path, env: dict[str, str], content: bytes) -> None:
    file = tmp_path / "state/master.key"
    file.parent.mkdir()
    file.write_bytes(content)
    result = run("app", "list", env=env)
    assert result.returncode == 1
    assert result.stderr == f"frontage: the master key file {file} is damaged: restore it from your backup\n"
