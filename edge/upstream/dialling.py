"""Dials the addresses of an origin: each has a head start over the next, and the first that connects wins.

That is RFC 8305 §5, of addresses that are in order already. An attempt that fails, loses or is cancelled closes its own
socket. The errors of attempts are kept without their tracebacks: these refer to the frames that hold the errors, and
such a cycle would be left to the garbage collector, which the edge runs rarely.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TypeAlias

Connected: TypeAlias = tuple[socket.socket, str]
"""A connected socket, and the address that was dialled: Linux makes another one of 0.0.0.0."""


async def dial(addresses: Sequence[str], port: int, *, head_start_seconds: float) -> Connected:
    """Connect to one of the addresses.

    Raises: `OSError` when none of them can be reached.
    """
    errors: list[Exception] = []
    if len(addresses) == 1:  # by far the most frequent: without a task
        connected = await _attempt(addresses[0], port, errors)
    else:
        connected = await _race(addresses, port, head_start_seconds, errors)
    if connected is None:
        raise _combine(errors)
    return connected


async def _race(
    addresses: Sequence[str], port: int, head_start_seconds: float, errors: list[Exception]
) -> Connected | None:
    """Start an attempt whenever the last one has had its head start, or one has failed. Return the first to connect."""
    waiting = list(reversed(addresses))
    attempts: dict[asyncio.Task[Connected | None], None] = {}  # in the order of their starts
    try:
        while waiting or attempts:
            if waiting:
                address = waiting.pop()
                attempts[asyncio.create_task(_attempt(address, port, errors), name=f"dial {address}")] = None
            seconds = head_start_seconds if waiting else None
            ended, _ = await asyncio.wait(attempts, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            for attempt in [each for each in attempts if each in ended]:
                del attempts[attempt]
                if (connected := attempt.result()) is not None:
                    return connected
        return None
    finally:
        for attempt in attempts:
            if not attempt.cancel() and (second := attempt.result()) is not None:  # it connected in the same turn
                second[0].close()
        if attempts:
            await asyncio.wait(attempts)


async def _attempt(address: str, port: int, errors: list[Exception]) -> Connected | None:
    """Connect to the address, or add an error and return None."""
    try:
        with ExitStack() as unless_connected:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            sock = unless_connected.enter_context(socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP))
            sock.setblocking(False)
            await asyncio.get_running_loop().sock_connect(sock, (address, port))
            unless_connected.pop_all()
    except (OSError, RuntimeError) as error:  # uvloop raises both
        errors.append(error.with_traceback(None))
        return None
    return sock, address


def _combine(errors: list[Exception]) -> Exception:
    """Return an error for all of them, which the list does not hold."""
    if len(errors) == 1:
        return errors.pop()
    words = "; ".join(getattr(error, "strerror", None) or str(error) for error in errors)
    numbers = {getattr(error, "errno", None) for error in errors}
    number = numbers.pop() if len(numbers) == 1 else None
    return OSError(words) if number is None else OSError(number, words)
