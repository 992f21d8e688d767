"""Shell completion, in a real bash that has loaded what `frontage --show-completion bash` prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.children import clean_environment

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
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m common.cli "$@"\n')
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
