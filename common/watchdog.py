"""systemd's watchdog: a role's first process reports that its event loop runs (sd_notify(3), systemd.service(5))."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from contextlib import suppress


async def report_life(environ: Mapping[str, str], pid: int) -> None:
    """Say so twice in each period until cancelled; return at once where no service manager asks this process."""
    address, period = environ.get("NOTIFY_SOCKET", ""), environ.get("WATCHDOG_USEC", "")
    if not (address and period.isdigit() and int(period)) or environ.get("WATCHDOG_PID", str(pid)) != str(pid):
        return
    name = "\0" + address[1:] if address.startswith("@") else address
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.setblocking(False)
        while True:
            with suppress(OSError):  # the next one may arrive
                manager.sendto(b"WATCHDOG=1", name)
            await asyncio.sleep(int(period) / 2_000_000)
