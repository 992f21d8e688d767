"""A supervisor's process: executes the commands of its upgrade parent, whatever the workers serve.

Started by `edge.process.generation` as ``python -m <module> <control descriptor>``. It ends with its upgrade parent.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import datetime

from common.builds import Build
from common.db.edge_nodes import FailedUpgrade
from common.logs import get_logger
from common.settings import Settings
from edge.process import generation_messages as control
from edge.process.active_role import Replica
from edge.process.child import LINE_LIMIT_BYTES
from edge.process.listeners import Listeners
from edge.process.supervisor import Supervisor, TrafficSink

log = get_logger("edge.process.supervisor_process")


async def supervise(
    settings: Settings,
    stop: asyncio.Event,
    *,
    service: str,
    replica: Callable[[Callable[[int], None]], Replica],
    traffic: TrafficSink,
    build: Build,
) -> None:
    """Run a generation until its upgrade parent or `stop` ends it and all is over; the rest as in `Supervisor`.

    Raises: `OperatorError` when it cannot begin to serve.
    """
    for number in (signal.SIGHUP, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)  # sent to the whole group at times; only the upgrade parent decides
    channel = socket.socket(fileno=int(sys.argv[1]))
    reader, writer = await asyncio.open_unix_connection(sock=channel, limit=LINE_LIMIT_BYTES)
    begin = control.decode_command(await reader.readline())
    if not isinstance(begin, control.Begin):
        raise ValueError("the first message is Begin")
    with closing(Listeners.inherited(begin.pairs, begin.admin, begin.dns)) as listeners:
        supervisor = Supervisor(
            settings,
            service=service,
            listeners=listeners,
            replica=replica,
            traffic=traffic,
            build=build,
            report=lambda report: writer.write(control.encode(report)),
        )
        running = asyncio.create_task(supervisor.run(stop), name="supervisor")
        handling = asyncio.create_task(_handle_commands(reader, supervisor, stop), name="handle_commands")
        await asyncio.wait({running, handling}, return_when=asyncio.FIRST_COMPLETED)
        for task in (handling, running):  # without an upgrade parent there is no drain
            task.cancel()
        await asyncio.wait({running, handling})  # the failed one raises below
        for task in (handling, running):
            if not task.cancelled():
                task.result()


async def _handle_commands(reader: asyncio.StreamReader, supervisor: Supervisor, stop: asyncio.Event) -> None:
    """Execute commands until the upgrade parent is gone."""
    while (line := await reader.readline()).endswith(b"\n"):
        command = control.decode_command(line)
        match command:
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
                supervisor.upgrade_failed(FailedUpgrade(datetime.fromisoformat(command.at), command.reason))
            case _:
                log.warning("a command of the upgrade parent could not be read", line=line.decode(errors="replace"))
        log.debug("command from the upgrade parent", command=str(command))
