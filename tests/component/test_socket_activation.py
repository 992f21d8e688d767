"""The edge with listening sockets that systemd holds, on both loops, with a stand-in for what it serves."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.component.edge_process import STAND_IN, EdgeProcess, ask, stand_in_edge
from tests.component.load import Load
from tests.waiting import until


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[EdgeProcess]:
    with stand_in_edge(tmp_path) as process:
        yield process


@pytest.mark.parametrize("names", [("http", "https"), ("http", "http", "https", "https", "admin")])
async def test_killed_first_process_breaks_only_what_ran(edge: EdgeProcess, names: tuple[str, ...]) -> None:
    edge.hold_sockets(*names)
    await edge.start()
    load = Load(edge.http)
    before = await edge.workers()
    await load.answered_by(min(before.values()))

    edge.signal(signal.SIGKILL)
    await edge.ended()
    await until(lambda: not edge.living())
    await edge.start()  # as Restart=always does

    after = await edge.workers_when(lambda workers: len(workers) == 2)
    answered = len(load.answers)
    await until(lambda: set(load.answers[answered:]) & set(after.values()))
    await load.end()
    assert set(load.broken) <= {*before.values(), None}  # none of a process that was started since
    assert len(load.broken) <= 8 * len(before)  # a client may meet one worker's end, and then the other's


async def test_an_upgrade_keeps_the_passed_sockets(edge: EdgeProcess) -> None:
    edge.hold_sockets("http", "https")
    await edge.start()
    load = Load(edge.http)
    old = await edge.serving()
    edge.signal(signal.SIGUSR2)
    await edge.upgraded(old)
    await load.end()
    assert load.broken == []


@pytest.mark.parametrize(
    ("names", "variables", "complaint"),
    [
        (("http",), {}, "systemd passes no socket named https: the edge needs http and https"),
        (("http", "https"), {"FRONTAGE_EDGE_HTTP": "127.0.0.1:1"}, "FRONTAGE_EDGE_HTTP is 127.0.0.1:1, and systemd's"),
    ],
)
async def test_sockets_that_do_not_fit_stop_the_start_with_one_line(
    edge: EdgeProcess, names: tuple[str, ...], variables: dict[str, str], complaint: str
) -> None:
    edge.hold_sockets(*names)
    edge.launch(**variables)
    assert await edge.ended() == 1
    assert complaint in edge.log()
    assert edge.log().count("\n") == 1


@pytest.mark.skipif(shutil.which("systemd-socket-activate") is None, reason="systemd is not installed")
async def test_systemd_s_own_tool_passes_what_the_edge_takes(edge: EdgeProcess) -> None:
    command = ["systemd-socket-activate", "--fdname=http:https"]
    command += [f"--listen=127.0.0.1:{port}" for port in (edge.http, edge.https)]
    command += [f"--setenv={name}={value}" for name, value in edge.environ.items()]
    with (edge.state_dir / "log").open("wb") as log:
        edge.process = subprocess.Popen([*command, sys.executable, "-m", STAND_IN], stdout=subprocess.PIPE, stderr=log)
    await until(lambda: "Listening on" in edge.log())
    # The first connection starts the edge, and is answered by it.
    assert (await asyncio.wait_for(ask(edge.http), 30)).endswith("1\n")
