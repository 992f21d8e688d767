"""A reader's terminal: one shell into which the blocks of a page are typed, with this checkout's commands in it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.children import ROOT

_SECONDS = 100
_DONE = "-- the block is done --"
_COMMANDS = f"""
frontage() {{ '{sys.executable}' -m api.cli "$@"; }}
python3() {{ '{sys.executable}' "$@"; }}
python() {{ '{sys.executable}' "$@"; }}
"""


class Terminal:
    """Made by `opened`, which ends the shell and what runs in it."""

    def __init__(self, shell: subprocess.Popen[str]) -> None:
        self._shell = shell

    @classmethod
    @contextmanager
    def opened(cls, env: Mapping[str, str], variables: Mapping[str, str]) -> Iterator[Terminal]:
        """`variables` are set in the shell before the first block."""
        with subprocess.Popen(
            ["bash", "--norc"],
            env=dict(env),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as shell:
            watchdog = threading.Timer(_SECONDS, lambda: os.killpg(shell.pid, signal.SIGKILL))
            watchdog.start()
            try:
                terminal = cls(shell)
                terminal.type(_COMMANDS + "".join(f"{name}='{value}'\n" for name, value in variables.items()))
                yield terminal
            finally:
                watchdog.cancel()
                os.killpg(shell.pid, signal.SIGTERM)
                shell.kill()

    def type(self, block: str) -> str:
        """What the block prints, read until it ends."""
        printed = ""
        for line in self._lines(f"{block}\nprintf '\\n%s\\n' '{_DONE}'"):
            if line.strip() == _DONE:
                return printed
            printed += line
        raise AssertionError(printed)

    def start(self, block: str, text: str) -> str:
        """The first line printed that contains `text`; the block goes on running."""
        printed = ""
        for line in self._lines(block):
            if text in line:
                return line
            printed += line
        raise AssertionError(printed)

    def _lines(self, block: str) -> Iterator[str]:
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f"{block}\n")
        self._shell.stdin.flush()
        return iter(self._shell.stdout)
