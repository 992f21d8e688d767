"""Roles and children as real processes: stopping, crashing, and parents that are killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from common.file_locks import ProcessIdentity
from common.processes import ChildFailed, Group, exited, spawn
from tests.children import clean_environment
from tests.waiting import until, wait_until

ENVIRONMENT = clean_environment()

ROLE = """
import os
from common.errors import OperatorError
from common.processes import announce_ready, run_role

async def serve(settings, stop):
    if "REFUSE" in os.environ:
        raise OperatorError("put it right")
    assert not {"FRONTAGE_DATABASE_URL", "FRONTAGE_ACME_EAB"} & set(os.environ)
    announce_ready()
    print(settings.database_url, flush=True)
    await stop.wait()

run_role("tested", serve)
"""

# A parent with two generations below it: all three pids are printed.
FAMILY = """
import os, subprocess, sys
from common.processes import spawn
child = spawn([sys.executable, "-c", sys.argv[1]], env=os.environ, stdout=subprocess.PIPE)
print(os.getpid(), child.pid, child.stdout.readline().decode().strip(), flush=True)
child.wait()
"""
CHILD = """
import os, signal
from common.processes import spawn
print(spawn(["sleep", "60"], env={"PATH": os.environ["PATH"]}).pid, flush=True)
signal.pause()
"""


def script(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def start(text: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*script(text), *arguments],
        env=ENVIRONMENT | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def is_gone(pid: int) -> bool:
    return ProcessIdentity.of(pid) is None


@pytest.mark.parametrize("role", ["api", "edge", "monitor"])
def test_a_role_starts_without_a_collection_of_everything(role: str) -> None:
    counted = f"import gc, {role}.__main__; print(gc.get_stats()[2]['collections'], gc.get_threshold()[0] > 700)"
    with start(counted) as started:
        assert started.communicate()[0] == "0 True\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_role_says_ready_and_stops_cleanly_on_a_signal(number: signal.Signals) -> None:
    secrets = {"FRONTAGE_DATABASE_URL": "postgresql://there", "FRONTAGE_ACME_EAB": f"ca.example=kid:{'k' * 32}"}
    with start(ROLE, **secrets) as role:
        assert role.stdout.readline() == "ready\n"
        assert role.stdout.readline() == "postgresql://there\n"  # handed over, no longer in the environment
        role.send_signal(number)
        assert role.wait(10) == 0


@pytest.mark.parametrize(
    ("environment", "line"),
    [
        ({"REFUSE": "1"}, "frontage tested: put it right\n"),
        ({"FRONTAGE_NO_SUCH": "1"}, "frontage tested: FRONTAGE_NO_SUCH is not a setting"),
        ({"FRONTAGE_EDGE_HTTP": "nowhere"}, "frontage tested: FRONTAGE_EDGE_HTTP has a bad value"),
    ],
)
def test_role_tells_the_operator_in_one_line(environment: dict[str, str], line: str) -> None:
    with start(ROLE, **environment) as role:
        said = role.stderr.read()
        assert role.wait(10) == 1
    assert said.startswith(line)
    assert said.count("\n") == 1


def test_killing_a_parent_ends_every_generation_below() -> None:
    with start(FAMILY, CHILD) as parent:
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 3
        parent.kill()
        wait_until(lambda: all(map(is_gone, pids[1:])), f"one of {pids} outlived its parent")


async def test_exited_tells_the_status_of_a_child_that_ends_now_or_ended_before() -> None:
    child = spawn(script("raise SystemExit(3)"), env=ENVIRONMENT)
    assert await exited(child) == 3
    assert await exited(child) == 3


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_a_child_of_another_account_has_none_of_our_rights_and_dies_with_us_too() -> None:
    account = 'UnixAccount("nobody", 65534, 65534)'
    text = f"""
import subprocess
from common.processes import UnixAccount, spawn
child = spawn(["/bin/sleep", "60"], env={{}}, account={account}, cwd="/")
print(child.pid, flush=True)
child.wait()
"""
    with start(text) as parent:
        pid = int(parent.stdout.readline())
        status = dict(
            line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line
        )
        assert status["Uid"].split() == ["65534"] * 4
        assert status["Gid"].split() == ["65534"] * 4
        assert status["Groups"].strip() == ""
        parent.kill()
        wait_until(lambda: is_gone(pid), "the child outlived its parent")


SERVING = 'import signal; print("ready", flush=True); signal.pause()'


async def test_group_restarts_a_child_that_crashes_and_ends_all() -> None:
    group = Group()
    await group.start("first", script(SERVING), ENVIRONMENT)
    await group.start("second", script(SERVING), ENVIRONMENT)
    keeping = asyncio.create_task(group.keep("first", script(SERVING), ENVIRONMENT))
    crashed = group._processes["first"]
    crashed.kill()
    await until(lambda: group._processes["first"] is not crashed)
    keeping.cancel()
    await asyncio.wait([keeping])
    await group.stop()
    assert all(process.poll() is not None for process in group._processes.values())


async def test_group_reports_a_child_that_ends_before_it_serves() -> None:
    group = Group()
    with pytest.raises(ChildFailed, match="the edge did not start"):
        await group.start("edge", script("raise SystemExit(1)"), ENVIRONMENT)
    with pytest.raises(ChildFailed, match="the edge was ended by SIGKILL"):
        await group.start("edge", script("import os; os.kill(os.getpid(), 9)"), ENVIRONMENT)
    await group.stop()


TALKING = """
import signal, sys
print("before", flush=True)
print("ready", flush=True)
print("after", flush=True)
signal.sigwait([signal.SIGTERM])
print("last words", flush=True)
"""


async def test_group_passes_on_what_children_say_besides_ready_once_told_to(capfd: pytest.CaptureFixture[str]) -> None:
    blocked = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n"
    group = Group()
    await group.start("first", script(blocked + TALKING), ENVIRONMENT)
    assert capfd.readouterr().out == ""
    group.pass_output_on()
    await group.start("second", script(blocked + TALKING), ENVIRONMENT)
    await group.stop()
    said = capfd.readouterr().out
    assert sorted(said.splitlines()) == sorted(["before", "after", "last words"] * 2)


async def test_group_is_not_stopped_by_a_child_that_talks_to_nobody() -> None:
    group = Group()
    await group.start("loud", script('print("ready"); print("x" * 1_000_000, flush=True)'), ENVIRONMENT)
    async with asyncio.timeout(10):
        await group.stop()


async def test_group_kills_what_does_not_stop() -> None:
    group = Group(stop_seconds=0.1)
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + SERVING
    await group.start("deaf", script(deaf), ENVIRONMENT)
    await group.stop()
    assert group._processes["deaf"].returncode == -signal.SIGKILL
