"""Applications, domains, certificates, orders, and the change feed that edges follow."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from alembic import op
from sqlalchemy import AdaptedConnection

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Run the .sql file next to this one, whole: the driver's simple protocol takes many statements at once."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    driver = cast("AdaptedConnection", op.get_bind().connection.dbapi_connection)
    driver.run_async(lambda connection: connection.execute(script))
