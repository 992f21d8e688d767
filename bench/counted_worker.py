"""One edge worker without a supervisor, for `bench.instructions`: the data path as production composes it.

``python -m bench.counted_worker``: serves the records in ``records.json`` in the state directory, prints its two ports,
and runs until its standard input ends. Settings come from the environment. The replica is in memory, since valgrind
cannot map LMDB's address space; a worker reads it once for each domain and change, not for each request.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from common.processes import loop_factory, settle_garbage_collector
from common.settings import load
from edge.process.worker_service import EdgeService


class MemoryReader:
    """Holds a replica's records in memory, read as a worker reads its replica."""

    def __init__(self, path: Path) -> None:
        self._records = {key: json.dumps(record).encode() for key, record in json.loads(path.read_text()).items()}

    def generation(self) -> int:
        """Return 1: the records never change."""
        return 1

    def get_raw(self, kind: str, key: str) -> bytes | None:
        """Return the stored record of that kind and key; None if there is none."""
        return self._records.get(f"{kind}/{key}")

    def sample_certificates(self) -> dict[str, bytes]:
        """Return no certificates."""
        return {}

    def is_cut_off(self) -> bool:
        """Return False: the replica is never stale."""
        return False

    def is_unattended(self) -> bool:
        """Return False: a writer always follows the feed."""
        return False

    def close(self) -> None:
        """Do nothing, since nothing is open."""


async def serve() -> None:
    """Serve until standard input ends, and print the plain and the TLS port at first."""
    settings = load()
    loop = asyncio.get_running_loop()
    service = EdgeService(settings, MemoryReader(settings.state_dir / "records.json"), loop)
    plain = await loop.create_server(service.plain_protocol, "127.0.0.1", 0)
    secure = await loop.create_server(service.secure_protocol, "127.0.0.1", 0)
    settle_garbage_collector()
    print(*(server.sockets[0].getsockname()[1] for server in (plain, secure)), flush=True)
    stop = asyncio.Event()
    loop.add_reader(0, stop.set)
    await stop.wait()
    service.close()


def main() -> None:
    """Run the worker."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(serve())


if __name__ == "__main__":
    main()
