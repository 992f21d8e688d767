"""Validation as it happens: Pebble asks a real edge, which answers from what it knows, with Postgres or without."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bench.lab.pebble import Pebble, running_pebble
from common.db import orders
from common.db.pool import Database
from common.secrets import Keyring
from monitor.certificates.issuer import IssuanceFailed
from tests import rows
from tests.component.edge_process import EdgeProcess, real_edge
from tests.waiting import until_equal

from .parts import DOMAIN, Answering, Attempts, opened

NOWHERE = "postgresql://frontage:none@127.0.0.1:1/frontage"
OTHER = "enrolled-meanwhile.customer.example"


@pytest.fixture
async def edge(tmp_path: Path, dsn: str, keyring: Keyring) -> AsyncIterator[EdgeProcess]:
    with real_edge(tmp_path, workers=2, FRONTAGE_DATABASE_URL=dsn) as process:
        yield process


@pytest.fixture
async def pebble(tmp_path: Path, edge: EdgeProcess) -> AsyncIterator[Pebble]:
    async with running_pebble(tmp_path, http_port=edge.http) as running:
        yield running


async def enrol(database: Database, domain: str = DOMAIN) -> None:
    async with database.transaction() as connection:
        await rows.power(connection, domain, "https://origin.example/")
        await orders.request_order(connection, domain, "app", hold_seconds=10)


async def status(edge: EdgeProcess, domain: str) -> int:
    """Of a challenge's answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", edge.http)
    try:
        writer.write(f"GET /.well-known/acme-challenge/token HTTP/1.1\r\nHost: {domain}\r\n\r\n".encode())
        return int((await reader.readuntil(b"\r\n")).split()[1])
    finally:
        writer.close()


async def test_edge_answers_the_moment_it_is_asked(
    edge: EdgeProcess, pebble: Pebble, database: Database, keyring: Keyring
) -> None:
    await edge.start()
    async with opened(pebble, database, keyring, Answering()) as issuer:
        await enrol(database)  # nobody waits for the edge but the issuer itself
        await Attempts().by(issuer)
        with pytest.raises(IssuanceFailed, match="404"):
            await Attempts("never-enrolled.customer.example").by(issuer)


async def test_edge_without_postgres_answers_also_for_what_was_enrolled_meanwhile(
    edge: EdgeProcess, pebble: Pebble, database: Database, keyring: Keyring
) -> None:
    async with opened(pebble, database, keyring, Answering()) as issuer:
        await enrol(database)
        await edge.start()
        edge.signal(signal.SIGKILL)
        await edge.ended()
        await edge.start(FRONTAGE_DATABASE_URL=NOWHERE)
        await Attempts().by(issuer)
        await enrol(database, OTHER)
        await until_equal(lambda: status(edge, OTHER), 200)  # once it knows that the database is silent
        await Attempts(OTHER).by(issuer)
        edge.signal(signal.SIGKILL)
        await edge.ended()
        await edge.start()
        await until_equal(lambda: status(edge, "never-enrolled.customer.example"), 404)
