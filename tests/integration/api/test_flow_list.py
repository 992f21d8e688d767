"""The list of flows, and the funnel: what a partner's support sees of its customers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api.bounds import Bounds
from common.db.connect_flow_list import count_steps
from tests.integration.api.conftest import Service
from tests.integration.api.partner import Partner
from tests.integration.api.test_connect import act, begin

PROVIDER = {"provider": {"id": "examplehost", "name": "Example Host"}}
STANDINGS: dict[str, dict[str, Any]] = {
    "domain": {},
    "inspection": {"domain": "a.test", "state": "checking"},
    "plan": {"domain": "b.test", "subdomain": "shop", "state": "closed", "plan": {}, "looked": PROVIDER},
    "writing": {"domain": "c.test", "state": "halted", "plan": {}, "way": "provider_api", "looked": PROVIDER},
    "records": {"domain": "d.test", "state": "timed_out", "way": "manual", "looked": PROVIDER, "since": True},
    "enrolment": {"domain": "e.test", "state": "enrolling", "way": "manual", "looked": PROVIDER, "since": True},
    "live": {"domain": "f.test", "state": "finished", "way": "manual", "looked": PROVIDER, "since": True},
}
"""The columns of a flow that stands at each step."""


async def begin_at_each_step(service: Service, partner: Partner) -> dict[str, str]:
    """Begin a flow for each step, oldest first; return their ids."""
    made = {}
    for step, columns in STANDINGS.items():
        flow = (await begin(partner, userId=f"user-{step}")).body
        made[step] = flow["id"]
        async with service.database.transaction() as connection:
            for column, value in columns.items():
                given = datetime.now(UTC) if value is True else value
                await connection.execute(f"update connect_flows set {column} = $2 where id = $1", flow["id"], given)
    return made


async def listed(partner: Partner, **query: Any) -> list[str]:
    answer = await partner.call("GET", "/connect/flows", params=query)
    assert answer.status == 200, answer.body
    return [each["step"] for each in answer.body["items"]]


async def test_each_flow_is_listed_with_the_step_it_has_come_to(service: Service) -> None:
    partner, other = await service.partner(), await service.partner()
    await begin_at_each_step(service, partner)
    assert await listed(partner) == list(reversed(STANDINGS))
    assert await listed(other) == []
    for query, steps in (
        ({"step": "records"}, ["records"]),
        ({"state": "enrolling"}, ["enrolment"]),
        ({"open": "true"}, ["enrolment", "writing", "inspection", "domain"]),
        ({"open": "false"}, ["live", "records", "plan"]),
        ({"domain": "b.test"}, ["plan"]),
        ({"domain": "shop.b.test"}, ["plan"]),
        ({"domain": "www.b.test"}, []),
        ({"userId": "user-writing"}, ["writing"]),
        ({"jobId": "none"}, []),
    ):
        assert await listed(partner, **query) == steps, query
    newest = (await partner.call("GET", "/connect/flows", params={"limit": 1})).body["items"][0]
    assert (newest["provider"], newest["host"], newest["open"]) == (
        {"id": "examplehost", "name": "Example Host"},
        "f.test",
        False,
    )


@pytest.mark.parametrize("bounds", [Bounds(flows_scanned=3)], ids=["few"])
async def test_parts_join_to_the_whole_list(service: Service, partner: Partner) -> None:
    made = await begin_at_each_step(service, partner)

    async def joined(**query: Any) -> tuple[list[str], int]:
        found: list[str] = []
        after: dict[str, str] = {}
        for parts in range(1, 20):
            body = (await partner.call("GET", "/connect/flows", params={"limit": 2} | query | after)).body
            assert body["count"] == len(body["items"]) <= 2
            found += [each["id"] for each in body["items"]]
            if body["next"] is None:
                return found, parts
            after = {"after": body["next"]}
        raise AssertionError("the list does not end")

    assert (await joined())[0] == list(reversed(made.values()))
    found, parts = await joined(step="domain")
    assert found == [made["domain"]]
    assert parts > 1, "a part looks through a bounded number of flows"


@pytest.mark.parametrize(
    "query",
    [
        {"step": "x"},
        {"state": "x"},
        {"open": "1"},
        {"domain": ".."},
        {"userId": ""},
        {"after": "flw_x"},
        {"after": "flw_" + "0" * 32},
        {"limit": "0"},
        {"other": "1"},
    ],
)
async def test_a_wrong_parameter_is_named(service: Service, query: dict[str, str]) -> None:
    refused = await (await service.partner()).call("GET", "/connect/flows", params=query)
    assert (refused.status, refused.message) == (400, f"Invalid '{next(iter(query))}' parameter")


async def test_a_browsers_token_lists_nothing(partner: Partner) -> None:
    flow = (await begin(partner)).body
    headers = partner.headers | {"Authorization": f"Bearer {partner.token(scope='connect')}"}
    assert (await partner.call("GET", f"/connect/flows/{flow['id']}", headers=headers)).status == 200
    for path in ("/connect/flows", "/connect/funnel"):
        refused = await partner.call("GET", path, headers=headers)
        assert (refused.status, refused.body["code"]) == (403, "scope"), path


async def test_the_funnel_counts_where_people_stop(service: Service, partner: Partner) -> None:
    await begin_at_each_step(service, partner)
    funnel = (await partner.call("GET", "/connect/funnel")).body
    assert (funnel["flows"], funnel["complete"]) == (7, True)
    assert [(each["step"], each["reached"], each["stopped"], each["open"]) for each in funnel["steps"]] == [
        ("domain", 7, 0, 1),
        ("inspection", 6, 0, 1),
        ("plan", 5, 1, 0),
        ("writing", 4, 0, 1),
        ("records", 3, 1, 0),
        ("enrolment", 2, 0, 1),
        ("live", 1, 0, 0),
    ]
    known, unknown = funnel["providers"]
    assert (known["provider"]["name"], known["flows"], known["live"]) == ("Example Host", 5, 1)
    assert (unknown["provider"], unknown["flows"], unknown["live"]) == (None, 2, 0)
    async with service.database.transaction() as connection:
        await connection.execute("update connect_flows set created_at = created_at - $1::interval", timedelta(days=3))
    assert (await partner.call("GET", "/connect/funnel", params={"days": 2})).body["flows"] == 0
    assert (await partner.call("GET", "/connect/funnel", params={"days": 31})).status == 400


async def test_a_flow_under_way_moves_through_the_steps(partner: Partner) -> None:
    flow = (await begin(partner)).body
    assert await listed(partner) == ["domain"]
    await act(partner, flow, "domain", domain="customer.test", subdomain="shop")
    assert await listed(partner) == ["inspection"]
    await act(partner, flow, "close")
    assert await listed(partner, open="false") == ["inspection"]


def test_a_step_was_reached_by_all_that_went_further() -> None:
    counts = count_steps({("domain", "open"): 2, ("records", "stopped"): 3, ("live", "live"): 5})
    assert [each.reached for each in counts] == [10, 8, 8, 8, 8, 5, 5]
