"""Whose domain it is: attacks on names by applications that have none of their own there, and names that move."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.api.conftest import Service, open_service
from tests.integration.api.secured import serve_origin
from tests.timeouts import UNHURRIED


@pytest.fixture
async def service(dsn: str, tmp_path: Path, probe_port: int) -> AsyncIterator[Service]:
    """One whose zones' own servers can be asked."""
    settings: dict[str, Any] = {"PUBLIC_URL": "https://api.frontage.test", "ACME_DNS_ZONE": "acme.frontage.test"}
    async with open_service(dsn, tmp_path, probe_port, UNHURRIED, authority_port=None, **settings) as service:
        service.zone.add("test", "NS", "ns.test")
        service.zone.add("ns.test", "A", "127.0.0.1")
        yield service


@pytest.fixture
async def origin() -> AsyncIterator[str]:
    async with serve_origin() as origin:
        yield origin.url
