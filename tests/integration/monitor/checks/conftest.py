"""A name server, an application, and checks that ask that server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bench.lab.server import NameServer
from bench.lab.zone import Zone
from common.db.pool import Database
from monitor.checks.checking import Checking

from . import parts


@pytest.fixture
async def server() -> AsyncIterator[NameServer]:
    async with NameServer.serve(Zone()) as server:
        yield server


@pytest.fixture
async def shop(database: Database) -> Database:
    await parts.add_application(database)
    return database


@pytest.fixture
async def checking(shop: Database, server: NameServer) -> AsyncIterator[Checking]:
    checking = parts.make_checking(shop, parts.address_of(server))
    async with parts.running(checking):
        yield checking
