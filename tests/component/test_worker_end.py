"""How a worker ends: its supervisor must get what it counted."""

from __future__ import annotations

import asyncio
import socket
from unittest.mock import create_autospec

from common import settings
from common.traffic import TrafficReport
from edge.process.worker import Worker
from edge.process.worker_messages import Compose, Wake, encode
from edge.process.worker_service import Service


async def test_commands_that_cross_the_last_report_do_not_lose_it() -> None:
    service = create_autospec(Service, instance=True)
    service.take_traffic.return_value = report = create_autospec(TrafficReport, instance=True)
    report.to_plain.return_value = [["counted"]]
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    loop = asyncio.get_running_loop()
    reader, writer = await asyncio.open_unix_connection(sock=theirs)
    worker = Worker(Compose("module:function", settings.load({}), 0, ()), service, writer)
    reporting = asyncio.create_task(worker.report_last(reader))
    with ours:
        async with asyncio.timeout(10):
            said = await loop.sock_recv(ours, 1000)
            await asyncio.sleep(0.05)  # a worker that does not wait has closed its end by now
            for _ in range(3):
                await loop.sock_sendall(ours, encode(Wake()))  # raises where it has
            assert b"counted" in said
            assert not await loop.sock_recv(ours, 1000)  # end of file
        assert not reporting.done()
    await reporting
    writer.close()
