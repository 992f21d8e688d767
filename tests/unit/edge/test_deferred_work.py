"""No connection has the loop for long, and what is deferred is not lost, doubled or out of order."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from random import Random
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.http import chunks
from edge.proxy import client_connection, response_relay
from edge.proxy.client_connection import ClientConnection
from edge.proxy.exchange import Exchange
from edge.transport.deferred_work import DeferredWork, LoopTurns
from edge.upstream.connection import UpstreamConnection
from tests.unit.edge import messages
from tests.unit.edge.corpus import REQUESTS, RESPONSES
from tests.unit.edge.link import Link, StillLoop
from tests.unit.edge.oracle import judge_requests
from tests.unit.edge.response_oracle import Script, judge_responses
from tests.waiting import let_run

HOST = b"Host: shop.example.com\r\n"
GET = b"GET /0 HTTP/1.1\r\n" + HOST + b"\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
ROOMY = 1 << 30

generated = settings(max_examples=150)
Splits = st.randoms(note_method_calls=False)


@pytest.fixture(scope="module")
def link(tmp_path_factory: pytest.TempPathFactory) -> Link:
    return Link(tmp_path_factory.mktemp("link"))


# The queue ----------------------------------------------------------------------------------------------------


class Turns:
    """A queue whose work takes the time it says."""

    def __init__(self) -> None:
        self.loop = StillLoop()
        self.now = 0.0
        self.done: list[str] = []
        self.turn_count = 0
        self.queue = DeferredWork(cast("asyncio.AbstractEventLoop", self), clock=lambda: self.now)

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.turn_count += 1
        self.loop.call_soon(callback)

    def work(self, name: str, seconds: float = 0.0) -> Callable[[], None]:
        def work() -> None:
            self.now += seconds
            self.done.append(name)

        return work


def test_deferred_work_runs_in_order_and_expensive_work_in_a_turn_of_its_own() -> None:
    turns = Turns()
    for name, seconds in ("a", 0.0), ("b", 0.0), ("c", 0.01), ("d", 0.01), ("e", 0.0):
        turns.queue.add(turns.work(name, seconds))
    assert turns.done == []
    turns.loop.run()
    assert turns.done == ["a", "b", "c", "d", "e"]
    assert turns.turn_count == 3
    assert len(turns.queue) == 0


def test_work_that_breaks_stops_no_other() -> None:
    turns = Turns()

    def broken() -> None:
        raise RuntimeError

    turns.queue.add(broken)
    turns.queue.add(turns.work("a"))
    with pytest.raises(RuntimeError):
        turns.loop.run()
    turns.loop.run()
    turns.queue.add(turns.work("b"))
    turns.loop.run()
    assert turns.done == ["a", "b"]


async def test_tasks_take_turns_in_order_and_a_cancelled_one_takes_none() -> None:
    loop = asyncio.get_running_loop()
    turns = LoopTurns(loop)
    turn, taken = 0, []

    def count() -> None:
        nonlocal turn
        turn += 1
        loop.call_soon(count)

    async def take(name: str) -> None:
        await turns.take()
        taken.append((name, turn))

    count()
    tasks = [asyncio.create_task(take(name)) for name in "abcd"]
    await let_run()
    tasks[1].cancel()
    await asyncio.gather(tasks[0], *tasks[2:])
    assert [name for name, _ in taken] == ["a", "c", "d"]
    assert len({number for _, number in taken}) == 3
    await asyncio.wait_for(turns.take(), timeout=60)
    await let_run()
    await asyncio.wait_for(turns.take(), timeout=60)


# Everything deferred that can be ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hasty(link: Link) -> Iterator[Link]:
    """A link whose connections give up the loop after every step."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "STEPS_AT_ONCE", 1)
        patch.setattr(client_connection, "HEADS_AT_ONCE", 1)
        patch.setattr(client_connection, "BYTES_AT_ONCE", 1)
        patch.setattr(response_relay, "INTERIM_BYTES_AT_ONCE", 1)
        patch.setattr(response_relay, "BYTES_AT_ONCE", 1)
        yield link


@pytest.mark.parametrize("name", REQUESTS)
def test_saved_requests_are_read_alike_step_by_step(hasty: Link, name: str) -> None:
    stream, forwarded = REQUESTS[name]
    middle = len(stream) // 2
    for pieces in [stream], [stream[:middle], stream[middle:]]:
        assert judge_requests(hasty, pieces).forwarded == forwarded


@pytest.mark.parametrize("name", RESPONSES)
def test_saved_responses_are_read_alike_step_by_step(hasty: Link, name: str) -> None:
    answer, status = RESPONSES[name]
    judge_responses(hasty, [GET], [Script([answer])])
    came = bytes(hasty.client.sent)
    assert f" {status} ".encode() in came if status else not came.endswith(b"0\r\n\r\n")


