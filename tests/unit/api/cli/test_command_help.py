"""The help of each command: complete, with an example that the command accepts, and whole where it is piped."""

from __future__ import annotations

import io
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.core import TyperArgument, TyperGroup
from typer.testing import CliRunner

from api.cli.__main__ import app
from api.cli.examples import EXAMPLES
from api.cli.printing import make_console


def leaves(group: TyperGroup, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from leaves(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


def commands() -> dict[str, Any]:
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    return dict(leaves(root))


def test_every_command_argument_and_option_is_explained() -> None:
    found = commands()
    assert [name for name, command in found.items() if not command.help] == []
    parameters = [(name, each) for name, command in found.items() for each in command.params]
    assert [(name, each.name) for name, each in parameters if not getattr(each, "help", None)] == []


def test_a_command_that_must_be_given_something_has_an_example() -> None:
    needy = {
        name
        for name, command in commands().items()
        if any(isinstance(each, TyperArgument) or each.required for each in command.params)
    }
    assert needy <= set(EXAMPLES)


@pytest.mark.parametrize("path", EXAMPLES)
def test_each_example_is_accepted(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("frontage.dump").touch()
    Path("sorry.html").write_text("<p>sorry</p>")
    words = shlex.split(EXAMPLES[path].replace("/var/backups/", "").partition(" < ")[0])
    depth = len(path.split())
    assert " ".join(words[:depth]) == path
    with commands()[path].make_context(path, words[depth:]):
        pass


def test_piped_help_has_each_option_on_one_line() -> None:
    shown = CliRunner().invoke(app, ["app", "set", "-h"], env={"COLUMNS": "40"}).stdout
    assert "  --tier <basic|premium|enterprise>\n" in shown
    assert any(
        line.strip().startswith("X-Service-Auth on what is forwarded;")
        and line.endswith("until a rotation is finished.")
        for line in shown.splitlines()
    )
    assert "Example: frontage app set" in shown
    assert "─" not in shown


def test_a_piped_table_is_not_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", piped := io.StringIO())
    monkeypatch.setitem(os.environ, "COLUMNS", "40")
    make_console().print("long " * 100)
    assert piped.getvalue().count("\n") == 1
