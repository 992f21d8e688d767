"""Traces of the API and the monitor: the order that a request caused is in the request's trace."""

from __future__ import annotations

import asyncio
from pathlib import Path

from common import settings
from common.db.session import SessionTimeouts
from common.tracing import open_tracer
from tests.collector import Collector, Received, collector
from tests.integration.api.conftest import open_service
from tests.integration.monitor import parts as orders
from tests.waiting import until

SHOP = "shop.customer.test"


def of(collected: Collector, request_id: str) -> list[Received]:
    return [span for span in collected.spans if span.attributes.get("frontage.request_id") == request_id]


async def test_a_request_leads_to_its_order(dsn: str, tmp_path: Path, probe_port: int) -> None:
    with collector() as collected:
        endpoint = collected.endpoint
        async with open_service(dsn, tmp_path, probe_port, SessionTimeouts(), OTLP_ENDPOINT=endpoint) as service:
            partner = await service.partner()
            service.point(SHOP)
            tracer = open_tracer(settings.load({"FRONTAGE_OTLP_ENDPOINT": endpoint}), "monitor")
            assert tracer is not None
            issuing = orders.make_runner(service.database, orders.CountingIssuer(tmp_path), service.keyring)
            issuing.trace("certificates", tracer)
            async with orders.running(issuing):
                powered = await partner.post(SHOP)

                async def is_issued() -> bool:
                    async with service.database.connection() as connection:
                        return bool(await connection.fetchval("select count(*) from certificates"))

                await until(is_issued)
                await until(lambda: not issuing.held)
            await asyncio.to_thread(tracer.close)
        id_ = powered.headers["X-Request-Id"]
        await until(lambda: {"frontage-api", "frontage-monitor"} <= {span.service for span in of(collected, id_)})
    spans = {(span.service, span.name): span for span in of(collected, id_)}
    asked, ordered = spans["frontage-api", "POST /power"], spans["frontage-monitor", "certificates"]
    assert asked.attributes["http.response.status_code"] == 200
    assert ordered.attributes["frontage.key"] == SHOP
    assert asked.trace_id == ordered.trace_id
    assert not asked.has_failed
    assert not ordered.has_failed
