"""A program under callgrind, valgrind's instruction counter, which counts from one call to the next.

Callgrind does not count what the kernel does. Needs Debian's `valgrind`.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.instruction_parts import read_parts
from common.errors import OperatorError

LOG = "log"
"""The file in the directory that the program's errors are in."""


class CountedProcess:
    """A program that runs under callgrind. Created by `counted`; `directory` holds the profiles."""

    def __init__(self, process: subprocess.Popen[str], directory: Path) -> None:
        self._process = process
        self._directory = directory
        self._dumps = 0

    def read_words(self) -> list[str]:
        """Return the words of the next line of the program's output.

        Raises: `OperatorError` where there is none.
        """
        assert self._process.stdout is not None
        if not (line := self._process.stdout.readline()):
            raise OperatorError(f"the counted program ended: {(self._directory / LOG).read_text()[-400:]}")
        return line.split()

    def send_line(self) -> None:
        """Send the program the line of input that it waits for."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def start_counting(self) -> None:
        """Count from here on, from zero."""
        self._control("--zero")
        self._control("--instr=on")

    def stop_counting(self) -> Counter[str]:
        """Stop counting, and return the instructions by part."""
        self._control("--instr=off")
        self._control("--dump")
        self._dumps += 1
        with (self._directory / f"callgrind.out.{self._dumps}").open(encoding="utf-8", errors="replace") as profile:
            return read_parts(profile)

    def _control(self, command: str) -> None:
        """Send callgrind a command.

        Raises: `OperatorError` when it fails.
        """
        done = subprocess.run(
            ["callgrind_control", command, str(self._process.pid)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise OperatorError(f"callgrind_control {command}: {done.stderr.strip() or done.stdout.strip()}")


@contextlib.contextmanager
def counted(directory: Path, program: Sequence[str], environ: Mapping[str, str]) -> Iterator[CountedProcess]:
    """Run the program under callgrind for the block; counting begins with `start_counting`."""
    argv = ["valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no"]
    argv += [f"--callgrind-out-file={directory}/callgrind.out", *program]
    with (directory / LOG).open("w") as log:
        process = subprocess.Popen(
            argv, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        yield CountedProcess(process, directory)
    finally:
        process.kill()
        process.communicate()
