"""Shell completion, in a real bash that has loaded what `frontage --show-completion bash` prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.children import clean_environment
from tests.integration.cli.frontage import argv

SCRIPT = """
source <(frontage --show-completion bash)
complete_words() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    $(complete -p frontage | sed 's/.*-F \\([^ ]*\\) .*/\\1/') frontage
    echo "${COMPREPLY[@]}"
}
complete_words frontage dom
complete_words frontage domain rec
complete_words frontage domain list --product ''
"""


def test_bash_completes_commands_options_and_values(tmp_path: Path) -> None:
    program = tmp_path / "frontage"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m api.cli "$@"\n')
    program.chmod(0o755)
    env = clean_environment(TERM="dumb")
    done = subprocess.run(
        ["bash", "-c", SCRIPT],
        env=env | {"PATH": f"{tmp_path}:{env['PATH']}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        cwd="/",
    )
    assert done.stdout.splitlines() == ["domain domain-connect", "recheck", "power secure"]


@pytest.mark.parametrize(
    ("shell", "words"),
    [("bash", "complete -o default -F"), ("zsh", "#compdef"), ("fish", "complete --command")],
)
def test_the_script_is_for_the_shell_that_is_named(shell: str, words: str) -> None:
    assert words in show_completion(shell).stdout


def test_an_unknown_shell_is_told_which_there_are() -> None:
    result = show_completion("tcsh")
    assert result.returncode == 2
    assert "--show-completion knows bash, zsh, fish, not 'tcsh'" in result.stderr


def show_completion(shell: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv("--show-completion", shell),
        env=clean_environment(COLUMNS="200", NO_COLOR="1"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd="/",
    )
