"""A role under systemd's watchdog: what a service manager receives at its socket."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest

from common.watchdog import report_life


async def test_life_is_reported_again_and_again(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.setblocking(False)
        environ = {
            "NOTIFY_SOCKET": str(tmp_path / "notify"),
            "WATCHDOG_USEC": "20000",
            "WATCHDOG_PID": str(os.getpid()),
        }
        reporting = asyncio.create_task(report_life(environ, os.getpid()))
        loop = asyncio.get_running_loop()
        said = [await loop.sock_recv(manager, 100) for _ in range(3)]
        reporting.cancel()
    assert said == [b"WATCHDOG=1"] * 3


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"NOTIFY_SOCKET": "/nowhere"},
        {"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "0"},
        {"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "20000", "WATCHDOG_PID": "1"},
    ],
)
async def test_nothing_is_said_where_nobody_asks_this_process(environ: dict[str, str]) -> None:
    await report_life(environ, os.getpid())
