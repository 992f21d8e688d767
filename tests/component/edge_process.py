"""An edge under test: started as a process of its own, asked over its ports, gone at the end of the test."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from bench.lab.ports import free_ports
from bench.process_tree import descendants
from tests.waiting import until

ROOT = Path(__file__).parents[2]
DEADLINE_SECONDS = 90.0
STAND_IN = "tests.component.stand_in_edge"


def is_alive(pid: int) -> bool:
    """Neither gone nor a zombie."""
    return _state(pid) not in "ZX"


async def freeze(*pids: int) -> None:
    """Stop them, the first one first; returns when they stand still, and do not even accept."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
        await until(partial(_is_stopped, pid))


def _is_stopped(pid: int) -> bool:
    return _state(pid) == "T"


def _state(pid: int) -> str:
    """As proc(5) has it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


async def ask(port: int, path: str = "/", method: str = "GET") -> str:
    """The body of one answer, over a connection of its own. Raises: OSError, EOFError."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        return await exchange(reader, writer, path, method)
    finally:
        writer.close()


async def exchange(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    path: str = "/",
    method: str = "GET",
    *,
    host: str = "localhost",
) -> str:
    """One exchange on a connection. Raises: EOFError when it breaks off."""
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    lines = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:] if line)
    body = await reader.readexactly(int(lines["Content-Length"]))
    if lines.get("Connection") == "close":
        writer.close()
    return body.decode()


def _without_uvloop(directory: Path) -> list[str]:
    """What keeps a process from finding uvloop, where the test itself runs on plain asyncio."""
    if isinstance(asyncio.get_running_loop(), asyncio.SelectorEventLoop):
        (directory / "uvloop.py").write_text("raise ImportError")
        return [str(directory)]
    return []


