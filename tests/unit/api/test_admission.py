"""An application whose requests take long keeps no other waiting, and has a bound on what it may have waiting."""

from __future__ import annotations

import asyncio

import pytest

from api.admission import Admission, TooManyWaiting
from tests.waiting import let_run


async def ask(admission: Admission, application_id: str, end: asyncio.Event) -> None:
    async with admission.dns_slot(application_id):
        await end.wait()


async def test_questions_to_dead_servers_keep_no_other_application_waiting() -> None:
    admission, end = Admission(), asyncio.Event()
    slow = [asyncio.create_task(ask(admission, "slow", end)) for _ in range(400)]
    await let_run()
    refused = [task for task in slow if task.done()]
    assert len(refused) == 400 - 32 - 128
    assert all(isinstance(task.exception(), TooManyWaiting) for task in refused)
    async with asyncio.timeout(1), admission.dns_slot("other"):
        pass
    end.set()
    await asyncio.gather(*slow, return_exceptions=True)
    assert not len(admission._dns_of_application), "nothing is kept of an application that asks no more"


async def test_tokens_are_verified_in_turns() -> None:
    admission, end = Admission(), asyncio.Event()

    async def verify(application_id: str) -> None:
        async with admission.verification_slot("192.0.2.1", application_id):
            await end.wait()

    busy = [asyncio.create_task(verify("busy")) for _ in range(150)]
    await let_run()
    async with asyncio.timeout(1), admission.verification_slot("192.0.2.1", "other"):
        pass
    end.set()
    await asyncio.gather(*busy)


async def test_an_address_that_names_many_applications_has_one_turn() -> None:
    admission, order = Admission(), list[str]()

    async def verify(address: str, application_id: str) -> None:
        async with admission.verification_slot(address, application_id):
            await let_run()
            order.append(address)

    many = [asyncio.create_task(verify("192.0.2.1", f"app-{number}")) for number in range(150)]
    await let_run()
    await asyncio.gather(asyncio.create_task(verify("192.0.2.2", "other")), *many)
    assert order.index("192.0.2.2") < 30
    assert not len(admission._verifications_of_address)


async def test_slow_requests_keep_no_other_application_waiting() -> None:
    admission, end = Admission(), asyncio.Event()

    async def work() -> None:
        async with admission.slot("slow"):
            await end.wait()

    slow = [asyncio.create_task(work()) for _ in range(200)]
    await let_run()
    async with asyncio.timeout(2), admission.slot("other"):
        pass
    with pytest.raises(TooManyWaiting):
        await asyncio.gather(*(asyncio.create_task(work()) for _ in range(200)))
    end.set()
    await asyncio.gather(*slow)
