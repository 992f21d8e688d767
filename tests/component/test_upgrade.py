"""One generation of the edge follows another, with a stand-in for what they serve, and nobody notices.

The kernel migrates no queue here (``net.ipv4.tcp_migrate_req`` is off): whoever closes a socket resets its clients.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.component.edge_process import EdgeProcess, ask, freeze, is_alive, stand_in_edge
from tests.component.load import Load
from tests.waiting import until

FAILURES = ["bad-import", "bad-settings", "crash", "bad-active-role"]
MOMENTS = ["worker started", "the generation is prepared", "Leave()"]


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[EdgeProcess]:
    with stand_in_edge(tmp_path, FRONTAGE_LOG_LEVEL="debug") as process:
        await process.start()
        yield process


@asynccontextmanager
async def a_tunnel(edge: EdgeProcess) -> AsyncIterator[Tunnel]:
    reader, writer = await asyncio.open_connection("127.0.0.1", edge.http)
    try:
        writer.write(b"GET /echo HTTP/1.1\r\nHost: localhost\r\n\r\n")
        async with asyncio.timeout(10):
            await reader.readuntil(b"\r\n\r\n")
            pid = int((await reader.readline()).split()[0])
        yield Tunnel(reader, writer, pid)
    finally:
        writer.close()


class Tunnel:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pid: int) -> None:
        self.pid = pid  # of the worker it leads through
        self._reader = reader
        self._writer = writer
        self._turn = 0

    async def carries(self) -> bool:
        self._turn += 1
        sent = f"turn {self._turn}\n".encode()
        self._writer.write(sent)
        return await asyncio.wait_for(self._reader.readline(), 10) == sent


async def until_logged(edge: EdgeProcess, text: str, after: int) -> None:
    await until(lambda: text in edge.log()[after:])


async def test_three_upgrades_under_load_lose_no_request(edge: EdgeProcess) -> None:
    first = await edge.serving()
    load = Load(edge.http)
    pids = [first]
    for _ in range(3):
        edge.signal(signal.SIGUSR2)
        pids.append(await edge.upgraded(*pids))
        for worker in (await edge.workers_when(lambda workers: len(workers) == 2)).values():
            await load.answered_by(worker)
    await until(lambda: not any(map(is_alive, pids[:3])))
    await load.end()
    assert load.broken == []
    assert edge.queued_connections() == 0
    assert await ask(edge.http)
    assert len(edge.living()) == 4  # the keeper, one supervisor, two workers


async def test_clients_queued_at_the_old_generation_are_answered_by_the_new_one(edge: EdgeProcess) -> None:
    before = await edge.workers()
    old = await edge.serving()
    await freeze(old, *before.values())
    clients = [asyncio.create_task(ask(edge.http)) for _ in range(24)]
    await until(lambda: edge.queued_connections() == 24)
    seen = len(edge.log())
    edge.signal(signal.SIGUSR2)
    await until_logged(edge, "the generation is prepared", seen)
    assert edge.queued_connections() == 24  # nobody accepts yet

    os.kill(old, signal.SIGKILL)  # and its workers with it

    answers = await asyncio.wait_for(asyncio.gather(*clients), 30)
    assert not {answer.split()[0] for answer in answers} & {str(pid) for pid in before.values()}


async def test_tunnel_outlives_upgrades_and_its_end_is_the_old_generation_s(edge: EdgeProcess) -> None:
    first = await edge.serving()
    async with a_tunnel(edge) as tunnel:
        before = set((await edge.workers()).values())
        edge.signal(signal.SIGUSR2)
        second = await edge.upgraded(first)
        edge.signal(signal.SIGUSR2)
        await edge.upgraded(first, second)
        await until(lambda: not is_alive(second))
        assert await tunnel.carries()
        await until(lambda: before & edge.living() == {tunnel.pid})  # nothing else is left of the first one
        assert is_alive(first)
    await until(lambda: not is_alive(first))


async def test_tunnel_outlives_the_renewal_of_its_worker(tmp_path: Path) -> None:
    with stand_in_edge(tmp_path, workers=1, FRONTAGE_EDGE_DRAIN_TIMEOUT_SECONDS="0.1") as edge:
        await edge.start()
        async with a_tunnel(edge) as tunnel:
            edge.signal(signal.SIGHUP)
            await edge.workers_when(lambda workers: len(workers) == 1 and tunnel.pid not in workers.values())
            carries_until = time.monotonic() + 0.5
            while time.monotonic() < carries_until:
                assert await tunnel.carries()
        await until(lambda: not is_alive(tunnel.pid))


async def test_stop_bounds_the_time_of_tunnels_through_old_generations(tmp_path: Path) -> None:
    with stand_in_edge(tmp_path, workers=1, FRONTAGE_EDGE_DRAIN_TIMEOUT_SECONDS="0.5") as edge:
        await edge.start()
        old = await edge.serving()
        async with a_tunnel(edge) as tunnel:
            edge.signal(signal.SIGUSR2)
            await edge.upgraded(old)
            assert await tunnel.carries()
            edge.living()
            edge.signal(signal.SIGTERM)
            assert await edge.ended() == 0
        assert edge.living() == set()


@pytest.mark.parametrize("failure", FAILURES)
async def test_version_that_does_not_start_leaves_the_old_one_serving(edge: EdgeProcess, failure: str) -> None:
    old, before = await edge.serving(), await edge.workers()
    load = Load(edge.http)
    seen = len(edge.log())
    (edge.state_dir / failure).touch()

    edge.signal(signal.SIGUSR2)
    await until_logged(edge, "upgrade failed", seen)

    (edge.state_dir / failure).unlink()
    await edge.metrics_with("frontage_edge_workers_serving 2.0")
    await edge.metrics_with("frontage_edge_failed_upgrade 1.0")
    ready = await edge.admin_json("/readyz")
    assert ready["message"] == "ready"
    assert ready["supervisor"] == old
    assert "ended with status 1" in ready["failed_upgrade"]["reason"]
    assert await edge.workers() == before
    (edge.state_dir / "version").write_text("2")  # the active role is the old one's again
    async with asyncio.timeout(30):
        while not (await ask(edge.http)).endswith(" 2\n"):
            pass

    edge.signal(signal.SIGUSR2)
    await edge.upgraded(old)
    assert (await edge.admin_json("/readyz"))["failed_upgrade"] is None
    await load.end()
    assert load.broken == []


@pytest.mark.parametrize("moment", MOMENTS)
async def test_stop_during_an_upgrade_leaves_no_process(edge: EdgeProcess, moment: str) -> None:
    await edge.workers()
    slow = asyncio.create_task(ask(edge.http, "/slow"))
    await edge.metrics_with("stand_in_running 1.0")
    seen = len(edge.log())
    edge.signal(signal.SIGUSR2)
    await until_logged(edge, moment, seen)
    edge.living()
    edge.signal(signal.SIGTERM)
    (edge.state_dir / "released").touch()
    assert await slow
    assert await edge.ended() == 0
    assert edge.living() == set()


@pytest.mark.parametrize("moment", MOMENTS)
async def test_keeper_killed_during_an_upgrade_leaves_no_process_and_starts_again(
    edge: EdgeProcess, moment: str
) -> None:
    seen = len(edge.log())
    edge.signal(signal.SIGUSR2)
    await until_logged(edge, moment, seen)
    edge.living()
    edge.signal(signal.SIGKILL)
    await edge.ended()
    await until(lambda: not edge.living())
    await edge.start()
    assert await ask(edge.http)


@pytest.mark.parametrize("moment", ["upgrade begins", "worker started", "TakeOver()"])
async def test_new_generation_killed_before_it_serves_leaves_the_old_one_serving(
    edge: EdgeProcess, moment: str
) -> None:
    old, before = await edge.serving(), await edge.workers()
    present = edge.living()
    seen = len(edge.log())
    edge.signal(signal.SIGUSR2)
    (edge.state_dir / "empty").touch()  # so that it never serves
    await until(lambda: edge.living() - present)
    new = min(edge.living() - present)  # the supervisor: its workers come later
    await until_logged(edge, moment, seen)

    (edge.state_dir / "empty").unlink()
    os.kill(new, signal.SIGKILL)

    await until(lambda: not edge.living() - present)
    await edge.metrics_with("frontage_edge_workers_serving 2.0")
    assert await edge.workers() == before
    assert await edge.serving() == old

    async def failed_upgrade() -> Any:
        return (await edge.admin_json("/readyz"))["failed_upgrade"]  # the upgrade parent reports it to the supervisor

    assert "by signal 9" in (await until(failed_upgrade))["reason"]


async def test_killed_generation_is_replaced_and_its_queue_served(edge: EdgeProcess) -> None:
    old, workers = await edge.serving(), await edge.workers()
    await freeze(old, *workers.values())
    clients = [asyncio.create_task(ask(edge.http)) for _ in range(24)]
    await until(lambda: edge.queued_connections() == 24)

    os.kill(old, signal.SIGKILL)

    assert len(await asyncio.wait_for(asyncio.gather(*clients), 30)) == 24
    assert await edge.serving() != old
    assert edge.process.poll() is None
    assert not {old, *workers.values()} & edge.living()


async def test_generation_that_dies_and_cannot_be_replaced_ends_the_edge(edge: EdgeProcess) -> None:
    (edge.state_dir / "bad-import").touch()
    await edge.workers()
    os.kill(await edge.serving(), signal.SIGKILL)
    assert await edge.ended() != 0
    assert edge.living() == set()


async def test_second_wish_during_an_upgrade_is_met_after_it(edge: EdgeProcess) -> None:
    seen = len(edge.log())
    edge.signal(signal.SIGUSR2)
    await until_logged(edge, "worker started", seen)
    edge.signal(signal.SIGUSR2)
    await until(lambda: edge.log()[seen:].count('"upgrade ends: the new generation serves"') == 2)
    assert await ask(edge.http)
