"""A supervisor's process put together: it does what its keeper says, whatever the workers serve.

Started by `edge.generation` as ``python -m <module> <control descriptor>``. It ends with its keeper.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import closing

from common.logs import get_logger
from common.settings import Settings
from edge import keeper_control as control
from edge.child import LINE_LIMIT_BYTES
from edge.listeners import Listeners
from edge.supervisor import Supervisor
from edge.supervisor_duty import Replica

log = get_logger("edge.supervisor")


async def supervise(
    settings: Settings,
    stop: asyncio.Event,
    *,
    service: str,
    replica: Callable[[Callable[[int], None]], Replica],
) -> None:
    """Run a generation until its keeper or `stop` says so and all is over; `service` and `replica` as in
    `Supervisor`.

    Raises: `OperatorError` when it cannot begin to serve.
    """
    for number in (signal.SIGHUP, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)  # sent to the whole group at times; only the keeper decides
    channel = socket.socket(fileno=int(sys.argv[1]))
    reader, writer = await asyncio.open_unix_connection(sock=channel, limit=LINE_LIMIT_BYTES)
    begin = control.decode_order(await reader.readline())
    if not isinstance(begin, control.Begin):
        raise ValueError("the first message is Begin")
    with closing(Listeners.inherited(begin.gates, begin.admin)) as listeners:
        supervisor = Supervisor(
            settings,
            service=service,
            listeners=listeners,
            replica=replica,
            report=lambda report: writer.write(control.encode(report)),
        )
        running = asyncio.create_task(supervisor.run(stop), name="supervisor")
        obeying = asyncio.create_task(_obey(reader, supervisor, stop), name="obey")
        await asyncio.wait({running, obeying}, return_when=asyncio.FIRST_COMPLETED)
        for task in (obeying, running):  # whichever failed says why; without a keeper there is nothing to drain for
            task.cancel()
        await asyncio.wait({running, obeying})
        for task in (obeying, running):
            if not task.cancelled():
                task.result()


async def _obey(reader: asyncio.StreamReader, supervisor: Supervisor, stop: asyncio.Event) -> None:
    """Until the keeper is gone."""
    while (line := await reader.readline()).endswith(b"\n"):
        order = control.decode_order(line)
        match order:
            case control.Prepare():
                supervisor.prepare()
            case control.TakeOver():
                supervisor.take_over()
            case control.StandBack():
                await supervisor.stand_back()
            case control.Leave():
                supervisor.leave()
            case control.Stop():
                stop.set()
            case control.Renew():
                supervisor.renew_workers()
            case control.UpgradeFailed():
                supervisor.upgrade_failed(order)
            case _:
                log.warning("not understood", line=line.decode(errors="replace"))
        log.info("told by the keeper", order=str(order))
