"""The edge's processes under deaths, hangs, renewals and stops, with a stand-in for what they serve.

The edge runs on the same kind of loop as the test.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest

from tests.component.edge_process import EdgeProcess, ask, exchange, freeze, stand_in_edge
from tests.component.load import Load
from tests.waiting import until


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[EdgeProcess]:
    with stand_in_edge(tmp_path) as process:
        yield process


@asynccontextmanager
async def queue_behind(edge: EdgeProcess, worker: int) -> AsyncIterator[list[asyncio.Task[str]]]:
    """Clients of which the kernel holds some for a worker that is stopped. Until the end of the block the supervisor is
    stopped too: however slow the machine, it does not replace the worker first."""
    supervisor = await edge.serving()
    await freeze(supervisor, worker)
    clients: list[asyncio.Task[str]] = []

    def is_one_queued() -> int:
        # Again, for another worker may just be letting go of that gate, and take the first ones.
        clients.extend(asyncio.create_task(ask(edge.http)) for _ in range(24))
        return edge.queued_connections()

    await until(is_one_queued)
    yield clients
    os.kill(supervisor, signal.SIGCONT)


async def test_killed_worker_breaks_only_its_own_connections_and_is_replaced(edge: EdgeProcess) -> None:
    await edge.start()
    before = await edge.workers()
    load = Load(edge.http)
    for pid in before.values():
        await load.answered_by(pid)

    os.kill(before[0], signal.SIGKILL)

    after = await edge.workers_when(lambda workers: len(workers) == 2 and workers[0] != before[0])
    await load.answered_by(after[1])
    await load.end()
    assert after[1] == before[1]
    assert set(load.broken) <= {before[0], None}  # none: it had not answered that connection yet
    (exit_line,) = [line for line in edge.log().splitlines() if "worker exited" in line]
    assert orjson.loads(exit_line)["level"] == "warning"


async def test_the_worst_delay_of_all_loops_is_one_figure(edge: EdgeProcess) -> None:
    await edge.start()
    await edge.metrics_with("frontage_edge_workers_serving 2.0")
    assert (await edge.metrics()).count("\nfrontage_loop_lag_seconds ") == 1


async def test_log_level_leaves_out_what_is_less_severe(edge: EdgeProcess) -> None:
    await edge.start(FRONTAGE_LOG_LEVEL="warning")
    before = await edge.workers()
    os.kill(before[0], signal.SIGKILL)
    await edge.workers_when(lambda workers: len(workers) == 2 and workers[0] != before[0])
    assert [orjson.loads(line)["level"] for line in edge.log().splitlines()] == ["warning"]


async def test_connections_queued_at_a_killed_worker_are_answered(edge: EdgeProcess) -> None:
    await edge.start()
    workers = await edge.workers()
    async with queue_behind(edge, workers[0]) as clients:
        os.kill(workers[0], signal.SIGKILL)

    answers = await asyncio.wait_for(asyncio.gather(*clients), 30)
    assert len(answers) == len(clients)
    assert str(workers[0]) not in {answer.split()[0] for answer in answers}
    await until(lambda: edge.queued_connections() == 0)


async def test_queue_of_a_hung_worker_is_served_by_another_and_the_worker_replaced(edge: EdgeProcess) -> None:
    await edge.start()
    before = await edge.workers()
    async with queue_behind(edge, before[1]) as clients:
        pass  # from here on nobody but the supervisor does anything about it

    answers = await asyncio.wait_for(asyncio.gather(*clients), 30)

    assert {answer.split()[0] for answer in answers} >= {str(before[0])}
    assert str(before[1]) not in {answer.split()[0] for answer in answers}
    after = await edge.workers_when(lambda workers: len(workers) == 2 and workers[1] != before[1])
    assert after[0] == before[0]
    await until(lambda: before[1] not in edge.living())  # its stack is taken first


async def test_worker_with_a_blocked_loop_is_replaced(edge: EdgeProcess) -> None:
    await edge.start()
    before = await edge.workers()
    with pytest.raises((OSError, EOFError)):
        await asyncio.wait_for(ask(edge.http, "/hang"), 30)
    after = await edge.workers_when(lambda workers: len(workers) == 2 and workers != before)
    assert len(set(after.values()) & set(before.values())) == 1
    (killing,) = (line for line in map(orjson.loads, edge.log().splitlines()) if line["event"] == "killing a worker")
    assert killing["pid"] in before.values()
    assert "Current thread" in killing["stack"]
    assert "stand_in_edge.py" in killing["stack"].splitlines()[1]  # what it hangs in, however


async def test_single_worker_s_queue_waits_for_its_replacement(tmp_path: Path) -> None:
    with stand_in_edge(tmp_path, workers=1) as edge:
        await edge.start()
        before = await edge.workers()
        async with queue_behind(edge, before[0]) as clients:
            os.kill(before[0], signal.SIGKILL)
        answers = await asyncio.wait_for(asyncio.gather(*clients), 30)
        assert {answer.split()[0] for answer in answers} == {str((await edge.workers())[0])}


async def test_sighup_renews_every_worker_and_loses_no_request(edge: EdgeProcess) -> None:
    await edge.start()
    before = await edge.workers()
    load = Load(edge.http)
    for pid in before.values():
        await load.answered_by(pid)

    edge.signal(signal.SIGHUP)

    after = await edge.workers_when(
        lambda workers: len(workers) == 2 and not set(workers.values()) & set(before.values())
    )
    for pid in after.values():
        await load.answered_by(pid)
    await until(lambda: not edge.living() & set(before.values()))
    await load.end()
    assert load.broken == []


async def test_sigterm_with_a_delay_is_not_ready_at_once_and_accepts_on(edge: EdgeProcess) -> None:
    await edge.start(FRONTAGE_EDGE_SHUTDOWN_DELAY_SECONDS="600")
    workers = await edge.workers()
    edge.signal(signal.SIGTERM)
    await edge.draining()
    assert await edge.workers() == workers
    for _ in range(8):
        await ask(edge.http)
    reader, writer = await asyncio.open_connection("127.0.0.1", edge.http)
    await exchange(reader, writer)
    assert await exchange(reader, writer), "keep-alive goes on"
    writer.close()


async def test_sigterm_with_a_delay_ends_after_it(edge: EdgeProcess) -> None:
    await edge.start(FRONTAGE_EDGE_SHUTDOWN_DELAY_SECONDS="0.5")
    edge.signal(signal.SIGTERM)
    await edge.draining()
    assert await edge.ended() == 0
    with pytest.raises(ConnectionRefusedError):
        await ask(edge.http)


async def test_a_copy_never_confirmed_is_not_ready_where_its_age_is_bounded(edge: EdgeProcess) -> None:
    await edge.start(FRONTAGE_EDGE_READY_MAX_AGE_SECONDS="600")
    assert (await edge.admin_json("/readyz"))["message"] == "not ready"
    assert await ask(edge.http)


@asynccontextmanager
async def draining(edge: EdgeProcess) -> AsyncIterator[None]:
    """It was told to stop during an exchange, which ends, answered, with the block."""
    slow = asyncio.create_task(ask(edge.http, "/slow"))
    await edge.metrics_with("stand_in_running 1.0")
    edge.signal(signal.SIGTERM)
    await edge.draining()
    yield
    (edge.state_dir / "released").touch()
    assert await slow


async def test_sigterm_lets_a_slow_exchange_finish_and_leaves_no_process(edge: EdgeProcess) -> None:
    await edge.start()
    await edge.workers()
    async with draining(edge):
        pass
    assert await edge.ended() == 0
    assert edge.living() == set()


async def test_new_connections_are_served_while_draining(edge: EdgeProcess) -> None:
    await edge.start()
    async with draining(edge):
        assert await ask(edge.http)
    assert await edge.ended() == 0


async def test_killed_supervisor_leaves_no_worker_and_a_new_one_starts(edge: EdgeProcess) -> None:
    await edge.start()
    assert len(await edge.workers()) == 2
    edge.signal(signal.SIGKILL)
    await edge.ended()
    await until(lambda: not edge.living())
    await edge.start()
    assert await ask(edge.http)


async def test_change_is_seen_by_every_worker(edge: EdgeProcess) -> None:
    await edge.start()
    before = await edge.workers()
    answers: dict[str, str] = {}
    (edge.state_dir / "version").write_text("2")

    async def seen_by_all() -> bool:
        for _ in range(16):
            pid, version = (await ask(edge.http)).split()
            answers[pid] = version
        return answers == {str(pid): "2" for pid in before.values()}

    async with asyncio.timeout(30):
        while not await seen_by_all():
            pass


async def test_worker_that_crashes_at_start_is_tried_again_ever_more_slowly(edge: EdgeProcess) -> None:
    await edge.start()
    before = await edge.workers()
    crash = edge.state_dir / "crash"
    crash.touch()
    os.kill(before[0], signal.SIGKILL)
    await until(lambda: edge.log().count('"status":3') >= 3)
    assert await ask(edge.http)
    assert await ask(edge.http)
    crash.unlink()
    after = await edge.workers_when(lambda workers: len(workers) == 2 and workers[0] != before[0])
    assert after[1] == before[1]


@pytest.mark.parametrize("name", ["HTTP", "HTTPS", "ADMIN"])
async def test_port_in_use_is_one_line_that_names_the_variable(edge: EdgeProcess, name: str) -> None:
    port = {"HTTP": edge.http, "HTTPS": edge.https, "ADMIN": edge.admin}[name]
    with socket.create_server(("127.0.0.1", port), reuse_port=True):
        edge.launch()
        assert await edge.ended() == 1
    lines = edge.log().splitlines()
    assert len(lines) == 1
    assert f"FRONTAGE_EDGE_{name}" in lines[0]


async def test_refusal_of_the_replica_stops_the_start_with_one_line(edge: EdgeProcess) -> None:
    (edge.state_dir / "refusal").touch()
    (edge.state_dir / "version").unlink()
    edge.launch()
    assert await edge.ended() == 1
    assert edge.log().splitlines()[-1] == "frontage edge: the stand-in refuses"


async def test_no_secret_reaches_a_worker(edge: EdgeProcess) -> None:
    await edge.start(FRONTAGE_DATABASE_URL="postgresql://frontage:hushhush@127.0.0.1:1/none")
    for pid in (await edge.workers()).values():
        seen = Path(f"/proc/{pid}/environ").read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes()
        assert b"hushhush" not in seen


async def test_admin_port_tells_health_measurements_and_takes_the_operators_word(edge: EdgeProcess) -> None:
    await edge.start()
    assert await edge.admin_json("/healthz") == {"message": "alive"}
    ready = await edge.admin_json("/readyz")
    assert ready["message"] == "ready"
    assert ready["failed_upgrade"] is None
    assert ready["replica"] == {
        "version": 1,
        "age_seconds": None,
        "connected": False,
        "held_copy": 7,
        "state": "serving",
        "reason": None,
    }
    assert [worker["state"] for worker in ready["workers"]] == ["serving", "serving"]
    text = await edge.metrics()
    assert "frontage_edge_replica_held_copy 1.0" in text
    assert "frontage_edge_failed_upgrade 0.0" in text

    assert (await edge.admin_json("/replica/accept", "POST"))["message"] == "The held copy will be applied."
    assert (await edge.admin_json("/replica/accept", "POST"))["message"] == "No copy is held."

    for _ in range(5):
        await ask(edge.http)
    await edge.metrics_with("stand_in_answers_total 5.0")
    # What a dead worker had counted stays counted.
    before = await edge.workers()
    os.kill(before[0], signal.SIGKILL)
    await edge.workers_when(lambda workers: len(workers) == 2 and workers[0] != before[0])
    text = await edge.metrics()
    assert "stand_in_answers_total 5.0" in text
    assert "frontage_edge_worker_failures_total 1.0" in text


async def test_the_other_workers_learn_of_an_origin_that_one_reached_again(edge: EdgeProcess) -> None:
    await edge.start()
    await edge.workers_when(lambda workers: len(workers) == 2)
    await ask(edge.http, "/recovered")
    await edge.metrics_with("stand_in_noted_total 1")
