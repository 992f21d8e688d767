"""Traces of forwarded requests: what a collector receives, and what the origin gets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.collector import collector
from tests.component.http2_peers import get, http2_client
from tests.component.peers import Wire, served
from tests.waiting import until

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{CALLER}-01".encode()


@pytest.mark.parametrize("protocol", ["HTTP/1.1", "HTTP/2"])
@pytest.mark.parametrize("is_logged", [False, True])
async def test_a_forwarded_request_is_a_span_of_its_callers_trace(
    tmp_path: Path, protocol: str, is_logged: bool
) -> None:
    seen: list[bytes] = []

    async def script(wire: Wire) -> None:
        while head := await wire.head():
            seen.append(head)
            await wire.send(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")

    log = tmp_path / "access.log"
    with collector() as collected:
        settings: dict[str, Any] = {"FRONTAGE_OTLP_ENDPOINT": collected.endpoint, "FRONTAGE_EDGE_TRACE_SAMPLE": "1"}
        if is_logged:
            settings["FRONTAGE_EDGE_ACCESS_LOG"] = str(log)
        async with served(script, tmp_path, **settings) as (_, proxy):
            if protocol == "HTTP/2":
                async with http2_client(proxy) as client:
                    await client.exchange(get(b"/a?token=secret", (b"traceparent", TRACEPARENT)))
            else:
                wire = await proxy.connect()
                request = b"GET /a?token=secret HTTP/1.1\r\nHost: shop.example.com\r\nTraceparent: %b\r\n\r\n"
                await wire.send(request % TRACEPARENT)
                await wire.response()
        await until(lambda: collected.spans)
    [head], [span] = seen, collected.spans
    assert TRACEPARENT in head
    id_ = head.partition(b"X-Request-Id: ")[2].partition(b"\r\n")[0].decode()
    assert (span.service, span.name, span.trace_id, span.parent_id) == ("frontage-edge", "GET", TRACE, CALLER)
    assert span.has_failed
    assert 0 <= span.seconds < 60
    assert span.attributes == {
        "http.request.method": "GET",
        "http.response.status_code": 503,
        "server.address": "shop.example.com",
        "frontage.application": "app",
        "frontage.request_id": id_,
    }
    assert (id_ in log.read_text()) if is_logged else not log.exists()


async def test_only_the_share_is_exported_and_a_collector_that_is_away_harms_nothing(tmp_path: Path) -> None:
    async def answer(wire: Wire) -> None:
        while await wire.head():
            await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    with collector() as collected:
        for endpoint, share in ((collected.endpoint, "0"), ("http://127.0.0.1:1", "1")):
            settings: dict[str, Any] = {"FRONTAGE_OTLP_ENDPOINT": endpoint, "FRONTAGE_EDGE_TRACE_SAMPLE": share}
            async with served(answer, tmp_path, **settings) as (_, proxy):
                wire = await proxy.connect()
                await wire.send(b"GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n")
                assert (await wire.response())[0].startswith(b"HTTP/1.1 200")
    assert collected.spans == []
