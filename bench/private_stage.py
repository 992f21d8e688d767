"""A stage for one bench: everything of `frontage up` with the lab, on free ports, in a directory that ends with it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from bench.demo.stage import Stage, set_up
from bench.lab.ports import free_ports
from common.settings import PREFIX

_LISTENERS = ("EDGE_HTTP", "EDGE_HTTPS", "EDGE_ADMIN", "API_LISTEN", "API_ADMIN", "MONITOR_ADMIN")


def private_environment(state_dir: Path, **settings: str) -> dict[str, str]:
    """Return an environment without the user's own Frontage; `settings` are named without the prefix."""
    rest = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    listeners = zip(_LISTENERS, free_ports(len(_LISTENERS)), strict=True)
    own = {name: f"127.0.0.1:{port}" for name, port in listeners} | {"STATE_DIR": str(state_dir)} | settings
    return rest | {PREFIX + name: value for name, value in own.items()}


@contextlib.asynccontextmanager
async def private_stage(**settings: str) -> AsyncIterator[Stage]:
    """Run a stage for the block; `settings` are named without the prefix."""
    with tempfile.TemporaryDirectory(prefix="frontage-bench-", ignore_cleanup_errors=True) as directory:
        state_dir = Path(directory)
        async with set_up(private_environment(state_dir, **settings), state_dir) as stage:
            yield stage
