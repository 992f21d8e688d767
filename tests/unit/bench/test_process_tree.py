from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bench import process_tree

WORK = "sum(range(10_000_000)); print(1, flush=True); input()"
NESTED = f"import subprocess, sys; subprocess.run([sys.executable, '-c', '{WORK}'])"


def test_a_grandchild_counts_and_can_be_found_and_pinned() -> None:
    with subprocess.Popen([sys.executable, "-c", NESTED], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        family = list(process_tree.descendants(process.pid))
        assert len(family) == 2
        assert process_tree.cpu_seconds(process.pid) > 0.02
        core = min(os.sched_getaffinity(0))
        process_tree.pin(process.pid, core)
        assert [os.sched_getaffinity(pid) for pid in family] == [{core}, {core}]
        process.communicate(b"\n")
    assert process_tree.cpu_seconds(process.pid) == 0


def test_a_child_is_found_by_the_end_of_its_command_line() -> None:
    argv = [sys.executable, "-c", WORK, "-m", "edge"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            assert process_tree.find_child(os.getpid(), "-m", "edge") == process.pid
            with pytest.raises(LookupError):
                process_tree.find_child(os.getpid(), "-m", "api")
        finally:
            process.communicate(b"\n")
