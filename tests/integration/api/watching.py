"""A partner who has records watched: the calls of Monitor, and what a check would write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from common.db.pool import Database
from tests.integration.api.partner import Answer, Partner

DOMAIN = "customer.test"
ABSENT = "Domain not monitored or application not authorized for it"
WWW = {"type": "CNAME", "host": "www", "value": "apps.partner.test", "ttl": 300}
APEX = {"type": "A", "host": "@", "value": "192.0.2.1", "ttl": 3600}
MAIL = {"type": "MX", "host": "@", "value": "mail.partner.test", "ttl": 3600, "priority": "10"}
EVIDENCE = [
    {"role": role, "server": server, "name": "www.customer.test", "type": "CNAME", "outcome": "found"}
    for role, server in [
        ("resolver", "10.0.0.53:53"),
        ("resolver", "[fd00::53]:53"),
        ("resolver", "10.0.0.53:53"),
        ("authority", "9.9.9.9:53"),
        ("authority", "127.0.0.1:5300"),
    ]
]


@dataclass(frozen=True, slots=True)
class Watcher:
    """`name` keywords are the body's: domain (of `DOMAIN` unless given), subdomain, userId and so on."""

    partner: Partner

    async def add(self, *records: Any, **name: Any) -> Answer:
        return await self.partner.call("POST", "/monitor/domains", json=_body(records, name))

    async def put(self, *records: Any, **name: Any) -> Answer:
        return await self.partner.call("PUT", "/monitor/domains", json=_body(records, name))

    async def delete(self, **name: Any) -> Answer:
        return await self.partner.call("DELETE", "/monitor/domains", json={"domain": DOMAIN, **name})

    async def list(self, **query: Any) -> Answer:
        return await self.partner.call("GET", "/monitor/domains", params=query)

    async def get(self, domain: str = DOMAIN, **query: Any) -> Answer:
        return await self.partner.call("GET", f"/monitor/domains/{domain}", params=query)

    async def records(self, method: str, *records: Any, domain: str = DOMAIN, **query: Any) -> Answer:
        body = {} if method == "GET" else {"json": {"dnsRecords": records}}
        return await self.partner.call(method, f"/monitor/domains/{domain}/records", params=query, **body)


def _body(records: tuple[Any, ...], name: dict[str, Any]) -> dict[str, Any]:
    return {"domain": DOMAIN, "dnsRecords": records or [WWW]} | name


async def check(database: Database, *, present: list[Any], missing: list[Any], domain: str = DOMAIN) -> None:
    """Leave behind what a check of the domain's apex entry would that found these."""
    async with database.transaction() as connection:
        checked = await connection.fetchval(
            "update monitored_domains set state = $2, records_present = $3, records_missing = $4,"
            " last_checked_at = now(), missing_records_last_detected = case when $2 = 'missing' then now() end,"
            " evidence = $5 where domain = $1 and subdomain is null returning id",
            domain,
            "missing" if missing else "present",
            present,
            missing,
            EVIDENCE,
        )
        await connection.execute(
            "update checks set requested_at = null, due_at = now() + interval '1 hour' where id = $1", checked
        )


async def due_now(database: Database) -> bool:
    """Whether a monitor would claim the one check now."""
    async with database.connection() as connection:
        return bool(await connection.fetchval("select due_at <= now() and lease_until is null from checks"))
