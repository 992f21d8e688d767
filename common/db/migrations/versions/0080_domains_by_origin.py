"""Domains are found by the origin that their URL begins with, and those without a URL by their application."""

from __future__ import annotations

from common.db.migrations.scripts import create_indexes
from common.db.session import Connection


async def take(connection: Connection) -> None:
    """Create the index by which domains are found by the origin of their URL."""
    await create_indexes(
        connection,
        {"domains_by_origin": "on domains (application_url text_pattern_ops) where application_url is not null"},
    )
