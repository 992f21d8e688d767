"""Dialling several addresses: who wins, what is told where none does, and that nothing is left, on both loops."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from edge.upstream.dialling import dial
from tests.waiting import until

FIRST, SECOND, THIRD = "127.0.0.2", "127.0.0.3", "127.0.0.4"
LONG_SECONDS = 60.0
SHORT_SECONDS = 0.02


@contextmanager
def listening(*addresses: str) -> Iterator[int]:
    """Yield a port at which these addresses accept."""
    with ExitStack() as open_ones:
        port = 0
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            port = open_ones.enter_context(socket.create_server((address, port), family=family)).getsockname()[1]
        yield port


@contextmanager
def black_holes(*addresses: str, port: int = 0) -> Iterator[int]:
    """Yield a port at which these addresses do not answer: their queues are full, so the kernel drops what comes."""
    with ExitStack() as open_ones:
        for address in addresses:
            server = open_ones.enter_context(socket.create_server((address, port), backlog=0))
            port = server.getsockname()[1]
            open_ones.enter_context(socket.create_connection((address, port)))
        yield port


def closed_port() -> int:
    with listening(FIRST) as port:
        return port


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def dialled(port: int, *addresses: str, seconds: float = LONG_SECONDS) -> str:
    """Dial, check that the socket leads to the address returned, and close it."""
    sock, address = await dial(addresses, port, head_start_seconds=seconds)
    with sock:
        assert sock.getpeername()[:2] == (address, port)
    return address


@pytest.mark.parametrize("addresses", [(FIRST,), (FIRST, SECOND, THIRD)])
async def test_the_first_that_answers_wins(addresses: tuple[str, ...]) -> None:
    with listening(FIRST, SECOND, THIRD) as port:
        assert await dialled(port, *addresses) == FIRST


async def test_an_address_that_does_not_answer_has_a_head_start_only() -> None:
    with listening(SECOND) as port, black_holes(FIRST, port=port):
        began = time.monotonic()
        assert await dialled(port, FIRST, SECOND, seconds=SHORT_SECONDS) == SECOND
        assert time.monotonic() - began >= SHORT_SECONDS / 2  # uvloop counts in milliseconds


async def test_the_next_is_dialled_at_once_where_one_refuses() -> None:
    with listening(THIRD) as port:
        async with asyncio.timeout(LONG_SECONDS / 2):
            assert await dialled(port, FIRST, SECOND, THIRD) == THIRD


@pytest.mark.parametrize("addresses", [("::1",), (FIRST, "::1")])
async def test_both_families_are_dialled(addresses: tuple[str, ...]) -> None:
    with listening("::1") as port:
        assert await dialled(port, *addresses) == "::1"


async def test_the_head_start_ends_where_a_later_address_refuses() -> None:
    with listening(THIRD) as port, black_holes(FIRST, port=port):
        async with asyncio.timeout(LONG_SECONDS / 2):
            assert await dialled(port, FIRST, SECOND, THIRD, seconds=SHORT_SECONDS) == THIRD


@pytest.mark.parametrize("addresses", [(FIRST,), (FIRST, SECOND)])
async def test_an_error_names_every_address_that_refused(addresses: tuple[str, ...]) -> None:
    with pytest.raises(ConnectionRefusedError) as caught:
        await dialled(closed_port(), *addresses)
    assert caught.value.errno == errno.ECONNREFUSED
    assert all(address in str(caught.value) for address in addresses)


async def test_errors_of_different_kinds_are_told_together() -> None:
    with pytest.raises(OSError, match=r"Connect call failed .*; ") as caught:
        await dialled(closed_port(), FIRST, "::ffff:10.0.0.256")  # the second is no address
    assert caught.value.errno is None


@pytest.mark.parametrize("ending", ["cancelled", "cancelled alone", "refused", "refused alone", "lost"])
async def test_nothing_is_left_of_attempts_that_did_not_win(ending: str) -> None:
    """Freed by reference counts alone: the collector is off."""

    async def once(hole: int, closed: int, half: int) -> None:
        match ending:
            case "lost":
                await dialled(half, FIRST, SECOND, seconds=SHORT_SECONDS)
            case "refused" | "refused alone":
                with suppress(ConnectionRefusedError):
                    await dialled(closed, *([FIRST] if ending.endswith("alone") else [FIRST, SECOND]))
            case _:
                addresses = [FIRST] if ending.endswith("alone") else [FIRST, SECOND]
                with suppress(TimeoutError):
                    async with asyncio.timeout(3 * SHORT_SECONDS):
                        await dialled(hole, *addresses, seconds=SHORT_SECONDS)

    def alive() -> int:
        kinds = (socket.socket, asyncio.CancelledError, ConnectionRefusedError)
        return sum(isinstance(thing, kinds) for thing in gc.get_objects())

    with black_holes(FIRST, SECOND) as hole, listening(SECOND) as half, black_holes(FIRST, port=half):
        closed = closed_port()
        await once(hole, closed, half)
        gc.collect()
        gc.disable()
        try:
            things, descriptors = alive(), open_descriptors()
            for _ in range(5):
                await once(hole, closed, half)
            await until(lambda: alive() <= things)
            assert open_descriptors() <= descriptors
        finally:
            gc.enable()


async def test_of_sockets_that_connect_in_the_same_turn_one_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, may_go_on, waiting = asyncio.get_running_loop(), asyncio.Event(), 0
    connect = loop.sock_connect

    async def connect_together(sock: socket.socket, target: tuple[str, int]) -> None:
        nonlocal waiting
        await connect(sock, target)
        waiting += 1
        await may_go_on.wait()

    monkeypatch.setattr(loop, "sock_connect", connect_together)
    with listening(FIRST, SECOND) as port:
        descriptors = open_descriptors()
        dialling = asyncio.create_task(dialled(port, FIRST, SECOND, seconds=SHORT_SECONDS))
        await until(lambda: waiting == 2)
        may_go_on.set()
        assert await dialling == FIRST
        assert open_descriptors() <= descriptors
