"""A partner of Secure, with an origin that answers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.integration.api.conftest import Service
from tests.integration.api.secured import Origin, Ssl, serve_origin


@pytest.fixture
async def origin() -> AsyncIterator[Origin]:
    async with serve_origin() as origin:
        yield origin


@pytest.fixture
async def ssl_partner(service: Service, origin: Origin) -> Ssl:
    return Ssl(await service.partner(), origin.url)
