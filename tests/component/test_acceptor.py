"""A pair changes hands at any moment, and every client is answered."""

from __future__ import annotations

import asyncio
import os
from typing import cast

import pytest

from bench.lab.ports import free_ports
from common.host_ports import HostPort
from edge.process.acceptor import accept_from
from edge.process.listeners import Listeners
from edge.process.worker_messages import ListenerPair
from tests.waiting import let_run


def listening() -> tuple[int, int, Listeners]:
    """The ports of a pair, and the pair."""
    http, https, admin = (HostPort("127.0.0.1", port) for port in free_ports(3))
    return http.port, https.port, Listeners.opened(http, https, admin, 1)


class Greeting(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).write(b"hello")
        cast("asyncio.Transport", transport).close()


@pytest.mark.parametrize("turns", range(8))
async def test_client_that_arrives_while_a_gate_changes_hands_is_answered(turns: int) -> None:
    http, _, listeners = listening()
    acceptors = [await accept_from(listeners.pairs[0], Greeting, Greeting)]
    try:
        clients = [asyncio.create_task(asyncio.open_connection("127.0.0.1", http)) for _ in range(5)]
        await let_run(turns)
        await acceptors.pop().close()
        acceptors.append(await accept_from(listeners.pairs[0], Greeting, Greeting))
        for reader, writer in await asyncio.gather(*clients):
            assert await asyncio.wait_for(reader.read(), 10) == b"hello"
            writer.close()
    finally:
        for acceptor in acceptors:
            await acceptor.close()
        listeners.close()


async def test_letting_go_leaves_the_gate_open_and_its_queue_waiting() -> None:
    _, https, listeners = listening()
    try:
        first = await accept_from(listeners.pairs[0], Greeting, Greeting)
        await first.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", https)
        copy = ListenerPair(
            *map(os.dup, (listeners.pairs[0].http, listeners.pairs[0].https))
        )  # as another process has it
        second = await accept_from(copy, Greeting, Greeting)
        assert await asyncio.wait_for(reader.read(), 10) == b"hello"
        writer.close()
        await second.close()
        os.close(copy.http)
        os.close(copy.https)
    finally:
        listeners.close()
