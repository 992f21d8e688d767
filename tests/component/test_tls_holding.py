"""TLS, handshakes that wait for a certificate."""

from __future__ import annotations

import asyncio
import itertools
import ssl
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

import pytest

from common.clock import SystemClock
from edge.tls.failures import Failure
from edge.tls.holding import HoldCaps
from edge.tls.shared import TlsLimits
from tests.component.tls_peers import ask, edge, in_thread, raw_connection, refusal
from tests.tls_parts import client_hello
from tests.waiting import until


async def test_a_held_handshake_goes_on_when_the_certificate_arrives() -> None:
    async with edge() as here:
        here.replica.put_order("new.example", hold_seconds=30)
        asking = [asyncio.ensure_future(in_thread(lambda: ask(here.port, "new.example"))) for _ in range(3)]
        await until(lambda: here.tls.held_now == 3)
        here.replica.put_certificate("other.example")
        here.tls.on_replica_change()
        assert here.tls.held_now == 3
        here.replica.remove("order", "new.example")
        here.replica.put_certificate("new.example")
        here.tls.on_replica_change()
        assert await asyncio.gather(*asking) == [b"hello"] * 3
        assert here.tls.held_now == 0
        assert here.tls.counters.held == 3
        assert here.tls.counters.context_builds == 1


async def test_an_unknown_name_is_held_while_the_replica_is_behind() -> None:
    async with edge() as here:
        here.replica.cut_off = True
        asking = asyncio.ensure_future(in_thread(lambda: ask(here.port, "new.example")))
        missing = asyncio.ensure_future(in_thread(lambda: refusal(here.port, "nobody.example")))
        await until(lambda: here.tls.held_now == 2)
        here.replica.put_certificate("other.example")  # the first of what it has missed
        here.tls.on_replica_change()
        here.replica.put_certificate("new.example")
        here.tls.on_replica_change()
        assert await asking == b"hello"
        assert here.tls.held_now == 1
        here.replica.cut_off = False
        here.tls.on_replica_change()
        assert await missing == "TLSV1_UNRECOGNIZED_NAME"
        assert here.failed(Failure.UNKNOWN_NAME) == 1


@pytest.mark.parametrize("is_cut_off", [False, True])
@pytest.mark.parametrize("moment", range(8))
async def test_a_certificate_may_arrive_between_any_two_reads_of_the_replica(
    monkeypatch: pytest.MonkeyPatch, moment: int, is_cut_off: bool
) -> None:
    """What ends the wait comes with it or behind it: whoever reads both must not miss both."""
    async with edge() as here:
        replica, count = here.replica, itertools.count()
        replica.cut_off = is_cut_off
        if not is_cut_off:
            replica.put_order("new.example", hold_seconds=30)

        def commit() -> None:
            replica.put_certificate("new.example")
            replica.remove("order", "new.example")
            replica.cut_off = False

        def with_commit(read: Callable[..., Any]) -> Callable[..., Any]:
            def reading(*arguments: object) -> Any:
                if next(count) == moment:
                    commit()
                return read(*arguments)

            return reading

        for name in ("generation", "get_raw", "is_cut_off", "is_unattended"):
            monkeypatch.setattr(replica, name, with_commit(getattr(replica, name)))
        asking = asyncio.ensure_future(in_thread(lambda: ask(here.port, "new.example")))
        await until(lambda: asking.done() or here.tls.held_now == 1)
        commit()
        here.tls.on_replica_change()
        assert await asking == b"hello"


async def test_an_unknown_name_is_held_only_for_a_moment() -> None:
    async with edge(limits=TlsLimits(behind_seconds=0.2)) as here:
        here.replica.cut_off = True
        asking = asyncio.ensure_future(in_thread(lambda: refusal(here.port, "new.example")))

        def is_refused() -> bool:
            here.tls.on_replica_change()  # which does not begin its time anew
            return asking.done()

        await until(is_refused)
        assert asking.result() == "TLSV1_UNRECOGNIZED_NAME"
        assert here.failed(Failure.HOLD_TIMEOUT) == 1


