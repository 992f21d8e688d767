"""POST /checkrecords: knot has the zone, unbound is the resolver with its cache."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bench.lab.knot import Knot, find_knot
from bench.lab.unbound import find_unbound, serve_unbound
from common.db.session import SessionTimeouts
from tests.integration.api.conftest import Service, open_service
from tests.integration.api.partner import Answer, Partner

pytestmark = pytest.mark.skipif(
    find_knot() is None or find_unbound() is None, reason="the Debian packages knot and unbound are not installed"
)

APEX = "shop.test"
ZONE = """
@ NS ns
ns A 127.0.0.1
www 300 A 192.0.2.1
old 300 A 192.0.2.9
"""


@dataclass(slots=True)
class World:
    knot: Knot
    service: Service
    partner: Partner

    async def check(self, *records: dict[str, Any], domain: str = APEX) -> Answer:
        return await self.partner.call("POST", "/checkrecords", json={"domain": domain, "dnsRecords": list(records)})


@pytest.fixture
async def world(dsn: str, tmp_path: Path, probe_port: int) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        knot = await stack.enter_async_context(Knot.serve({APEX: ZONE}))
        resolver = await stack.enter_async_context(serve_unbound({APEX: knot.address}))
        service = await stack.enter_async_context(
            open_service(
                dsn,
                tmp_path,
                probe_port,
                SessionTimeouts(),
                authority_port=knot.address.port,
                DNS_SERVERS=str(resolver),
            )
        )
        yield World(knot, service, await service.partner())


def record(host: str, value: str, kind: str = "A") -> dict[str, Any]:
    return {"type": kind, "host": host, "value": value, "ttl": "300"}


async def test_each_record_has_its_status_and_what_each_side_answered(world: World) -> None:
    answer = await world.check(record("www", "192.0.2.1"), record("absent", "192.0.2.1"))

    assert (answer.status, answer.body["domain"]) == (200, APEX)
    present, absent = answer.body["records"]
    assert (present["status"], present["cachedUntil"]) == ("propagated", None)
    assert {"type": "A", "host": "www", "value": "192.0.2.1", "ttl": 300}.items() <= present.items()
    assert present["answers"][0]["values"] == ["192.0.2.1"]
    assert absent["status"] == "missing"
    assert {(each["role"], each["outcome"]) for each in absent["answers"]} == {
        ("resolver", "nxdomain"),
        ("authority", "nxdomain"),
    }


async def test_a_resolvers_old_answer_is_shown_with_the_time_when_it_ends(world: World) -> None:
    """The zone has the record now; the resolver remembers the one before for its TTL, and that there was none."""
    began = datetime.now(UTC)
    await world.check(record("old", "192.0.2.9"), record("fresh", "192.0.2.1"))
    await world.knot.remove(APEX, "old", "A")
    await world.knot.add(APEX, "old", "A", "192.0.2.10")
    await world.knot.add(APEX, "fresh", "A", "192.0.2.1")

    changed, added = (await world.check(record("old", "192.0.2.10"), record("fresh", "192.0.2.1"))).body["records"]

    assert (changed["status"], added["status"]) == ("propagated", "propagated")
    assert ("resolver", ["192.0.2.9"]) in [(each["role"], each["values"]) for each in changed["answers"]]
    assert ("authority", ["192.0.2.10"]) in [(each["role"], each["values"]) for each in changed["answers"]]
    ends = datetime.fromisoformat(changed["cachedUntil"])
    assert began < ends <= datetime.now(UTC) + timedelta(seconds=300)
    absent_ends = datetime.fromisoformat(added["cachedUntil"])
    assert began < absent_ends <= datetime.now(UTC) + timedelta(seconds=60)  # the zone's negative TTL


async def test_what_could_not_be_asked_is_unknown(world: World) -> None:
    answer = await world.check(record("www", "192.0.2.1"), domain="elsewhere.test")

    assert (answer.status, answer.body["records"][0]["status"]) == (200, "unknown")


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"domain": APEX}, "dnsRecords"),
        ({"domain": APEX, "dnsRecords": []}, "dnsRecords"),
        ({"domain": APEX, "dnsRecords": [record("www", "x")]}, "dnsRecords"),
        ({"domain": f"www.{APEX}", "dnsRecords": [record("www", "192.0.2.1")]}, "domain"),
        ({"dnsRecords": [record("www", "192.0.2.1")]}, "domain"),
    ],
)
async def test_a_body_that_cannot_be_checked_is_refused(world: World, body: dict[str, Any], named: str) -> None:
    answer = await world.partner.call("POST", "/checkrecords", json=body)

    assert (answer.status, answer.message) == (400, f"Invalid '{named}' parameter")
