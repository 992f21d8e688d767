"""One step of retention, for tests of what expires."""

from __future__ import annotations

from common.db.retention import STEPS
from common.db.session import Connection


async def erase(connection: Connection, name: str) -> int:
    """Take one batch of that step. Returns how many rows it erased."""
    [step] = [step for step in STEPS if step.name == name]
    return (await step.erase(connection, step.batch_rows)).erased
