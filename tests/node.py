"""Node.js, for code that is printed for others to copy: one process evaluates all of it, as each start takes 0.1 s."""

from __future__ import annotations

import atexit
import json
import shutil
import subprocess
from functools import cache
from typing import Any

import pytest

_EVALUATE_LINES = """
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  let answer;
  try {
    answer = { value: new Function("require", JSON.parse(line))(require) };
  } catch (error) {
    answer = { error: String(error) };
  }
  console.log(JSON.stringify(answer));
});
"""


def evaluate(body: str) -> Any:
    """What a function with this body returns; each call has names of its own. Without Node.js the test is skipped."""
    process = _running()
    if process is None:
        pytest.skip("node is not installed")
    assert process.stdin
    assert process.stdout
    process.stdin.write(json.dumps(body) + "\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    assert "error" not in answer, answer["error"]
    return answer["value"]


@cache
def _running() -> subprocess.Popen[str] | None:
    program = shutil.which("node")
    if program is None:
        return None
    argv = [program, "-e", _EVALUATE_LINES]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(process.communicate)  # it ends with its input
    return process
