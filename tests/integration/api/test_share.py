"""``/share/:id``: a page anybody with the link can read, and nothing else can be learnt from it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from datetime import datetime
from typing import Any

import pytest

from common.db.shares import share_records
from tests.integration.api.conftest import SERVER, Service
from tests.integration.api.partner import Partner

RECORDS = [
    {"type": "CNAME", "host": "shop", "value": "apps.acme.example", "ttl": 300},
    {"type": "MX", "host": "@", "value": "mail.acme.example", "ttl": 3600, "priority": "10"},
]
SCRIPTS = [
    '<script src="../sdk/v1/frontage.js" defer></script>',
    '<script src="../sdk/v1/copy_buttons.js" defer></script>',
    '<script src="../sdk/v1/shared.js" defer></script>',
]
HOSTILE = "\"><script>alert(1)</script><b x='"


async def share(service: Service, records: list[dict[str, Any]], subdomain: str | None = "shop") -> str:
    partner = await service.partner()
    async with service.database.transaction() as connection:
        return await share_records(
            connection, application_id=partner.id, domain="customer.example", subdomain=subdomain, records=records
        )


async def get(service: Service, share_id: str, accept: str = "text/html,*/*;q=0.8") -> tuple[int, str, Any]:
    async with service.session.get(f"{service.url}/share/{share_id}", headers={"Accept": accept}) as response:
        return response.status, await response.text(), response.headers


async def test_page_lists_the_records_without_asking_who_reads(service: Service) -> None:
    status, page, headers = await get(service, await share(service, RECORDS))
    assert status == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    for text in ("shop.customer.example", "CNAME", "apps.acme.example", "MX", "<code>10</code>", "<code>3600</code>"):
        assert text in page


async def test_page_runs_the_sdk_only_loads_nothing_else_and_is_found_by_no_search(service: Service) -> None:
    _, page, headers = await get(service, await share(service, RECORDS))
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    [style] = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert f"'sha256-{base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()}'" in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["X-Robots-Tag"] == "noindex, nofollow"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"
    assert re.findall(r"<script.*?</script>", page) == SCRIPTS
    assert "script-src 'self';" in policy
    assert "http://" not in page
    assert "https://" not in page


async def test_whatever_records_hold_is_text(service: Service) -> None:
    record = {"type": "TXT", "host": HOSTILE, "value": HOSTILE, "ttl": 300}
    _, page, _ = await get(service, await share(service, [record]))
    assert page.count("<script") == len(SCRIPTS)
    assert page.count("&lt;script&gt;") == 2
    assert "<b x=" not in page


async def test_a_configuration_without_a_domain_keeps_only_the_placeholders_of_the_domain(
    service: Service, partner: Partner
) -> None:
    config = {
        "dnsRecords": [
            {"type": "CNAME", "host": "{SUBDOMAIN}", "value": "{CNAME_TARGET}", "ttl": 300},
            {"type": "A", "host": "@", "value": "{SERVICE_SERVERS}", "ttl": 300},
            {"type": "MX", "host": "@", "value": "mx.{SLD}.{TLD}", "ttl": 300, "priority": "20"},
        ]
    }
    shared = (await partner.call("POST", "/sharing/connect", json={"config": config})).body
    created, expires = (datetime.fromisoformat(shared[name]) for name in ("created_at", "expires_at"))
    assert round((expires - created).total_seconds() / 3600) == 30 * 24
    opened = await partner.call("GET", f"/share/{shared['id']}", headers={"Accept": "application/json"})
    assert opened.body["dnsRecords"] == [
        {"type": "CNAME", "host": "{SUBDOMAIN}", "value": "target-1.partner.test", "ttl": 300},
        {"type": "A", "host": "@", "value": SERVER, "ttl": 300},
        {"type": "MX", "host": "@", "value": "mx.{SLD}.{TLD}", "ttl": 300, "priority": "20"},
    ]
    assert opened.body["config"] == config
    assert "<code>{SUBDOMAIN}</code> stands for" in (await get(service, shared["id"]))[1]
    assert "stands for what is before" not in (await get(service, await share(service, RECORDS)))[1]


async def test_programs_get_json_when_they_ask_for_it(service: Service) -> None:
    link = await share(service, RECORDS, subdomain=None)
    async with service.session.get(f"{service.url}/share/{link}", headers={"Accept": "application/json"}) as response:
        body = await response.json()
        assert response.headers["Vary"] == "Accept"
    assert (body["domain"], body["subdomain"], body["dnsRecords"]) == ("customer.example", None, RECORDS)


@pytest.mark.parametrize("share_id", ["x" * 32, "short", "%00" * 20, "..%2f..%2fetc%2fpasswd"])
async def test_unknown_link_is_a_page_that_says_so(service: Service, share_id: str) -> None:
    status, page, headers = await get(service, share_id)
    assert status == 404
    assert "This link does not work" in page
    assert "default-src 'none'" in headers["Content-Security-Policy"]


async def test_expired_link_is_gone_for_people_and_programs(service: Service) -> None:
    link = await share(service, RECORDS)
    async with service.database.transaction() as connection:
        await connection.execute("update shares set expires_at = now()")
    assert (await get(service, link))[0] == 404
    async with service.session.get(f"{service.url}/share/{link}", headers={"Accept": "application/json"}) as response:
        assert response.status == 404
        body = await response.json()
    assert (body["message"], body["code"]) == ("Not Found", "link_not_found")
    assert body.keys() >= {"request_id"}


async def test_links_of_an_application_that_is_being_deleted_are_gone(service: Service) -> None:
    link = await share(service, RECORDS)
    async with service.database.transaction() as connection:
        await connection.execute("update applications set deleting_at = now()")
    assert (await get(service, link))[0] == 404
    status, text, _ = await get(service, link, accept="application/json")
    assert (status, json.loads(text)["code"]) == (404, "link_not_found")


async def test_link_cannot_be_guessed(service: Service) -> None:
    links = {await share(service, RECORDS) for _ in range(5)}
    assert len(links) == 5
    assert all(len(link) == 32 for link in links)  # 192 bits in base64
