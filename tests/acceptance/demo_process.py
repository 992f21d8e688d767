"""`frontage demo` as its user runs it: a child process, read line by line."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from bench.private_stage import private_environment
from bench.process_tree import descendants
from tests.waiting import wait_until

ROOT = str(Path(__file__).parents[2])
_LINE_SECONDS = 180  # also on a busy machine
_GONE_SECONDS = 15


def environment(state_dir: Path, **settings: str) -> dict[str, str]:
    """On free ports, with the modules under test wherever the child stands."""
    path = os.pathsep.join(filter(None, [ROOT, os.environ.get("PYTHONPATH")]))
    return private_environment(state_dir, **settings) | {"PYTHONPATH": path}


class Demo:
    """Made by `started`, which ends it; `output` is what it has printed so far."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.output = ""
        self.env: dict[str, str] = {}

    @classmethod
    @contextlib.contextmanager
    def started(
        cls, *options: str, env: dict[str, str], cwd: Path, ends_after_seconds: float = _LINE_SECONDS
    ) -> Iterator[Self]:
        argv = [sys.executable, "-m", "api.cli", "demo", *options]
        with subprocess.Popen(
            argv, env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            watchdog = threading.Timer(ends_after_seconds, process.kill)
            watchdog.start()
            try:
                yield cls(process)
            finally:
                watchdog.cancel()
                process.terminate()

    def read_until(self, text: str) -> str:
        """The first line with `text` in it; fails when the demo ends or is silent for too long."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output += line
            if text in line:
                return line
        raise AssertionError(f"no {text!r} in what the demo printed:\n{self.output}")

    def finish(self) -> int:
        """Read to the end; the exit status."""
        assert self.process.stdout is not None
        self.output += self.process.stdout.read()
        return self.process.wait()

    def line_after(self, title: str) -> str:
        match = re.search(rf"^{re.escape(title)}\n  (.+)$", self.output, re.MULTILINE)
        assert match, self.output
        return match[1]

    def family(self) -> set[int]:
        """Its own process and everything below it."""
        return set(descendants(self.process.pid))

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.finish()


def wait_until_gone(pids: set[int]) -> None:
    with contextlib.suppress(AssertionError):
        wait_until(lambda: not any(map(_is_alive, pids)), seconds=_GONE_SECONDS)
    assert [_command(pid) for pid in pids if _is_alive(pid)] == []


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"  # ended; whoever adopted it has not collected it yet


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return str(pid)
