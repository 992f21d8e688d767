"""Keep-alive connections to the edge, one to each of its workers.

The kernel spreads connections over the workers' sockets; which worker got which is read from /proc, so that "every
worker" means every one.
"""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import aiohttp

from bench.demo.stage import Stage
from bench.process_tree import descendants
from common.errors import FrontageError

_MOST_CONNECTIONS = 512


class WorkerConnection:
    """A client with exactly one connection; created and closed by `one_to_each_worker`."""

    def __init__(self, stage: Stage) -> None:
        self._url = f"https://{stage.edge_https_host}:{stage.settings.edge_https.port}"
        self._trust = ssl.create_default_context(cafile=str(stage.ca_file))
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=1, ssl=self._trust, keepalive_timeout=60, socket_factory=self._open_socket
            ),
            timeout=aiohttp.ClientTimeout(total=10),
        )

    @property
    def local_port(self) -> int:
        """Return the local port of the connection, once a request was made."""
        port: int = self._socket.getsockname()[1]
        return port

    async def get_json(self, domain: str, path: str) -> dict[str, Any]:
        """Request a path of the domain, and return the answer's JSON."""
        request = self._session.get(self._url + path, headers={"Host": domain}, server_hostname=domain)
        async with request as response:
            answer: dict[str, Any] = await response.json()
            return answer

    async def close(self) -> None:
        """Close the connection."""
        await self._session.close()

    def _open_socket(self, address: aiohttp.AddrInfoType) -> socket.socket:
        family, kind, protocol, _, _ = address
        self._socket = socket.socket(family, kind, protocol)
        return self._socket


@contextlib.asynccontextmanager
async def one_to_each_worker(edge_pid: int, stage: Stage, domain: str) -> AsyncIterator[Sequence[WorkerConnection]]:
    """Open connections for the block until each worker has one, and yield these. `edge_pid` is the supervisor's."""
    wanted = stage.settings.edge_workers
    found: dict[int, WorkerConnection] = {}
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(_MOST_CONNECTIONS):
            connection = WorkerConnection(stage)
            stack.push_async_callback(connection.close)
            await connection.get_json(domain, "/echo")
            worker = _accepted_by(edge_pid, stage.settings.edge_https.port, connection.local_port)
            if worker is not None:
                found.setdefault(worker, connection)
            if len(found) == wanted:
                break
        else:
            raise FrontageError(f"{_MOST_CONNECTIONS} connections reached {len(found)} of {wanted} workers")
        yield list(found.values())


def _accepted_by(edge_pid: int, edge_port: int, client_port: int) -> int | None:
    """Return the process below `edge_pid` that holds the edge's end of the connection from `client_port`."""
    inode = _inode(edge_port, client_port)
    if inode is None:
        return None
    for process in descendants(edge_pid):
        for descriptor in Path(f"/proc/{process}/fd").iterdir():
            with contextlib.suppress(OSError):
                if os.readlink(descriptor) == f"socket:[{inode}]":
                    return process
    return None


def _inode(local_port: int, remote_port: int) -> str | None:
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        ports = tuple(int(address.rpartition(":")[2], 16) for address in fields[1:3])
        if ports == (local_port, remote_port):
            return fields[9]
    return None
