"""A worker process: serves, sends heartbeats, and accepts from the listener pairs that the supervisor assigns.

Started as ``python -m edge.process.worker <pair> <stacks descriptor> <control descriptor>`` by
`edge.process.worker_process`; everything else comes over the control channel. On `STACK_SIGNAL` it writes the stacks of
its threads to the stacks' descriptor, however it hangs. It must not outlive its supervisor: end of file there is its
end. What it serves is composed by the function that the first message names (`edge.process.worker_service.compose` in
production).
"""

from __future__ import annotations

import asyncio
import faulthandler
import importlib
import os
import signal
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from common import logs
from common.errors import FrontageError
from common.machine_metrics import LoopLag
from common.processes import loop_factory, raise_descriptor_limit, settle_garbage_collector
from common.settings import Settings
from edge.process.acceptor import Acceptor, accept_from
from edge.process.child import LINE_LIMIT_BYTES
from edge.process.worker_messages import (
    STACK_SIGNAL,
    Adopt,
    Beat,
    Command,
    Compose,
    DomainCounts,
    Drain,
    Finish,
    Ready,
    Recovered,
    Release,
    Wake,
    decode_command,
    encode,
)

if TYPE_CHECKING:
    from edge.process.worker_service import (
        Service,  # what is served is named by the supervisor, and imported by `compose`
    )

BEAT_SECONDS = 0.25
# A connection just accepted has sent nothing yet: only a longer silence means that no exchange is left.
QUIET_SECONDS = 0.2
QUIET_POLL_SECONDS = 0.02
LAST_REPORT_SECONDS = 1.0

log = logs.get_logger("edge.process.worker")


class Worker:
    """Serves and accepts as the supervisor commands. One a process; ends on `Finish`."""

    def __init__(self, begin: Compose, service: Service, writer: asyncio.StreamWriter) -> None:
        self._begin = begin
        self._service = service
        self._writer = writer
        self._lag = LoopLag()
        self._acceptors: dict[int, Acceptor] = {}
        self._is_draining = False
        self._finishing: asyncio.Task[None] | None = None
        self.finished = asyncio.Event()

    async def beat(self) -> None:
        """Send the supervisor, for ever, that this loop turns."""
        while True:
            # A supervisor that stands still must not find an hour of beats when it comes back.
            if not self._writer.transport.get_write_buffer_size():
                is_idle = self._is_draining and self._service.is_idle()  # asks every connection: seldom, then
                service = self._service
                failing, recovered = service.failing_origins(), service.take_recovered_origins()
                families = [*service.measurements(), *self._lag.families()]
                beat = Beat(is_idle, families, failing, recovered, service.certificates())
                self._writer.write(encode(beat))
                self.report_traffic()
            await self._lag.sleep(BEAT_SECONDS)

    def report_traffic(self) -> None:
        """Send what was counted for each domain."""
        if entries := self._service.take_traffic().to_plain():
            self._writer.write(encode(DomainCounts(entries)))

    async def report_last(self, reader: asyncio.StreamReader) -> None:
        """Send what was counted until the service was closed, and wait until the supervisor has read all of it.

        The supervisor closes its end then. If the worker closed first, the supervisor's next command would fail, and
        asyncio would close the channel with the counts unread.
        """
        self.report_traffic()
        self._writer.write_eof()
        with suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(LAST_REPORT_SECONDS):
                await reader.read()

    async def handle_commands(self, reader: asyncio.StreamReader) -> None:
        """Execute commands until the supervisor is gone."""
        while (line := await reader.readline()).endswith(b"\n"):
            await self._do(decode_command(line))

    async def _do(self, command: Command) -> None:
        match command:
            case Wake():
                self._service.on_replica_change()
            case Adopt(pair):
                await self._accept(pair)
            case Release(pair):
                await self._let_go(pair)
            case Recovered(origins):
                self._service.note_recovered_origins(origins)
            case Drain():
                self._drain()
            case Finish(grace_seconds):
                if self._finishing:
                    self._finishing.cancel()
                else:
                    await self._stop_accepting()
                self._finishing = asyncio.create_task(self._finish(grace_seconds), name="finish")
            case Compose():
                raise ValueError("already begun")

    # Accepting -------------------------------------------------------------------------------------------

    async def _accept(self, index: int) -> None:
        if index not in self._acceptors:
            service = self._service
            self._acceptors[index] = await accept_from(
                self._begin.pairs[index], service.plain_protocol, service.secure_protocol
            )

    async def _let_go(self, index: int) -> None:
        if acceptor := self._acceptors.pop(index, None):
            await acceptor.close()

    async def _stop_accepting(self) -> None:
        for index in list(self._acceptors):
            await self._let_go(index)
        for pair in self._begin.pairs:
            # Inherited: while one process holds a socket, clients go on queueing there.
            os.close(pair.http)
            os.close(pair.https)

    def _drain(self) -> None:
        self._is_draining = True
        self._service.drain()

    async def _finish(self, grace_seconds: float) -> None:
        self._drain()
        try:
            async with asyncio.timeout(grace_seconds):
                await self._become_quiet()
        except TimeoutError:
            log.warning("exchanges were cut off", grace_seconds=grace_seconds)
        self.finished.set()

    async def _become_quiet(self) -> None:
        quiet_polls = 0
        while quiet_polls * QUIET_POLL_SECONDS < QUIET_SECONDS:
            await asyncio.sleep(QUIET_POLL_SECONDS)
            quiet_polls = quiet_polls + 1 if self._service.is_idle() else 0