async def test_a_failed_order_refuses_who_was_held() -> None:
    async with edge() as here:
        here.replica.put_order("new.example", hold_seconds=30)
        asking = asyncio.ensure_future(in_thread(lambda: refusal(here.port, "new.example")))
        await until(lambda: here.tls.held_now == 1)
        here.replica.remove("order", "new.example")
        here.tls.on_replica_change()
        assert await asking == "TLSV1_UNRECOGNIZED_NAME"
        assert here.tls.held_now == 0


async def test_no_handshake_is_held_while_no_monitor_works_at_the_order() -> None:
    async with edge() as here:
        here.replica.put_order("new.example", hold_seconds=30)
        asking = asyncio.ensure_future(in_thread(lambda: refusal(here.port, "new.example")))
        await until(lambda: here.tls.held_now == 1)
        here.replica.unattended = True
        here.tls.on_replica_change()
        assert await asking == "TLSV1_UNRECOGNIZED_NAME"
        assert await in_thread(lambda: refusal(here.port, "new.example")) == "TLSV1_UNRECOGNIZED_NAME"


class StoppedClock(SystemClock):
    """However late a client arrives, the order's deadline is as far away as it was."""

    def __init__(self) -> None:
        self._now = super().now()

    def now(self) -> datetime:
        return self._now


async def test_holding_ends_at_the_orders_deadline() -> None:
    async with edge(clock=StoppedClock()) as here:
        here.replica.put_order("new.example", hold_seconds=0.2)
        assert await in_thread(lambda: refusal(here.port, "new.example")) == "TLSV1_UNRECOGNIZED_NAME"
        assert here.failed(Failure.HOLD_TIMEOUT) == 1
        here.replica.put_order("late.example", hold_seconds=-1)
        assert await in_thread(lambda: refusal(here.port, "late.example")) == "TLSV1_UNRECOGNIZED_NAME"
        assert here.tls.counters.held == 1


@pytest.mark.parametrize("order", [{}, {"hold_until": "soon"}, {"hold_until": None}])
async def test_an_order_that_cannot_be_read_holds_nobody(order: dict[str, object]) -> None:
    async with edge() as here:
        here.replica.put("order", "new.example", order)
        assert await in_thread(lambda: refusal(here.port, "new.example")) == "TLSV1_UNRECOGNIZED_NAME"
        assert here.tls.counters.held == 0


async def test_only_so_many_are_held_and_who_leaves_makes_room() -> None:
    limits = TlsLimits(hold_caps=HoldCaps(per_domain=2, per_client=8, in_all=8))
    async with edge(limits=limits) as here:
        here.replica.put_order("new.example", hold_seconds=30)
        waiting = [raw_connection(here.port) for _ in range(2)]
        for client in waiting:
            client.sendall(client_hello("new.example"))
        await until(lambda: here.tls.held_now == 2)
        assert await in_thread(lambda: refusal(here.port, "new.example")) == "TLSV1_UNRECOGNIZED_NAME"
        assert here.failed(Failure.HOLD_LIMIT) == 1
        waiting[0].close()
        await until(lambda: here.tls.held_now == 1)
        waiting[1].sendall(b"x" * 40_000)  # a held client that will not be quiet
        await until(lambda: here.failed(Failure.TOO_LARGE) == 1)
        assert here.tls.held_now == 0
        waiting[1].close()


async def test_handshakes_of_names_beneath_a_wildcard_wait_for_its_certificate_and_share_its_cap() -> None:
    limits = TlsLimits(hold_caps=HoldCaps(per_domain=2))
    async with edge(limits=limits) as here:
        here.replica.put_order("*.new.example", hold_seconds=30)
        names = ["a.new.example", "b.new.example"]
        asking = [asyncio.ensure_future(in_thread(partial(ask, here.port, name))) for name in names]
        await until(lambda: here.tls.held_now == 2)
        with pytest.raises(ssl.SSLError):
            await in_thread(lambda: ask(here.port, "c.new.example"))
        assert here.failed(Failure.HOLD_LIMIT) == 1
        here.replica.put_certificate("*.new.example")
        here.tls.on_replica_change()
        assert await asyncio.gather(*asking) == [b"hello"] * 2