@generated
@given(rng=Splits)
def test_generated_requests_are_read_alike_step_by_step(hasty: Link, rng: Random) -> None:
    capacity = rng.choice((20, ROOMY))
    judge_requests(hasty, messages.split(rng, messages.request_stream(rng)), upstream_capacity=capacity)


@generated
@given(rng=Splits)
def test_generated_visits_are_read_alike_step_by_step(hasty: Link, rng: Random) -> None:
    judge_requests(hasty, messages.visit(rng))


@generated
@given(rng=Splits)
def test_generated_responses_are_read_alike_step_by_step(hasty: Link, rng: Random) -> None:
    requests, scripts = messages.conversation(rng)
    judge_responses(hasty, requests, scripts, client_capacity=rng.choice((20, ROOMY)))


# What one callback does ----------------------------------------------------------------------------------------

MOST_CALLS = 5_000  # of Python's and C's functions: about a millisecond


class CallCounter:
    """Counts the calls within each callback that the link makes."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.most = 0
        for owner, name in (
            (ClientConnection, "data_received"),
            (ClientConnection, "_resume_deferred"),
            (UpstreamConnection, "data_received"),
            (Exchange, "_resume_relay"),
        ):
            patch.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, function: Callable[..., None]) -> Callable[..., None]:
        def counted(*arguments: object) -> None:
            count = 0

            def note(_frame: object, event: str, _argument: object) -> None:
                nonlocal count
                count += event in ("call", "c_call")

            before = sys.getprofile()
            sys.setprofile(note)
            try:
                function(*arguments)
            finally:
                sys.setprofile(before)
                self.most = max(self.most, count)

        return counted


EMPTY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Answering:
    """An origin that answers its first request with these bytes, in pieces as large as the loop reads."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    def receive(self, data: bytes) -> list[bytes | type[BaseException] | None]:
        if not data.startswith((b"GET ", b"POST ")):
            return []
        answer, self._answer = self._answer, EMPTY
        return [*in_reads(answer)]


def in_reads(stream: bytes) -> list[bytes]:
    return [stream[start : start + 256_000] for start in range(0, len(stream), 256_000)]


def hostile_requests(rng: Random) -> bytes:
    chunk = rng.choice((b"1\r\nx\r\n", b"1;a\r\nx\r\n", b"2\r\n\r\n\r\n", b"00001\r\nx\r\n"))
    post = b"POST /0 HTTP/1.1\r\n" + HOST + CHUNKED
    return rng.choice(
        (
            post + chunk * 45_000 + b"0\r\n\r\n" + GET,
            post + b"0\r\n" + b"a:\r\n" * 3_000 + b"\r\n" + GET,
            b"GET / HTTP/1.1\r\nHost: nobody.example\r\n\r\n" * 2_000,
            (b"GET / HTTP/1.1\r\n" + HOST + b"X: %b\r\n\r\n" % (b"y" * 30_000)) * 8,
            (b"GET / HTTP/1.1\r\n" + HOST + b"X: y\r\n" * 90 + b"\r\n") * 200,
            b"\r\n" * 100_000 + GET,
        )
    )


def hostile_answer(rng: Random) -> bytes:
    ok = b"HTTP/1.1 200 OK\r\n"
    chunk = rng.choice((b"1\r\nx\r\n", b"1  \r\nx\r\n", b"32\r\n" + b"x" * 48 + b"\r\n\r\n", b"1;a=b\r\nx\r\n"))
    early = b"HTTP/1.1 103 Early Hints\r\n" + b"Link: </a>\r\n" * rng.randint(1, 999) + b"\r\n"
    return rng.choice(
        (
            ok + CHUNKED + chunk * 45_000 + b"0\r\n\r\n",
            early * 32 + ok + b"Content-Length: 0\r\n\r\n",
            ok + b"Set-Cookie: a=b\r\n" * 999 + b"Content-Length: 0\r\n\r\n",
            ok + b"Te:a\r\n" * 9_300 + b"Content-Length: 0\r\n\r\n",
            ok + b"Content-Length: 0\r\n\r\n" + ok * 3_000,
        )
    )


@pytest.mark.parametrize("seed", range(6))
def test_no_callback_does_more_than_a_little(link: Link, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    rng = Random(seed)
    counter = CallCounter(monkeypatch)
    answer = hostile_answer(rng)
    answers = [answer]
    link.begin(lambda: Answering(answers.pop() if answers else EMPTY))
    link.converse([*in_reads(hostile_requests(rng))])
    link.end()
    assert 0 < counter.most < MOST_CALLS