# The process ---------------------------------------------------------------------------------------------


def main() -> None:
    """Run a worker process."""
    faulthandler.register(STACK_SIGNAL, file=int(sys.argv[2]))
    control = socket.socket(fileno=int(sys.argv[3]))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)  # sent to the whole group at times; only the supervisor decides
    logs.configure(f"edge worker {sys.argv[1]}")
    raise_descriptor_limit()
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(_work(control))
    except FrontageError as error:
        log.error("cannot serve", error=str(error))
        sys.exit(1)


async def _work(control: socket.socket) -> None:
    reader, writer = await asyncio.open_unix_connection(sock=control, limit=LINE_LIMIT_BYTES)
    first = await reader.readline()
    if not first:
        return
    begin = decode_command(first)
    if not isinstance(begin, Compose):
        raise ValueError("the first message is Compose")
    logs.configure(f"edge worker {begin.pair}", level=begin.settings.log_level)
    asyncio.get_running_loop().set_exception_handler(_log_unhandled)
    service = compose(begin.service, begin.settings)
    worker = Worker(begin, service, writer)
    writer.write(encode(Ready()))
    settle_garbage_collector()
    handling = asyncio.create_task(worker.handle_commands(reader), name="handle_commands")
    beating = asyncio.create_task(worker.beat(), name="beat")
    finished = asyncio.create_task(worker.finished.wait(), name="finished")
    done, _ = await asyncio.wait({handling, beating, finished}, return_when=asyncio.FIRST_COMPLETED)
    if finished not in done:
        # The supervisor is gone, or this worker is broken: another one serves better.
        for task in done:
            if error := task.exception():
                log.error("worker failed", error=repr(error))
        os._exit(1)
    for task in (handling, beating):
        task.cancel()
    await asyncio.wait({handling, beating})
    service.close()
    await worker.report_last(reader)


def compose(name: str, settings: Settings) -> Service:
    """Return what ``module:function`` makes of the settings, inside the running loop."""
    module, _, function = name.partition(":")
    service: Service = getattr(importlib.import_module(module), function)(settings)
    return service


def _log_unhandled(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log that a callback failed: its connection is lost, the worker goes on."""
    log.error("unhandled error", what=context["message"], exc_info=context.get("exception"))


if __name__ == "__main__":
    main()
