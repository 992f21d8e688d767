"""The steps of the schema, as files: found in their order, and taken one at a time."""

from __future__ import annotations

import runpy
from dataclasses import dataclass
from pathlib import Path

from common.db.migrations.scripts import run_script
from common.db.session import Connection

STEPS = Path(__file__).with_name("versions")
"""Where the steps lie. How one is written: `common.db.migrations.scripts`."""


@dataclass(frozen=True, slots=True)
class Step:
    """One file: a script, or a module with a coroutine function ``take``."""

    number: str
    path: Path

    async def take(self, connection: Connection) -> None:
        """Change the schema and record the step's number, for a script in one transaction.

        Raises: `asyncpg.LockNotAvailableError` when another transaction holds a table's lock for long: the step can be
        taken again.
        """
        if self.path.suffix == ".sql":
            async with connection.transaction():
                await run_script(connection, self.path.read_text("utf-8"))
                await self._record(connection)
            return
        await runpy.run_path(str(self.path))["take"](connection)
        async with connection.transaction():
            await self._record(connection)

    async def _record(self, connection: Connection) -> None:
        await connection.execute("delete from alembic_version")
        await connection.execute("insert into alembic_version values ($1)", self.number)


def find_steps(directory: Path = STEPS) -> list[Step]:
    """Return the steps of `directory` in the order of their numbers: files named ``NNNN_name``, ``.sql`` or ``.py``."""
    return [Step(path.name[:4], path) for path in sorted(directory.glob("[0-9]*.*")) if path.suffix in (".py", ".sql")]


async def read_step(connection: Connection) -> str | None:
    """Return the number of the last step that was taken; None where there is no schema.

    The table has the name that it got from the tool which took the steps before the first release.
    """
    if await connection.fetchval("select to_regclass('alembic_version')") is None:
        return None
    number: str | None = await connection.fetchval("select version_num from alembic_version")
    return number
