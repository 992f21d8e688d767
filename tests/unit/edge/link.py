"""Machines joined by a fake link: a client, our real data path, and origins, without a socket or a real clock.

`Link` owns one worker's `WorkerContext` and plays the event loop. One client connection at a time goes through it: what
the client sends is given to `ClientConnection` piece by piece, what reaches origins is answered by an `OriginMachine`,
and both ends' bytes are kept for judgement (`tests.unit.edge.oracle`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from common import settings
from common.secrets import load_keyring
from edge.proxy.client_connection import ClientConnection
from edge.proxy.counters import ExchangeCounters
from edge.proxy.exchange import Exchange
from edge.proxy.worker_context import WorkerContext
from edge.routing.route import Origin
from edge.upstream.connection import UpstreamConnection
from tests.component.peers import MemoryReplica

CLIENT_ADDRESS = "192.0.2.7"
ROOMY = 1 << 30
TOO_LONG_SECONDS = 4000.0


class StillLoop:
    """As much of an event loop as the data path asks for. Time stands still unless told to pass."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._ready: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._timers: list[_Timer] = []

    def time(self) -> float:
        return self.now

    def call_soon(self, callback: Callable[..., None], *arguments: Any) -> None:
        self._ready.append((callback, arguments))

    def call_later(self, seconds: float, callback: Callable[..., None], *arguments: Any) -> _Timer:
        return self.call_at(self.now + seconds, callback, *arguments)

    def call_at(self, at: float, callback: Callable[..., None], *arguments: Any) -> _Timer:
        timer = _Timer(at, callback, arguments)
        self._timers.append(timer)
        return timer

    def call_due(self) -> None:
        """Call what is due by now: the worker's tick, and the rounds of lingering connections."""
        due = [timer for timer in self._timers if timer.at <= self.now]
        self._timers = [timer for timer in self._timers if timer.at > self.now]
        for timer in due:
            timer.run()

    def create_task(self, work: Coroutine[Any, Any, None], *, name: str) -> _Task:
        task = _Task(work)
        self.call_soon(task.step)
        return task

    def run(self) -> bool:
        """Call what is ready, and what that makes ready; whether there was anything."""
        began = bool(self._ready)
        while self._ready:
            callback, arguments = self._ready.popleft()
            callback(*arguments)
        return began


