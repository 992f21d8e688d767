"""A step written in SQL: the .sql file next to its Python file, run whole."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from alembic import op
from sqlalchemy import AdaptedConnection


def run_script_of(step: str) -> None:
    """`step` is the step's ``__file__``. The driver's simple protocol takes many statements at once."""
    script = Path(step).with_suffix(".sql").read_text("utf-8")
    driver = cast("AdaptedConnection", op.get_bind().connection.dbapi_connection)
    driver.run_async(lambda connection: connection.execute(script))
