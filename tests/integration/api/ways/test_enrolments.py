"""What a flow enrols once its records are there: Power, Secure, and what has failed."""

from __future__ import annotations

import pytest

from common.db.applications import update_application
from tests.integration.api.connecting import CONFIG, World
from tests.integration.api.secured import go_live, serve_origin
from tests.integration.api.ways.test_writing import SHOP

SECURE = {"type": "CNAME", "host": "{SUBDOMAIN}", "value": "{CNAME_TARGET}", "ttl": 300, "ssl": True}


async def test_a_flow_secures_what_post_ssl_would(world: World) -> None:
    async with serve_origin() as origin:
        flow = await world.planned(power=False, monitor=False, dnsRecords=[SECURE | {"applicationUrl": origin.url}])
        await flow.apply("dynamic_update", **world.key)
        finished = await flow.until("finished")
    assert [(each["product"], each["status"]) for each in finished["enrolments"]] == [("secure", "success")]
    assert origin.asked == [("HEAD", origin.url.removeprefix("http://"))], "the origin was asked first, as by POST /ssl"
    assert finished["enrolments"][0]["certificate"] == "ordering", "finished is not yet HTTPS"
    await go_live(world.service, SHOP, world.partner.id)
    assert (await flow.read())["enrolments"][0]["certificate"] == "live"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, "no_origin"),
        ({"applicationUrl": "http://10.0.0.1"}, "origin_refused"),
        ({"applicationUrl": "http://127.0.0.1:1"}, "origin_unreachable"),
        ({"redirectTo": SHOP}, "loop"),
    ],
)
async def test_a_flow_secures_nothing_that_post_ssl_would_refuse(
    world: World, fields: dict[str, str], code: str
) -> None:
    flow = await world.planned(power=False, monitor=False, dnsRecords=[SECURE | fields])
    await flow.apply("dynamic_update", **world.key)
    finished = await flow.until("finished")
    assert [(each["product"], each["status"], each.get("code")) for each in finished["enrolments"]] == [
        ("secure", "failed", code)
    ]
    assert (await world.partner.call("GET", "/ssl", params={"page": 0})).body["items"] == []


async def test_what_failed_to_be_enrolled_is_tried_again_when_asked(world: World) -> None:
    flow = await world.planned(power=False, monitor=True, dnsRecords=[SECURE])
    await flow.apply("dynamic_update", **world.key)
    finished = await flow.until("finished")
    statuses = [(each["product"], each["status"], each.get("code")) for each in finished["enrolments"]]
    assert statuses == [("secure", "failed", "no_origin"), ("monitor", "success", None)]
    async with serve_origin() as origin:
        async with world.service.database.transaction() as connection:
            await update_application(connection, world.partner.id, application_url=origin.url)
        assert (await flow.act("check")).body["enrolments"][0]["status"] in ("pending", "success")
        await flow.act("check")  # once more changes nothing
        finished = await flow.until("finished")
    assert [(each["product"], each["status"]) for each in finished["enrolments"]] == [
        ("secure", "success"),
        ("monitor", "success"),
    ]
    assert "code" not in finished["enrolments"][0]
    assert (await flow.act("check")).body["version"] == finished["version"], "nothing is left to try"
    assert [each["domain"] for each in (await world.partner.call("GET", "/ssl", params={"page": 0})).body["items"]] == [
        SHOP
    ]
    assert sorted(each["type"] for each in await world.events()) == ["domain.added", "domain.flow.completed"]


async def test_a_secured_record_has_an_origin_without_a_path(world: World) -> None:
    record = SECURE | {"applicationUrl": "https://app.example.com/shop"}
    body = CONFIG | {"power": False, "dnsRecords": [record], "domain": SHOP}
    refused = await world.partner.call("POST", "/connect/flows", json=body)
    assert (refused.status, refused.body["message"]) == (400, "Invalid 'dnsRecords[0].applicationUrl' parameter")
