from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.counted_steps import EMPTY
from bench.instructions import worker_environ, write_records


def test_each_step_of_a_request_is_named_taken_and_done(tmp_path: Path) -> None:
    write_records(tmp_path, origin_port=9)
    run = subprocess.run(
        [sys.executable, "-m", "bench.counted_steps"],
        env=worker_environ(tmp_path),
        input="\n" * 100,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = run.stdout.split("\n")
    names, after = lines[:-2:2], lines[1:-2:2]
    assert names[0] == EMPTY
    assert "hit: read the head by its template" in names
    assert "response, hit: read and rewrite it" in names
    assert "whole exchange, with the access log" in names
    assert set(after) == {"done"}
    assert lines[-2:] == ["", ""]
