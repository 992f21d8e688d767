"""A page that holds one token, and what it and its application ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.integration.api.connecting import APEX
from tests.integration.api.partner import Answer, Partner
from tests.waiting import until

LIVE, FRESH = f"live.{APEX}", f"fresh.{APEX}"
OWN, EVIL = "https://app.example.com/shop", "http://203.0.113.66"
TARGET = "target-1.partner.test"
RECORD: dict[str, Any] = {"type": "CNAME", "host": "{SUBDOMAIN}", "value": "{CNAME_TARGET}", "ttl": 300}


def power(url: str, **fields: Any) -> dict[str, Any]:
    return {"power": True, "dnsRecords": [RECORD | {"applicationUrl": url, **fields}]}


def secure(**fields: Any) -> dict[str, Any]:
    return {"dnsRecords": [RECORD | {"ssl": True, **fields}]}


@dataclass(slots=True)
class Browser:
    """A page that holds one token."""

    partner: Partner
    token: str

    @property
    def headers(self) -> dict[str, str]:
        return {"applicationId": self.partner.id, "Authorization": f"Bearer {self.token}"}

    async def call(self, method: str, path: str, **body: Any) -> Answer:
        options: dict[str, Any] = {} if method == "GET" else {"json": body}
        return await self.partner.call(method, path, headers=self.headers, **options)

    async def begin(self, **body: Any) -> Answer:
        return await self.call("POST", "/connect/flows", **body)

    async def until(self, flow_id: str, *states: str) -> dict[str, Any]:
        seen: dict[str, Any] = {}

        async def is_there() -> bool:
            answer = await self.partner.call("GET", f"/connect/flows/{flow_id}")
            seen.update(answer.body)
            return answer.body["state"] in states

        await until(is_there, f"a flow that is {states}")
        return seen

    async def finish(self, **body: Any) -> dict[str, Any]:
        """Connect a name whose records are live already; returns the flow's enrolments by product."""
        begun = await self.begin(**body)
        assert begun.status == 201, begun.body
        return await self.finish_begun(begun.body["id"])

    async def finish_begun(self, flow_id: str) -> dict[str, Any]:
        while (planned := await self.until(flow_id, "planned", "unchecked"))["state"] == "unchecked":
            await self.call("POST", f"/connect/flows/{flow_id}/plan")
        digest = planned["plan"]["digest"]
        applied = await self.call("POST", f"/connect/flows/{flow_id}/apply", way="manual", digest=digest)
        assert applied.status == 200, applied.body
        finished = await self.until(flow_id, "finished", "closed")
        return {each["product"]: each for each in finished["enrolments"]} | {"error": finished["error"]}


async def register(partner: Partner, config: dict[str, Any], **fields: Any) -> str:
    answer = await partner.call("POST", "/connect/configurations", json={"config": config, **fields})
    assert answer.status == 201, answer.body
    configuration_id: str = answer.body["id"]
    return configuration_id


async def share(partner: Partner, config: dict[str, Any], **fields: Any) -> str:
    answer = await partner.call("POST", "/sharing/connect", json={"config": config, **fields})
    assert answer.status == 201, answer.body
    share_id: str = answer.body["id"]
    return share_id


async def open_link(partner: Partner, share_id: str) -> Answer:
    return await partner.call("GET", f"/share/{share_id}", headers={"Accept": "application/json"})


async def through_link(partner: Partner, share_id: str) -> Browser:
    return Browser(partner, (await open_link(partner, share_id)).body["token"])


async def powered(partner: Partner) -> dict[str, str]:
    items = (await partner.call("GET", "/power", params={"page": 0})).body["items"]
    return {each["domain"]: each["applicationUrl"] for each in items}
