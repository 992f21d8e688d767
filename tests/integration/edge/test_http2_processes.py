"""HTTP/2 to a real edge whose processes are renewed, upgraded and stopped: no request is lost (RFC 9113 §6.8)."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bench.enrolment import EnrolledDomain, enrol
from common.db import domains
from common.db.applications import update_application
from common.db.pool import Database
from common.domain_settings import DomainSettings
from common.secrets import Keyring, load_keyring
from tests import rows
from tests.component.edge_process import EdgeProcess, is_alive, real_edge
from tests.component.http2_peers import Http2Client, get, secure_client
from tests.integration.edge.origins import an_origin
from tests.tls_parts import the_ca
from tests.waiting import SECONDS, until

DOMAIN = "fast.customer.example"
ANY_STREAM = 2**31 - 1


@pytest.fixture
async def edge(tmp_path: Path, dsn: str, keyring: Keyring) -> AsyncIterator[EdgeProcess]:
    environ = {"FRONTAGE_DATABASE_URL": dsn, "FRONTAGE_ALLOW_PRIVATE_ADDRESSES": "127.0.0.0/8"}
    with real_edge(tmp_path, workers=2, **environ) as process:
        yield process


async def power(database: Database, dsn: str, edge: EdgeProcess, origin: int) -> None:
    """Enrol the domain with a certificate."""
    async with database.transaction() as connection:
        await rows.add_application(connection)
    chain, key = the_ca().issue(DOMAIN)
    url = f"http://127.0.0.1:{origin}/"
    keyring = load_keyring(edge.state_dir / "master.key")
    await enrol(dsn, keyring, [EnrolledDomain(DOMAIN, "app", url, chain, key.decode())])


class Http2Load:
    """Clients that keep eight requests under way each, on one connection until it announces its end.

    `lost` are requests that were neither answered nor above the last stream of a GOAWAY, which says that they may be
    sent again.
    """

    def __init__(self, port: int, clients: int = 4) -> None:
        self.answered = 0
        self.repeatable = 0
        self.goaways: list[list[int]] = []
        self.lost: list[str] = []
        self._stop = False
        self._tasks = [asyncio.create_task(self._keep_asking(port)) for _ in range(clients)]

    async def _keep_asking(self, port: int) -> None:
        while not self._stop:
            async with secure_client(port, DOMAIN, "h2") as (_, client):
                while not (self._stop or client.goaways or client.is_closed):
                    await self._ask(client)
                if client.goaways:
                    await client.closed()
                    self.goaways.append(client.goaways)

    async def _ask(self, client: Http2Client) -> None:
        streams = [client.request(get(b"/%d" % n, authority=DOMAIN.encode())) for n in range(8)]
        responses = [client.responses[stream_id] for stream_id in streams]
        await until(lambda: client.is_closed or all(response.is_over for response in responses))
        for stream_id, response in zip(streams, responses, strict=True):
            if response.ended and response.status == 200:
                self.answered += 1
            elif client.goaways and stream_id > client.goaways[-1]:
                self.repeatable += 1
            else:
                self.lost.append(f"stream {stream_id}: {response}, {client.goaways}")

    async def answer_more(self, count: int) -> None:
        """Wait until so many more requests were answered."""
        enough = self.answered + count
        await until(lambda: self.answered >= enough or all(task.done() for task in self._tasks))

    async def end(self) -> None:
        self._stop = True
        await asyncio.wait_for(asyncio.gather(*self._tasks), 30)


async def test_renewal_of_all_workers_loses_no_request(edge: EdgeProcess, database: Database, dsn: str) -> None:
    async with an_origin("here") as origin:
        await power(database, dsn, edge, origin)
        await edge.start()
        before = await edge.workers()
        load = Http2Load(edge.https)
        await load.answer_more(100)
        edge.signal(signal.SIGHUP)
        await until(lambda: len(load.goaways) >= 4)
        await edge.workers_when(lambda workers: len(workers) == 2 and not {*workers.values()} & {*before.values()})
        await load.answer_more(100)
        await until(lambda: not edge.living() & set(before.values()))
        await load.end()
        assert load.lost == []
        for announced, last in load.goaways:
            assert announced == ANY_STREAM
            assert last < ANY_STREAM


async def test_upgrades_lose_no_request(edge: EdgeProcess, database: Database, dsn: str) -> None:
    async with an_origin("here") as origin:
        await power(database, dsn, edge, origin)
        await edge.start()
        pids = [await edge.serving()]
        load = Http2Load(edge.https)
        await load.answer_more(100)
        for _ in range(2):
            edge.signal(signal.SIGUSR2)
            pids.append(await edge.upgraded(*pids))
            await load.answer_more(100)
        await until(lambda: not any(map(is_alive, pids[:2])))
        await load.end()
        assert load.lost == []
        assert load.goaways


async def test_stop_serves_streams_that_were_sent_before_the_second_goaway(
    edge: EdgeProcess, database: Database, dsn: str
) -> None:
    released = asyncio.Event()
    async with an_origin("late", released) as origin:
        await power(database, dsn, edge, origin)
        await edge.start()
        async with secure_client(edge.https, DOMAIN, "h2") as (_, client):
            authority = DOMAIN.encode()
            slow = client.request(get(b"/slow", authority=authority))
            await edge.metrics_with("frontage_edge_upstream_connections 1.0")
            edge.signal(signal.SIGTERM)
            await client.until(lambda: client.goaways)
            late = client.request(get(b"/late", authority=authority))
            assert (await client.response(late)).content == b"late"
            await client.until(lambda: client.goaways == [ANY_STREAM, late])
            released.set()
            assert (await client.response(slow)).content == b"late"
            await client.closed()
        assert await edge.ended() == 0


async def test_application_s_own_switch_reaches_the_edge(edge: EdgeProcess, database: Database, dsn: str) -> None:
    async def chosen() -> str | None:
        async with secure_client(edge.https, DOMAIN, "h2", "http/1.1") as (protocol, _):
            return protocol

    async def choose(protocol: str, *, http2: bool) -> None:
        """Set the switch, and wait until new connections speak the protocol."""
        async with database.transaction() as connection:
            await update_application(connection, "app", http2=http2)
        async with asyncio.timeout(SECONDS):
            while await chosen() != protocol:
                pass

    async with an_origin("here") as origin:
        await power(database, dsn, edge, origin)
        await edge.start()
        assert await chosen() == "h2"
        await choose("http/1.1", http2=False)
        await choose("h2", http2=True)


async def test_fields_that_an_application_s_and_a_domain_s_responses_carry_reach_the_edge(
    edge: EdgeProcess, database: Database, dsn: str
) -> None:
    async with an_origin("here") as origin:
        await power(database, dsn, edge, origin)
        await edge.start()
        async with secure_client(edge.https, DOMAIN, "h2") as (_, client):

            async def carried() -> dict[bytes, bytes]:
                response = await client.exchange(get(authority=DOMAIN.encode()))
                assert response.content == b"here"
                return {
                    name: value for name, value in response.fields if name in (b"strict-transport-security", b"x-own")
                }

            async def choose(policy: dict[str, object] | None, expected: dict[bytes, bytes]) -> None:
                """Set the policy, and wait until responses carry its fields."""
                async with database.transaction() as connection:
                    await update_application(connection, "app", response_policy=policy)
                async with asyncio.timeout(SECONDS):
                    while await carried() != expected:
                        pass

            async def state(policy: dict[str, object], expected: dict[bytes, bytes]) -> None:
                """Set the domain's own, and wait likewise."""
                async with database.transaction() as connection:
                    changed = DomainSettings(response_policy=policy)
                    await domains.update(connection, DOMAIN, "power", "app", changed)
                async with asyncio.timeout(SECONDS):
                    while await carried() != expected:
                        pass

            assert await carried() == {}
            expected = {b"strict-transport-security": b"max-age=60", b"x-own": b"a"}
            await choose({"hsts_seconds": 60, "fields": {"X-Own": "a"}}, expected)
            await state({"hsts": "off", "fields": {"x-own": "b"}}, {b"x-own": b"b"})
            await state({"hsts": {"maxAge": 5}}, {b"strict-transport-security": b"max-age=5", b"x-own": b"a"})
            await state({}, expected)
            await choose(None, {})
