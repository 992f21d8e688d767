"""Rates by application and by address: 429 in shape, with the time to wait, and no other party is held up."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from api.admission import Admission, TooManyWaiting
from bench.lab.zone import Behaviour
from common.dns import Answer as DnsAnswer
from common.dns import Pass
from tests.integration.api.conftest import Service, open_service
from tests.integration.api.partner import Answer, Partner
from tests.timeouts import UNHURRIED


def expect_too_many(answer: Answer, hint: str) -> None:
    assert (answer.status, answer.message, answer.body["hint"]) == (429, "Too Many Requests", hint)
    assert answer.body["request_id"]
    assert int(answer.headers["Retry-After"]) >= 1


async def refused_of_many(ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """Many at once: a slow machine that answers one after the other stays below the rate."""
    answers = await asyncio.gather(*(ask() for _ in range(200)))
    refused = [answer for answer in answers if answer.status == 429]
    assert 10 <= [answer.status for answer in answers].count(200) < 200
    if len(refused) >= 50:  # of fewer, all may draw the same time
        assert len({answer.headers["Retry-After"] for answer in refused}) > 1, "they would come back in one burst"
    assert {answer.headers["RateLimit"].partition(";")[2] for answer in refused if "RateLimit" in answer.headers} <= {
        "r=0"
    }
    return refused[0]


async def take_token(partner: Partner, secret: str, address: str) -> Answer:
    return await partner.call(
        "POST",
        "/token",
        headers={"X-Forwarded-For": address},
        json={"applicationId": partner.id, "secret": secret},
    )


async def test_an_application_has_a_rate_of_its_own(dsn: str, tmp_path: Path, probe_port: int) -> None:
    async with open_service(dsn, tmp_path, probe_port, UNHURRIED, API_REQUESTS_PER_SECOND="1") as service:
        busy, other = await service.partner(), await service.partner()
        expect_too_many(await refused_of_many(busy.get), "too many requests of this application")
        assert (await other.get()).status == 200


async def test_questions_beyond_those_on_dead_dns_are_refused_and_asked_back_at_different_times(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_over, ask_server = asyncio.Event(), Pass._ask_server

    async def ask_dead_server(asking: Pass, *question: Any) -> DnsAnswer:
        await is_over.wait()
        return await ask_server(asking, *question)

    service.zone.add("*.dead.test", "CNAME", "dead.test")
    service.zone.misbehave("dead.test", Behaviour.SERVFAIL)
    monkeypatch.setattr(Pass, "_ask_server", ask_dead_server)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        partner = replace(await service.partner(), session=session)
        asked = [asyncio.create_task(partner.get(domain=f"d{number}.dead.test")) for number in range(200)]
        ended = asyncio.as_completed(asked)
        refused = [await next(ended) for _ in range(200 - 32 - 128)]
        for answer in refused:
            expect_too_many(answer, "too many requests of this application at once")
        waits = {int(answer.headers["Retry-After"]) for answer in refused}
        assert min(waits) >= 6, "no question takes longer"
        assert len(waits) > 3, "clients that come back at the same moment keep other applications waiting"
        is_over.set()
        assert {(await answer).status for answer in ended} == {400}


async def test_tokens_refused_beyond_the_queue_are_asked_back_at_different_times(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextlib.asynccontextmanager
    async def full_queue(*_: object) -> AsyncIterator[None]:
        raise TooManyWaiting
        yield

    partner = await service.partner()
    monkeypatch.setattr(Admission, "verification_slot", full_queue)
    refused = [await take_token(partner, partner.secret, "192.0.2.1") for _ in range(40)]
    for answer in refused:
        expect_too_many(answer, "too many requests from this address at once")
    assert {int(answer.headers["Retry-After"]) for answer in refused} == {1, 2, 3}


async def test_an_address_has_a_rate_of_its_own_and_health_has_none(dsn: str, tmp_path: Path, probe_port: int) -> None:
    settings: dict[str, Any] = {"API_REQUESTS_PER_SECOND_PER_ADDRESS": "1", "API_TRUSTED_PROXIES": "127.0.0.0/8"}
    async with open_service(dsn, tmp_path, probe_port, UNHURRIED, **settings) as service:
        partner = await service.partner()
        here, there = (
            partner.headers | {"X-Forwarded-For": "192.0.2.1"},
            partner.headers | {"X-Forwarded-For": "192.0.2.2"},
        )
        refused = await refused_of_many(lambda: partner.call("GET", "/power", headers=here))
        expect_too_many(refused, "too many requests from this address")
        assert refused.headers["RateLimit-Policy"] == '"address";q=10;w=10'
        assert (await partner.call("GET", "/healthz", headers=here)).status == 200
        assert (await partner.call("GET", "/power", headers=there)).status == 200


async def test_guesses_of_a_secret_are_slowed_and_lock_only_their_own_address_out(
    dsn: str, tmp_path: Path, probe_port: int
) -> None:
    async with open_service(dsn, tmp_path, probe_port, UNHURRIED, API_TRUSTED_PROXIES="127.0.0.0/8") as service:
        partner, neighbour = await service.partner(), await service.partner()
        guesses = [await take_token(partner, f"guess-{number}", "192.0.2.1") for number in range(12)]
        assert [answer.status for answer in guesses[:10]] == [401] * 10
        expect_too_many(guesses[-1], "too many wrong secrets from this address")
        assert guesses[-1].headers["RateLimit-Policy"] == '"wrong-secrets";q=10;w=60'
        assert guesses[-1].headers["RateLimit"] == '"wrong-secrets";r=0'
        expect_too_many(
            await take_token(partner, partner.secret, "192.0.2.1"), "too many wrong secrets from this address"
        )

        right = await take_token(partner, partner.secret, "192.0.2.2")
        assert (right.status, right.headers["Cache-Control"]) == (200, "no-store")
        assert (await take_token(neighbour, neighbour.secret, "192.0.2.1")).status == 200
