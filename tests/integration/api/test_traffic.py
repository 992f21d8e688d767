"""``GET /domains/:domain/traffic``: what edges reported, of the application's own domains."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from common.db import domains, traffic
from common.domain_settings import DomainSettings
from common.traffic import BYTES_DOWN, CLIENT_ERRORS, FIGURES, HTTP2, TrafficKey, TrafficReport
from tests.integration.api.conftest import Service
from tests.integration.api.partner import Partner

DOMAIN = "shop.customer.test"


async def report(service: Service, partner: Partner, ago: timedelta = timedelta()) -> None:
    counts = [0] * FIGURES
    counts[4], counts[6], counts[BYTES_DOWN], counts[CLIENT_ERRORS], counts[HTTP2] = 90, 10, 12_345, 3, 60
    given = TrafficReport()
    given.add(TrafficKey(partner.id, DOMAIN), counts)
    given.add(TrafficKey(partner.id, ""), counts)
    async with service.database.connection() as connection:
        await traffic.write_report(connection, datetime.now(UTC) - ago, given)


async def test_counts_are_listed_by_interval_and_added_up(service: Service, partner: Partner) -> None:
    async with service.database.transaction() as connection:
        await domains.power(connection, DOMAIN, partner.id, DomainSettings("http://192.0.2.7/a"))
    await report(service, partner)
    await report(service, partner, timedelta(minutes=20))
    day = (await partner.call("GET", f"/domains/{DOMAIN}/traffic")).body
    assert (day["period"], day["interval_minutes"], len(day["items"])) == ("day", 5, 2)
    assert day["total"] == {
        "requests": 200,
        "bytes": 24_690,
        "client_errors": 6,
        "server_errors": 0,
        "origin_errors": 0,
        "http2_requests": 120,
        "latency_p50_ms": 25.0,
        "latency_p95_ms": 100.0,
    }
    assert [item["requests"] for item in day["items"]] == [100, 100]
    month = (await partner.call("GET", f"/domains/{DOMAIN}/traffic?period=month")).body
    assert (month["interval_minutes"], month["total"]) == (60, day["total"])


async def test_another_applications_traffic_is_not_shown(service: Service) -> None:
    partner, other = await service.partner(), await service.partner()
    async with service.database.transaction() as connection:
        await domains.power(connection, DOMAIN, partner.id, DomainSettings("http://192.0.2.7/a"))
    await report(service, partner)
    body = (await other.call("GET", f"/domains/{DOMAIN}/traffic")).body
    assert body["items"] == []
    assert body["total"]["latency_p50_ms"] is None
    assert sum(body["total"][name] for name in ("requests", "bytes", "client_errors")) == 0


async def test_an_unknown_period_is_refused(partner: Partner) -> None:
    answer = await partner.call("GET", f"/domains/{DOMAIN}/traffic?period=year")
    assert (answer.status, answer.body["message"]) == (400, "Invalid 'period' parameter")
