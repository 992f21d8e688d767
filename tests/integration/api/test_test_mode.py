"""An application for tests: its domains and its events say so, and CAA records for public CAs do not matter to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from common.db import events
from common.domain_settings import DomainSettings
from common.enrolment import changes
from tests.integration.api.conftest import Service, open_service
from tests.integration.api.partner import Partner
from tests.timeouts import UNHURRIED

SHOP = "shop.customer.test"


async def make_test(service: Service, partner: Partner) -> None:
    async with service.database.transaction() as connection:
        await connection.execute("update applications set is_test = true where id = $1", partner.id)


@pytest.mark.parametrize("is_test", [True, False])
async def test_its_domains_and_events_say_so(service: Service, partner: Partner, is_test: bool) -> None:
    if is_test:
        await make_test(service, partner)
    async with service.database.transaction() as connection:
        for product in ("power", "secure"):
            settings = DomainSettings("https://origin.example.com")
            await changes.enrol(connection, SHOP, "power" if product == "power" else "secure", partner.id, settings)
        for domain, subdomain in (("customer.test", "shop"), (None, None)):
            kind: events.EventType = "webhook.test" if domain is None else "domain.power"
            await events.record(connection, events.NewEvent(partner.id, kind, domain, subdomain, {"power_status": "x"}))
    for path in ("/power", "/ssl"):
        assert [each["test"] for each in (await partner.call("GET", path)).body["items"]] == [is_test]
    for each in (await partner.call("GET", "/webhooks/events")).body["items"]:
        assert each["payload"].get("test") is (True if is_test else None), each


async def test_no_caa_record_is_in_its_way(dsn: str, tmp_path: Path, probe_port: int) -> None:
    environ: dict[str, Any] = {
        "ISSUER": "acme",
        "ACME_DIRECTORY": "https://ca.test/directory",
        "ACME_CAA_IDENTITIES": "ca.test",
        "authority_port": None,
    }
    async with open_service(dsn, tmp_path, probe_port, UNHURRIED, **environ) as service:
        for name, kind, value in (
            ("test", "NS", "ns.test"),
            ("ns.test", "A", "127.0.0.1"),
            ("customer.test", "NS", "ns.test"),
            ("customer.test", "SOA", "ns.test hostmaster.test 1 3600 600 86400 60"),
            ("customer.test", "CAA", '0 issue "another.test"'),
        ):
            service.zone.add(name, kind, value)
        partner = await service.partner()
        wanted = {"type": "CNAME", "host": "shop", "value": "target-1.partner.test", "ttl": 300}
        body = {"domain": "customer.test", "dnsRecords": [wanted], "checkConflicts": True, "power": True}

        async def conflicts() -> Any:
            answer = await partner.call("POST", "/checkdomain", json=body)
            assert answer.status == 200, answer.body
            return answer.body["recordConflicts"]

        [found] = await conflicts()
        assert (found["type"], found["value"].replace('"', "")) == ("CAA", "0 issue another.test")
        await make_test(service, partner)
        assert await conflicts() is None
