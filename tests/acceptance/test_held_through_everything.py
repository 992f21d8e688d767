"""A tunnel and an upload outlive whatever happens around them, and meanwhile no other visitor is turned away."""

from __future__ import annotations

import asyncio
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from common.db import certificates
from common.db.migrate import migrate
from common.db.session import Connection, open_session
from common.postgres import EmbeddedPostgres, running_dsn
from common.secrets import load_keyring
from tests import rows
from tests.acceptance.held_clients import Domain, Tunnel, an_origin, upload
from tests.component.edge_process import EdgeProcess, is_alive, real_edge
from tests.tls_parts import the_ca
from tests.waiting import until

NAME = "shop.customer.example"


@pytest.fixture
def state_dir() -> Iterator[Path]:
    """Where the embedded Postgres' own user can go, too."""
    path = Path(tempfile.mkdtemp(prefix="frontage-tests-", dir="/var/tmp"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def postgres(state_dir: Path) -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(state_dir) as server:
        yield server


@pytest.fixture
async def edge(state_dir: Path, postgres: EmbeddedPostgres) -> AsyncIterator[EdgeProcess]:
    """It finds its database through the state directory."""
    await migrate(dsn_of(state_dir))
    load_keyring(state_dir / "master.key", create=True)
    with real_edge(state_dir, workers=2, FRONTAGE_ALLOW_PRIVATE_ADDRESSES="127.0.0.0/8") as process:
        yield process


def dsn_of(state_dir: Path) -> str:
    dsn = running_dsn(state_dir)
    assert dsn is not None
    return dsn


@asynccontextmanager
async def a_connection(state_dir: Path) -> AsyncIterator[Connection]:
    connection = await open_session(dsn_of(state_dir), "frontage tests")
    try:
        yield connection
    finally:
        connection.terminate()


async def power(connection: Connection, origin: int) -> None:
    await rows.power(connection, NAME, f"http://127.0.0.1:{origin}/")


async def certify(connection: Connection, state_dir: Path) -> None:
    chain, key = the_ca().issue(NAME)
    now = datetime.now(UTC)
    await connection.execute(
        "insert into certificates (domain, application_id, issuer, chain, private_key, not_before, not_after)"
        " values ($1, 'app', 'test', $2, $3, $4, $5)"
        " on conflict (domain, application_id) do update"
        " set chain = excluded.chain, private_key = excluded.private_key",
        NAME,
        chain,
        load_keyring(state_dir / "master.key").seal(key, certificates.key_identity(NAME)),
        now,
        now + timedelta(days=1),
    )


async def leads_to(domain: Domain, origin: str) -> bool:
    return (await domain.visit())[0] == origin


async def has_another_certificate(domain: Domain, serial: int) -> bool:
    return (await domain.visit())[1] != serial


async def follows(edge: EdgeProcess, database: bool) -> bool:
    connected: bool = (await edge.admin_json("/readyz"))["replica"]["connected"]
    return connected is database


async def is_gone(pid: int) -> bool:
    return not is_alive(pid)


class Visitors:
    """They come all the time; `turned_away` tells of each who was."""

    def __init__(self, domain: Domain) -> None:
        self.count = 0
        self.turned_away: list[Exception] = []
        self._is_over = False
        self._task = asyncio.create_task(self._come(domain))

    async def _come(self, domain: Domain) -> None:
        while not self._is_over:
            try:
                assert (await domain.visit())[0] in {"old", "new"}
                self.count += 1
            except Exception as error:
                self.turned_away.append(error)
            await asyncio.sleep(0.01)

    async def go(self) -> None:
        self._is_over = True
        await self._task


async def test_tunnel_and_upload_outlive_route_certificate_database_and_upgrade(
    edge: EdgeProcess, postgres: EmbeddedPostgres, state_dir: Path
) -> None:
    domain = Domain(NAME, edge.https, the_ca().client_context())
    enough = asyncio.Event()
    async with an_origin("old") as old, an_origin("new") as new:
        async with a_connection(state_dir) as connection:
            await power(connection, old)
            await certify(connection, state_dir)
        await edge.start()
        origin, serial = await domain.visit()
        assert origin == "old"
        tunnel = await Tunnel.through(domain)
        uploading = asyncio.create_task(upload(domain, enough))
        visitors = Visitors(domain)

        async with a_connection(state_dir) as connection:
            await power(connection, new)
            await until(lambda: leads_to(domain, "new"))
            assert await tunnel.carries()
            await certify(connection, state_dir)
            await until(lambda: has_another_certificate(domain, serial))
            assert await tunnel.carries()

        postgres.stop()
        await until(lambda: follows(edge, False))
        assert await tunnel.carries()
        postgres.start()
        await until(lambda: follows(edge, True))
        assert await tunnel.carries()

        before = await edge.serving()
        edge.signal(signal.SIGUSR2)
        await edge.upgraded(before)
        assert await tunnel.carries()
        assert not uploading.done()
        assert is_alive(before)  # for the tunnel and the upload
        assert await leads_to(domain, "new")

        enough.set()
        assert await uploading
        assert await tunnel.carries()
        await visitors.go()
        assert visitors.turned_away == []
        assert visitors.count > 20
        tunnel.writer.close()
        await until(lambda: is_gone(before))
    edge.signal(signal.SIGTERM)
    assert await edge.ended() == 0
    assert edge.living() == set()