class EdgeProcess:
    """An edge with `workers` workers, run as `python -m module`. Its creator must `end` it."""

    def __init__(self, state_dir: Path, *, workers: int, module: str, **env: str) -> None:
        self.state_dir = state_dir
        self.http, self.https, self.admin = free_ports(3)
        self.environ = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([*_without_uvloop(state_dir), str(ROOT)]),
            "FRONTAGE_STATE_DIR": str(state_dir),
            "FRONTAGE_EDGE_HTTP": f"127.0.0.1:{self.http}",
            "FRONTAGE_EDGE_HTTPS": f"127.0.0.1:{self.https}",
            "FRONTAGE_EDGE_ADMIN": f"127.0.0.1:{self.admin}",
            "FRONTAGE_EDGE_WORKERS": str(workers),
            **env,
        }
        self._command = [sys.executable, "-m", module]
        self._passed: list[tuple[str, socket.socket]] = []
        self.process: subprocess.Popen[bytes]
        self._seen: set[int] = set()

    def hold_sockets(self, *names: str) -> None:
        """From now on it gets these listening sockets, as from systemd; they are the test's, and outlive it."""
        ports = {"http": self.http, "https": self.https, "admin": self.admin}
        self._passed = [
            (name, socket.create_server(("127.0.0.1", ports[name]), reuse_port=True, backlog=512)) for name in names
        ]

    def hold_dns_sockets(self, port: int) -> None:
        """Pass it the sockets of EDGE_DNS too."""
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        datagrams.bind(("127.0.0.1", port))
        self._passed += [("dns", socket.create_server(("127.0.0.1", port))), ("dns", datagrams)]

    def launch(self, **env: str) -> None:
        descriptors = [listener.fileno() for _, listener in self._passed]
        named = [f"{name}={listener.fileno()}" for name, listener in self._passed]
        as_systemd = [sys.executable, str(ROOT / "tests/component/socket_unit.py"), *named, "--"] if named else []
        with (self.state_dir / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*as_systemd, *self._command],
                env={**self.environ, **env},
                pass_fds=descriptors,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self._seen.add(self.process.pid)

    async def start(self, **env: str) -> None:
        """Returns when it has printed ``ready``."""
        self.launch(**env)
        assert self.process.stdout
        os.set_blocking(self.process.stdout.fileno(), False)
        printed = b""

        def is_ready() -> bool:
            nonlocal printed
            assert self.process.stdout
            assert self.process.poll() is None, self.log()
            printed += self.process.stdout.read() or b""
            return printed.endswith(b"\n")

        await until(is_ready)
        assert printed == b"ready\n"

    def log(self) -> str:
        return (self.state_dir / "log").read_text()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def ended(self) -> int:
        """Its exit status; the moment it ends."""
        await until(lambda: self.process.poll() is not None)
        if self.process.stdout:
            self.process.stdout.close()
        return self.process.returncode

    async def admin_json(self, path: str, method: str = "GET") -> dict[str, Any]:
        answer: dict[str, Any] = orjson.loads(await ask(self.admin, path, method))
        return answer

    async def metrics(self) -> str:
        return await ask(self.admin, "/metrics")

    async def metrics_with(self, line: str) -> None:
        """Returns when the metrics show this."""

        async def has_line() -> bool:
            return line in await self.metrics()

        await until(has_line, line, seconds=DEADLINE_SECONDS)

    async def draining(self) -> None:
        """Returns when it has begun to end."""

        async def is_draining() -> bool:
            return bool((await self.admin_json("/readyz"))["message"] != "ready")

        await until(is_draining, seconds=DEADLINE_SECONDS)

    async def workers(self) -> dict[int, int]:
        """The serving workers: gate to pid."""
        ready = await self.admin_json("/readyz")
        workers = ready["workers"]
        self._seen.update([ready["supervisor"], *(worker["pid"] for worker in workers)])
        return {worker["gate"]: worker["pid"] for worker in workers if worker["state"] == "serving"}

    async def workers_when(self, condition: Callable[[dict[int, int]], bool]) -> dict[int, int]:
        found: list[dict[int, int]] = []

        async def are_so() -> bool:
            found[:] = [await self.workers()]
            return condition(found[0])

        try:
            await until(are_so, seconds=DEADLINE_SECONDS)
        except AssertionError as error:
            error.add_note(f"{found}\n{self.log()}")
            raise
        return found[0]

    def living(self) -> set[int]:
        """Processes of this edge that were ever seen and still live."""
        self._seen.update(descendants(self.process.pid))
        return set(filter(is_alive, self._seen))

    async def serving(self) -> int:
        """The pid of the active generation."""
        pid: int = (await self.admin_json("/readyz"))["supervisor"]
        return pid

    async def upgraded(self, *before: int) -> int:
        """The pid of the active generation, once it is none of these."""

        async def successor() -> int | None:
            pid = await self.serving()
            return None if pid in before else pid

        try:
            pid = await until(successor, seconds=DEADLINE_SECONDS)
        except AssertionError as error:
            error.add_note(self.log())
            raise
        assert pid is not None
        return pid

    def queued_connections(self) -> int:
        """Connections the kernel holds for this edge that no worker has accepted (proc(5), rx_queue of LISTEN)."""
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        ports = {f"{port:04X}" for port in (self.http, self.https)}
        return sum(
            int(row[4].partition(":")[2], 16) for row in rows if row[3] == "0A" and row[1].partition(":")[2] in ports
        )

    def end(self) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()
        for pid in self.living():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for _, listener in self._passed:
            listener.close()


@contextmanager
def stand_in_edge(state_dir: Path, *, workers: int = 2, **variables: str) -> Iterator[EdgeProcess]:
    """An edge to be started, whose data path is the stand-in, in its version 1; it is gone after the block."""
    (state_dir / "version").write_text("1")
    process = EdgeProcess(state_dir, workers=workers, module=STAND_IN, **variables)
    try:
        yield process
    finally:
        process.end()


@contextmanager
def real_edge(state_dir: Path, *, workers: int, **variables: str) -> Iterator[EdgeProcess]:
    """The product's edge, to be started; it is gone after the block."""
    process = EdgeProcess(state_dir, workers=workers, module="edge", **variables)
    try:
        yield process
    finally:
        process.end()
