"""The handbook's examples of codes that need a zone which can be written: a flow of the modal over knot."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from bench.lab.knot import Knot, find_knot
from tests.integration.api.connecting import APEX, CUSTOMER, KEY, PARENT, World, open_world, zone_file
from tests.integration.api.error_cases import check_example
from tests.integration.api.partner import Answer

DIGEST = "4f6c1a9e2b7d0385"
SPF = {"type": "TXT", "host": "@", "value": "v=spf1 include:partner.test -all", "ttl": 300}
ELSEWHERE = {"type": "CNAME", "host": "@", "value": "elsewhere.test", "ttl": 300}
SHOWN_KEY = {"server": "ns.customer.test", "key_name": "writer", "key_secret": "…"}

Asked = tuple[str, dict[str, Any], dict[str, Any], Answer]
"""The action, its body as it is shown, what stands for what in the path, and the answer."""


async def written_elsewhere(world: World, knot: Knot) -> Asked:
    flow = await world.planned()
    await knot.add(APEX, "shop", "TXT", '"new"')
    digest = flow.digest
    answer = await flow.apply("dynamic_update", **world.key)
    shown = {"way": "dynamic_update", "digest": DIGEST, "credentials": SHOWN_KEY}
    return "apply", shown, {"flow": flow.body["id"], "digest": digest}, answer


async def changed_by_others(world: World, knot: Knot) -> Asked:
    flow = await world.planned(APEX, power=False, dnsRecords=[SPF])
    await flow.apply("dynamic_update", **world.key)
    await flow.until("finished")
    await knot.add(APEX, "@", "TXT", '"others"')
    return "undo", {"credentials": SHOWN_KEY}, {"flow": flow.body["id"]}, await flow.act("undo", credentials=world.key)


async def set_by_hand(world: World, knot: Knot) -> Asked:
    """The records were there before: the flow wrote nothing."""
    await knot.add(APEX, "@", "TXT", '"acme=1"')
    flow = await world.planned(APEX, power=False, dnsRecords=[SPF | {"value": "acme=1"}])
    await flow.apply("manual")
    await flow.until("finished")
    return "undo", {}, {"flow": flow.body["id"]}, await flow.act("undo")


async def another_domain(world: World, _knot: Knot) -> Asked:
    flow = await world.planned()
    await flow.apply("dynamic_update", **world.key)
    body = {"domain": f"other.{APEX}"}
    return "domain", body, {"flow": flow.body["id"]}, await flow.act("domain", **body)


async def blocked_plan(world: World, _knot: Knot) -> Asked:
    flow = await world.planned(APEX, power=False, dnsRecords=[ELSEWHERE, SPF])
    shown = {"way": "dynamic_update", "digest": DIGEST, "credentials": SHOWN_KEY}
    return "apply", shown, {"flow": flow.body["id"]}, await flow.apply("dynamic_update", **world.key)


async def way_of_others(world: World, _knot: Knot) -> Asked:
    flow = await world.planned()
    digest = flow.digest
    answer = await flow.apply("domain_connect")
    return "apply", {"way": "domain_connect", "digest": DIGEST}, {"flow": flow.body["id"], "digest": digest}, answer


async def nothing_up(world: World, _knot: Knot) -> Asked:
    flow = await world.planned(f"new.{APEX}")
    return "prepare", {}, {"flow": flow.body["id"]}, await flow.act("prepare")


CASES: dict[str, Callable[[World, Knot], Awaitable[Asked]]] = {
    "zone_changed": written_elsewhere,
    "written_changed": changed_by_others,
    "nothing_written": set_by_hand,
    "flow_has_written": another_domain,
    "plan_blocked": blocked_plan,
    "way_not_open": way_of_others,
    "not_preparable": nothing_up,
}


@pytest.fixture
async def knot() -> AsyncIterator[Knot]:
    if find_knot() is None:
        pytest.skip("knot is not installed")
    zones = {"test": zone_file(PARENT), APEX: zone_file(CUSTOMER)}
    async with Knot.serve(zones, keys={KEY["key_name"]: KEY["key_secret"]}) as knot:
        yield knot


@pytest.mark.parametrize("code", CASES)
async def test_the_example_of_a_code_is_answered_so(
    dsn: str, tmp_path: Path, probe_port: int, knot: Knot, code: str
) -> None:
    async with open_world(dsn, tmp_path, probe_port, knot.address, ACME_DNS_ZONE="acme.frontage.test") as world:
        action, shown, ids, answer = await CASES[code](world, knot)
        check_example(code, "POST", f"/connect/flows/{ids['flow']}/{action}", shown, answer, ids)
