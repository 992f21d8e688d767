"""An edge without the rest: a process of its own before a Postgres that may come and go, timed and looked into."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import aiohttp

from bench import process_tree
from bench.lab.programs import last_log_line
from bench.memory import Memory, memory_of
from common.errors import OperatorError
from common.host_ports import HostPort
from common.processes import exited, role_argv, spawn
from common.settings import Settings, load

_STOP_SECONDS = 20


class LoneEdge:
    """One edge, started and stopped as often as wanted; its creator must `stop` it in the end."""

    def __init__(self, environ: Mapping[str, str], log: Path) -> None:
        """Create an edge that is not started; its log is appended to the file `log`."""
        self._environ = environ
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self.settings: Settings = load(environ)

    @property
    def https(self) -> HostPort:
        """Return the address of its TLS listener."""
        return self.settings.edge_https

    @property
    def pid(self) -> int:
        """Return the id of the root of its processes."""
        assert self._process is not None
        return self._process.pid

    async def start(self, *, within_seconds: float) -> float:
        """Start the edge, and return the seconds until it reports that it serves.

        Raises: `OperatorError` when it does not.
        """
        begun_at = time.perf_counter()
        with self._log.open("ab") as log:
            self._process = spawn(role_argv("edge"), env=self._environ, stdout=subprocess.PIPE, stderr=log)
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(within_seconds):
                line = await asyncio.to_thread(self._process.stdout.readline)
        except TimeoutError:
            self._process.kill()
            line = b""
        if line != b"ready\n":
            raise OperatorError(f"the edge did not serve within {within_seconds:g} seconds: {last_log_line(self._log)}")
        return time.perf_counter() - begun_at

    async def stop(self) -> None:
        """Stop the edge, if it runs; kill it if it does not end in time."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await exited(self._process)
        finally:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def pin(self, core: int) -> None:
        """Pin all its processes to the core."""
        process_tree.pin(self.pid, core)

    def cpu_seconds(self) -> float:
        """Return the CPU time of all its processes."""
        return process_tree.cpu_seconds(self.pid)

    async def worker_memory(self) -> Memory:
        """Return the memory of the first worker."""
        return memory_of((await self._worker_pids())[0])

    async def private_bytes_of_others(self) -> int:
        """Return what the edge's other processes hold, the replica's writer among them."""
        workers = await self._worker_pids()
        others = (pid for pid in process_tree.descendants(self.pid) if pid not in workers)
        return sum(memory_of(pid).private_bytes for pid in others)

    async def _worker_pids(self) -> list[int]:
        async with (
            aiohttp.ClientSession(f"http://{self.settings.edge_admin}") as session,
            session.get("/readyz") as response,
        ):
            return [worker["pid"] for worker in (await response.json())["workers"]]
