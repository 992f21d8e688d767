"""An origin that answers the API, and not an edge: a real edge process reports it, and the diagnosis names the edge."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.component.edge_process import EdgeProcess, exchange, real_edge
from tests.integration.api.conftest import Service
from tests.integration.api.partner import Partner
from tests.integration.api.secured import go_live, serve_origin

DOMAIN = "shop.customer.test"
PATIENCE_SECONDS = 30.0


@pytest.fixture
async def edge(service: Service, dsn: str, tmp_path: Path) -> AsyncIterator[EdgeProcess]:
    """The only edge. It dials nothing in 127.0.0.0/8, unlike the API."""
    await service.edge.end()
    state_dir = tmp_path / "edge"
    state_dir.mkdir()
    with real_edge(
        state_dir,
        workers=2,
        FRONTAGE_DATABASE_URL=dsn,
        FRONTAGE_MASTER_KEY_FILE=str(service.settings.key_file),
        FRONTAGE_EDGE_HTTPS_REDIRECT="off",
        FRONTAGE_ALLOW_PRIVATE_ADDRESSES="127.0.0.0/8",
        FRONTAGE_DENY_ADDRESSES="127.0.0.0/8",
    ) as process:
        yield process


async def visit(edge: EdgeProcess) -> str:
    """The body that a visitor gets."""
    reader, writer = await asyncio.open_connection("127.0.0.1", edge.http)
    try:
        return await exchange(reader, writer, host=DOMAIN)
    finally:
        writer.close()


async def diagnosis_when(partner: Partner, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            answer = await partner.call("GET", f"/domains/{DOMAIN}/diagnosis")
            assert answer.status == 200
            body: dict[str, Any] = answer.body
            if condition(body):
                return body


async def test_an_origin_that_only_an_edge_cannot_reach_is_not_ok(service: Service, edge: EdgeProcess) -> None:
    async with serve_origin() as origin:
        partner = await service.partner()
        service.point(DOMAIN)
        assert (await partner.post(DOMAIN, origin.url)).status == 200
        await go_live(service, DOMAIN, partner.id)
        await edge.start()
        before = await diagnosis_when(partner, lambda found: found["status"] == "ok")
        assert (before["origin"]["status"], before["origin"]["unreached_from"]) == ("ok", [])

        assert "origin" in await visit(edge)
        found = await diagnosis_when(partner, lambda found: found["status"] != "ok")
        (unreached,) = found["origin"]["unreached_from"]
        assert (found["status"], found["origin"]["status"]) == ("action needed", "unreachable from edges")
        assert unreached["code"] == found["origin"]["code"] == "forbidden"
        assert f"edge {unreached['edge']} may not dial its address" in found["next_step"]
        assert "127.0.0.1:" not in found["origin"]["reason"]

        edge.signal(signal.SIGTERM)
        await edge.ended()
        await edge.start(FRONTAGE_DENY_ADDRESSES="")
        await visit(edge)
        after = await diagnosis_when(partner, lambda found: found["status"] == "ok")
        assert after["origin"]["unreached_from"] == []


async def test_an_origin_whose_answers_only_an_edge_refuses_is_not_ok(service: Service, edge: EdgeProcess) -> None:
    """What the API asks with is more lenient than an edge."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\nContent-Length: 0\nConnection: close\n\n")  # RFC 9112 §2.2: CR LF
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        partner = await service.partner()
        service.point(DOMAIN)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        assert (await partner.post(DOMAIN, url)).status == 200
        await go_live(service, DOMAIN, partner.id)
        await edge.start(FRONTAGE_DENY_ADDRESSES="")
        await diagnosis_when(partner, lambda found: found["status"] == "ok")

        assert "not valid HTTP" in await visit(edge)
        found = await diagnosis_when(partner, lambda found: found["status"] != "ok")
        assert found["origin"]["code"] == "not_http"
        assert "had an answer that is not valid HTTP" in found["next_step"]