class _Timer:
    def __init__(self, at: float, callback: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self.at = at
        self._callback: Callable[..., None] | None = callback
        self._arguments = arguments

    def run(self) -> None:
        if self._callback is not None:
            self._callback(*self._arguments)

    def cancel(self) -> None:
        self._callback = None


class _Task:
    """A coroutine that waits for nothing."""

    def __init__(self, work: Coroutine[Any, Any, None]) -> None:
        self._work = work
        self._is_cancelled = False

    def step(self) -> None:
        if not self._is_cancelled:
            with contextlib.suppress(StopIteration):
                self._work.send(None)

    def cancel(self) -> None:
        self._is_cancelled = True
        self._work.close()


class Pipe(asyncio.Transport):
    """One end of a connection, as our protocols see it. `capacity`: unread bytes from which writing pauses."""

    def __init__(
        self, loop: StillLoop, protocol: asyncio.Protocol, peer: str, capacity: int, server_name: str = ""
    ) -> None:
        super().__init__({"peername": (peer, 4711), "socket": self, "server_name": server_name})
        self.protocol = protocol
        self.sent = bytearray()
        self.inbox: deque[bytes | type[BaseException] | None] = deque()  # None: EOF; an error: reset
        self.is_paused = False
        self.is_cut = False  # ended without flushing
        self.is_reset = False  # … so that the peer sees an error, not an end
        self.wrote_eof = False
        self.unread = self.most_unread = 0
        self._loop = loop
        self._capacity = capacity
        self._is_full = False
        self._is_closing = False

    def write(self, data: bytes) -> None:  # type: ignore[override]
        assert not self.wrote_eof, "bytes after our own end"
        if self._is_closing:
            return
        self.sent += data
        self.unread += len(data)
        self.most_unread = max(self.most_unread, self.unread)
        if self.unread > self._capacity and not self._is_full:
            self._is_full = True
            self.protocol.pause_writing()

    def get_write_buffer_size(self) -> int:
        return self.unread

    def drain(self) -> bool:
        """The peer reads; whether anything came of it."""
        self.unread = 0
        if not self._is_full:
            return False
        self._is_full = False
        self.protocol.resume_writing()
        return True

    def deliver(self) -> bool:
        """Give the protocol the next piece, if it reads and there is one."""
        if not self.inbox or self.is_paused or self._is_closing:
            return False
        piece = self.inbox.popleft()
        if isinstance(piece, bytes):
            self.protocol.data_received(piece)
        elif piece is None:
            if not self.protocol.eof_received():
                self.close()
        else:
            self._end(piece())
        return True

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = cast("asyncio.Protocol", protocol)

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.wrote_eof = True

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        self._end(None)

    def abort(self) -> None:
        self.is_cut = self.is_cut or not self._is_closing
        self._end(None)

    def setsockopt(self, *_: Any) -> None:
        """`SO_LINGER` is the one option set on a connection under way."""
        self.is_reset = True

    def getsockopt(self, *_: Any) -> bytes:
        """`TCP_INFO` is the one asked for: established."""
        return b"\x01"

    def _end(self, error: BaseException | None) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._loop.call_soon(self.protocol.connection_lost, error)


class OriginMachine(Protocol):
    """One origin's side of one connection."""

    def receive(self, data: bytes) -> Sequence[bytes | type[BaseException] | None]:
        """What it answers: pieces of bytes, None for its end, an error for a reset."""


class _FakeConnector:
    def __init__(self, link: Link) -> None:
        self._link = link

    async def connect(self, origin: Origin, on_lost: Callable[[UpstreamConnection], None]) -> UpstreamConnection:
        return self._link.connected(UpstreamConnection(origin, on_lost))

    address_failure_count = 0

    @property
    def tls(self) -> Any:
        raise AssertionError("no origin here speaks TLS")

    def note_unanswered(self, connection: UpstreamConnection) -> None:
        """Origins have one address here."""


class _StillAddresses:
    """In place of `AddressFollower`: no origin moves."""

    retired_count = 0

    def add(self, connection: UpstreamConnection) -> None: ...
    def discard(self, connection: UpstreamConnection) -> None: ...
    def tick(self, retire: Callable[[UpstreamConnection], None]) -> None: ...


class _Recording(ExchangeCounters):
    """Keeps each finished exchange, too."""

    def __init__(self, link: Link) -> None:
        super().__init__()
        self._link = link

    def exchange(self, exchange: Exchange) -> list[int]:
        self._link.finished.append(exchange)
        return super().exchange(exchange)


class Upstream:
    """One connection to an origin, from the link's point of view."""

    def __init__(self, pipe: Pipe, machine: OriginMachine) -> None:
        self.pipe = pipe
        self.machine = machine
        self._seen = 0

    def react(self) -> bool:
        if len(self.pipe.sent) == self._seen:
            return False
        data = bytes(self.pipe.sent[self._seen :])
        self._seen = len(self.pipe.sent)
        self.pipe.inbox.extend(self.machine.receive(data))
        return True


class Link:
    """Made once for many conversations (`begin` … `end`); making it is slow, a conversation is not."""

    def __init__(self, directory: Path, **environ: str) -> None:
        self.loop = StillLoop()
        self.replica = MemoryReplica()
        self.replica.enrol("shop.example.com", "http://origin.example", application="a")
        self.replica.enrol("power.example.com", "http://origin.example/base", application="b")
        keyring = load_keyring(directory / "master.key", create=True)
        loop = cast("asyncio.AbstractEventLoop", self.loop)
        self.worker = WorkerContext(settings.load(environ), self.replica, keyring, loop)
        self.worker._dispatcher._connector = cast("Any", _FakeConnector(self))
        self.worker._dispatcher._follower = cast("Any", _StillAddresses())
        self.worker.counters = cast("Any", _Recording(self))

    def begin(
        self,
        machines: Callable[[], OriginMachine],
        *,
        client_capacity: int = ROOMY,
        upstream_capacity: int = ROOMY,
        server_name: str = "",
        secure: bool = True,
    ) -> None:
        self._machines = machines
        self._upstream_capacity = upstream_capacity
        self.upstreams: list[Upstream] = []
        self.finished: list[Exchange] = []
        self.client = self.connect(client_capacity, server_name, secure=secure)

    def connect(self, capacity: int = ROOMY, server_name: str = "", *, secure: bool = True) -> Pipe:
        """A client's connection; `converse` is about the one of `begin`."""
        protocol = ClientConnection(self.worker, secure=secure)
        pipe = Pipe(self.loop, protocol, CLIENT_ADDRESS, capacity, server_name)
        protocol.connection_made(pipe)
        return pipe

    def converse(self, pieces: Sequence[bytes | None]) -> bytes:
        """Let the client send `pieces`; returns all that came back so far."""
        self.client.inbox.extend(pieces)
        while self.step():
            pass
        return bytes(self.client.sent)

    def let_time_pass(self, seconds: float) -> None:
        self.loop.now += seconds
        self.loop.call_due()
        self.converse([])

    def end(self) -> None:
        """Both sides fall silent, for longer than any time-out: nothing may remain of the conversation."""
        for _ in range(30):  # one for each request that waits, and the rounds of lingering
            if not self.client.is_closing():
                self.let_time_pass(TOO_LONG_SECONDS)
        assert self.client.is_closing(), "a silent client is waited for without end"
        for upstream in self.upstreams:
            upstream.pipe.close()
        self.loop.run()
        assert not self.worker.connections
        assert not self.worker.upstream_count

    def connected(self, connection: UpstreamConnection) -> UpstreamConnection:
        pipe = Pipe(self.loop, connection, "192.0.2.80", self._upstream_capacity)
        connection.connection_made(pipe)
        self.upstreams.append(Upstream(pipe, self._machines()))
        return connection

    def step(self) -> bool:
        """One step of everybody; those who are stuck read only when nothing else moves."""
        moved = self.loop.run() | self.client.deliver()
        for upstream in self.upstreams:
            moved |= upstream.react()
            moved |= upstream.pipe.deliver()
        if moved:
            return True
        pipes = [self.client, *(upstream.pipe for upstream in self.upstreams)]
        return sum(pipe.drain() for pipe in pipes if not pipe.is_closing()) > 0
