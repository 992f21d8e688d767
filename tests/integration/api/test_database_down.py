"""Postgres stopped, and frozen in the middle of an answer: the API answers in shape, in time, and recovers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from common.db.migrate import migrate
from common.db.session import SessionTimeouts
from common.exposition import render
from common.postgres import EmbeddedPostgres, running_dsn
from tests.captured_logs import capture_logs
from tests.integration.api.conftest import Service, open_service
from tests.integration.api.partner import Answer, Partner
from tests.integration.api.watching import Watcher
from tests.integration.postgres.running import frozen
from tests.waiting import SECONDS, until

DOMAIN = "shop.customer.test"
SHARE = "s" * 32
SSL_BODY = {"domain": DOMAIN, "redirectTo": "www.customer.test"}
HASTY = SessionTimeouts(
    connect_seconds=0.5,
    acquire_seconds=0.5,
    query_seconds=0.5,
    statement_seconds=0.4,
    lock_seconds=0.3,
    idle_in_transaction_seconds=5.0,
)
Call = Callable[[Partner], Coroutine[Any, Any, Answer]]

EXPECTED: list[tuple[Call, int, str]] = [
    (lambda partner: partner.post(DOMAIN), 502, "Internal Server Error."),
    (lambda partner: partner.put(DOMAIN), 502, "Internal Server Error."),
    (lambda partner: partner.delete(DOMAIN), 502, "Internal Server Error."),
    (lambda partner: partner.get(), 500, "Internal Server Error"),
    (lambda partner: partner.get(domain=DOMAIN), 500, "Internal Server Error"),
    (
        lambda partner: partner.call(
            "POST", "/token", headers={}, json={"applicationId": partner.id, "secret": partner.secret}
        ),
        503,
        "Service Unavailable",
    ),
    (lambda partner: partner.call("GET", "/readyz"), 503, "Service Unavailable"),
    (lambda partner: Watcher(partner).add(), 500, "Internal Server Error"),
    (lambda partner: Watcher(partner).list(), 500, "Internal Server Error"),
    (
        lambda partner: partner.call("DELETE", "/monitor/domains/batch", json={"domains": [{"domain": "d.test"}]}),
        500,
        "Internal Server Error",
    ),
    (lambda partner: partner.call("GET", "/monitor/status"), 500, "Internal Server Error"),
]

SSL_EXPECTED: list[tuple[Call, int, str]] = [
    *(
        (lambda partner, method=method: partner.call(method, "/ssl", json=SSL_BODY), 502, "Internal Server Error.")
        for method in ("POST", "PUT", "DELETE")
    ),
    (lambda partner: partner.call("GET", "/ssl"), 500, "Internal Server Error"),
    (lambda partner: partner.call("GET", f"/ssl?domain={DOMAIN}"), 500, "Internal Server Error"),
    (lambda partner: partner.call("GET", f"/domains/{DOMAIN}/diagnosis"), 500, "Internal Server Error"),
]


@pytest.fixture
def state_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the embedded Postgres."""
    return tmp_path_factory.mktemp("postgres")


@pytest.fixture
def postgres(state_dir: Path) -> Iterator[EmbeddedPostgres]:
    """A server of this test's own."""
    with EmbeddedPostgres(state_dir) as server:
        yield server


@pytest.fixture
async def hasty_service(
    postgres: EmbeddedPostgres, state_dir: Path, tmp_path: Path, probe_port: int
) -> AsyncIterator[Service]:
    """One that waits for Postgres no longer than a test wants to."""
    dsn = running_dsn(state_dir)
    assert dsn is not None
    await migrate(dsn)
    async with open_service(dsn, tmp_path, probe_port, HASTY) as service:
        yield service


async def expect_failures(partner: Partner, *more: tuple[Call, int, str]) -> None:
    async with asyncio.timeout(SECONDS):
        for call, status, message in (*EXPECTED, *more):
            answer = await call(partner)
            assert (answer.status, answer.message) == (status, message)
            assert int(answer.headers["Retry-After"]) >= 1
        assert (await partner.call("GET", "/healthz")).status == 200


async def expect_recovery(partner: Partner) -> None:
    async def is_stored() -> bool:
        return (await partner.post(DOMAIN)).message != "Internal Server Error."

    await until(is_stored)
    assert (await partner.get()).body["total"] == 1
    assert (await partner.call("GET", "/readyz")).status == 200


async def test_postgres_killed_and_back(hasty_service: Service, postgres: EmbeddedPostgres) -> None:
    partner = await hasty_service.partner()
    hasty_service.point(DOMAIN)
    assert (await partner.get()).status == 200

    postgres.process.kill()
    postgres.process.wait()
    try:
        await expect_failures(partner, *SSL_EXPECTED)
        with capture_logs() as lines:
            assert (await partner.call("GET", f"/share/{SHARE}")).status == 500
        assert lines, "it says why"
        assert SHARE not in str(lines), "who reads logs may not open what was shared"
    finally:
        postgres.start()
    await expect_recovery(partner)


async def test_postgres_frozen_and_thawed(hasty_service: Service, postgres: EmbeddedPostgres) -> None:
    partner = await hasty_service.partner()
    hasty_service.point(DOMAIN)
    assert (await partner.get()).status == 200

    assert postgres.pid is not None
    with frozen(postgres.pid):
        await expect_failures(partner)
    failures = render(hasty_service.counters.families()).decode()
    assert 'frontage_api_failures_total{route="/power"} 5.0' in failures, "Power's 502 among them"
    await expect_recovery(partner)


async def test_a_server_the_database_froze_under_answers_many_in_time(
    hasty_service: Service, postgres: EmbeddedPostgres
) -> None:
    partner = await hasty_service.partner()
    await partner.get()

    assert postgres.pid is not None
    with frozen(postgres.pid):
        async with asyncio.timeout(10):
            answers = await asyncio.gather(*(partner.get() for _ in range(20)))

    assert {answer.status for answer in answers} == {500}
