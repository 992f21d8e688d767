"""``/application``: an application's own settings and secrets; and what is done by hand with its domains."""

from __future__ import annotations

import asyncio
import dataclasses
from functools import partial
from typing import Any, cast
from unittest.mock import AsyncMock

import pytest

from api.services import application_changes
from api.services.removals import Removals
from common.actors import Actor, acting
from common.db import application_removal, domains, policies
from common.db.applications import get_application
from common.domain_settings import DomainSettings
from common.errors import DatabaseUnavailable
from tests.integration.api.conftest import Service
from tests.integration.api.installation import end_monitors
from tests.integration.api.partner import Answer, Partner
from tests.integration.api.people import Person, organisation, person
from tests.waiting import until


async def settings(partner: Partner) -> dict[str, object]:
    answer = await partner.call("GET", "/application")
    assert answer.status == 200, answer
    return dict(answer.body)


async def put(partner: Partner, path: str = "/application", **body: object) -> Answer:
    return await partner.call("PUT", path, json=body)


async def owner_of(service: Service, *partners: Partner) -> Person:
    """An owner of a new organisation, which has the partners' applications."""
    number = partners[0].id
    return await person(service, f"{number}@x.test", await organisation(service, number, *partners), "owner")


async def test_settings_are_changed_and_what_is_left_out_stays(partner: Partner) -> None:
    before = await settings(partner)
    changes: dict[str, Any] = {
        "name": "Shops",
        "applicationUrl": "https://app.acme.example",
        "webhookUrl": "https://hooks.acme.example/in",
        "rootPathAccess": ["/static", ""],
        "sendHost": "customer",
        "originVerify": False,
        "maintenance": True,
        "bufferUploadsBytes": 1024,
        "http2": False,
        "minimumTls": "1.3",
        "errorPage": "<h1>{{status}}</h1>",
    }
    assert (await put(partner, **changes)).status == 200
    after = await settings(partner)
    assert after == before | changes | {"rootPathAccess": ["/static"]}
    removed: dict[str, Any] = {
        "applicationUrl": "",
        "webhookUrl": "",
        "rootPathAccess": [],
        "bufferUploadsBytes": 0,
        "errorPage": "",
    }
    assert (await put(partner, **removed)).status == 200
    emptied = dict.fromkeys(("applicationUrl", "webhookUrl", "bufferUploadsBytes", "errorPage"))
    assert await settings(partner) == after | emptied | {"rootPathAccess": []}


async def test_a_setting_that_is_wrong_is_named_and_nothing_changes(service: Service) -> None:
    partner, other = await service.partner(), await service.partner()
    before = await settings(partner)
    taken = str((await settings(other))["cnameTarget"])
    for name, value, status in (
        ("name", "", 400),
        ("name", 7, 400),
        ("name", "a\0b", 400),
        ("cnameTarget", "power.frontage.test", 400),
        ("cnameTarget", "customer.test", 400),  # a root, which can have no CNAME
        ("cnameTarget", taken, 409),
        ("webhookUrl", "http://169.254.169.254/", 400),
        ("applicationUrl", "ftp://x", 400),
        ("applicationUrl", "http://10.0.0.1/", 400),
        ("rootPathAccess", ["static"], 400),
        ("sendHost", "other", 400),
        ("bufferUploadsBytes", -1, 400),
        ("bufferUploadsBytes", 1 << 60, 400),
        ("errorPage", "\0", 400),
    ):
        changes: dict[str, Any] = {"maintenance": True, name: value}
        answer = await put(partner, **changes)
        assert (answer.status, name in answer.message or status == 409) == (status, True), (name, value, answer)
    assert await settings(partner) == before


async def test_the_previous_client_secret_opens_the_api_and_changes_no_secret(partner: Partner) -> None:
    """Whoever holds a leaked secret cannot keep the application by it once it was rotated."""
    rotated = await put(partner, "/application/secret")
    assert rotated.status == 200
    assert partner.secret not in str(rotated.body)
    assert (await partner.call("GET", "/application")).status == 200
    for path, body in (
        ("/application/secret", {}),
        ("/application/webhook-secret", {}),
        ("/application/signature", {"action": "rotate"}),
        ("/application/service-auth", {"action": "rotate"}),
    ):
        assert (await put(partner, path, **body)).status == 403
    renewed = dataclasses.replace(partner, secret=rotated.body["clientSecret"])
    assert (await put(renewed, "/application/webhook-secret")).body["webhookSecret"].startswith("whsec_")
    assert (await put(renewed, "/application/secret")).status == 200
    assert (await partner.call("GET", "/application")).status == 401


async def test_service_auth_and_signature_are_switched(partner: Partner) -> None:
    async def switch(action: str, **more: str) -> tuple[int, str, str | None]:
        answer = await put(partner, "/application/service-auth", action=action, **more)
        return answer.status, answer.body.get("serviceAuth", ""), answer.body.get("value")

    assert (await switch("finish"))[0] == 409
    status, state, first = await switch("on")
    assert (status, state, first is not None) == (200, "on", True)
    assert await switch("on") == (200, "on", None)
    assert (await switch("on", value="a value of one's own"))[0] == 409
    assert await switch("rotate", value="a value of one's own") == (200, "rotating", None)
    assert (await switch("finish", value="a value of one's own"))[0] == 400
    assert (await switch("rotate", value="short"))[0] == 400
    assert await switch("finish") == (200, "on", None)
    assert await switch("off") == (200, "off", None)
    made = await put(partner, "/application/signature", action="on")
    assert (made.body["signature"], len(made.body["key"])) == ("on", 64)
    assert (await put(partner, "/application/signature", action="finish")).status == 400


async def test_a_domain_is_transferred_within_the_organisation_alone(service: Service) -> None:
    partner, sibling, stranger = await service.partner(), await service.partner(), await service.partner()
    service.point("shop.customer.test")
    await partner.post("shop.customer.test")
    path = "/domains/shop.customer.test/transfer"
    origin: dict[str, Any] = {"applicationUrl": "https://new.example.com"}
    owner = await owner_of(service, partner, sibling)
    another = await owner_of(service, stranger)

    async def transfer(by: Partner, to: str, *, asks: Person = owner, **body: str) -> int:
        return (await asks.call("POST", path, application=by.id, json={"to": to, **body})).status

    assert await transfer(partner, stranger.id, **origin) == 409
    assert await transfer(partner, "no\0such", **origin) == 409
    assert await transfer(partner, sibling.id, applicationUrl="http://169.254.169.254/") == 400
    assert await transfer(partner, sibling.id) == 409  # the sibling has no origin of its own
    assert await transfer(partner, stranger.id, asks=another, **origin) == 404
    assert await transfer(stranger, stranger.id, asks=another, **origin) == 404
    assert await transfer(sibling, partner.id, **origin) == 404
    async with service.database.transaction() as connection:
        await policies.put(connection, "application", partner.id, 403, "Spam.")
    assert await transfer(partner, sibling.id, **origin) == 409  # its domains would be served again
    async with service.database.transaction() as connection:
        await policies.remove(connection, "application", partner.id)
    assert await transfer(partner, sibling.id, **origin) == 200
    async with service.database.connection() as connection:
        (held,) = await domains.find(connection, "shop.customer.test")
    assert held.application_id == sibling.id
    assert await transfer(partner, sibling.id, **origin) == 404
    assert (await partner.call("GET", "/audit")).body["entries"][0]["action"] == "domain.moved"


async def test_a_token_that_a_developer_can_sign_does_nothing_that_an_owner_alone_may(service: Service) -> None:
    partner, sibling = await service.partner(), await service.partner()
    acme = await organisation(service, "Acme", partner, sibling)
    dev = await person(service, "dev@acme.example", acme, "developer", application=partner)
    service.point("shop.customer.test")
    await partner.post("shop.customer.test")
    rotated = await dev.call("PUT", "/application/secret", json={})
    forged = dataclasses.replace(partner, secret=rotated.body["clientSecret"])
    assert (await forged.call("GET", "/application")).status == 200
    calls = (
        ("DELETE", "/application", {"name": "A partner"}),
        ("POST", "/domains/shop.customer.test/transfer", {"to": sibling.id, "applicationUrl": "https://x.example.com"}),
    )
    for method, path, body in calls:
        refused = await forged.call(method, path, json=body)
        assert (refused.status, refused.body["code"]) == (403, "key_needed")
        assert "dashboard" in refused.body["hint"]
        refused = await dev.call(method, path, json=body)
        assert (refused.status, refused.body["code"]) == (403, "role")
    assert not await gone(service, partner)
    async with service.database.connection() as connection:
        (held,) = await domains.find(connection, "shop.customer.test")
    assert held.application_id == partner.id


async def test_a_transfer_says_where_the_dns_does_not_lead_to_the_new_holder(service: Service) -> None:
    first, second, third = await service.partner(), await service.partner(), await service.partner()
    owner = await owner_of(service, first, second, third)
    name = "shop.customer.test"
    service.point(name)
    await first.post(name)

    async def transfer(by: Partner, to: Partner) -> dict[str, str]:
        body = {"to": to.id, "applicationUrl": "https://new.example.com"}
        answer = await owner.call("POST", f"/domains/{name}/transfer", application=by.id, json=body)
        assert answer.status == 200
        return cast("dict[str, str]", answer.body)

    by_another = await transfer(first, second)
    assert by_another["code"] == "dns_elsewhere"
    assert "leads here by another application's cname target" in by_another["hint"]
    assert f"point {name} to target-2.partner.test by CNAME" in by_another["hint"]
    service.zone.remove(name)
    gone = await transfer(second, third)
    assert gone["hint"].startswith("Its DNS does not lead here")
    assert gone["hint"].endswith(f"{name} has a CNAME to target-3.partner.test.")
    service.point(name, 2)
    assert await transfer(third, second) == {"message": "Domain successfully transferred."}


async def test_renewal_and_check_are_asked_for_own_domains(service: Service) -> None:
    partner, other = await service.partner(), await service.partner()
    service.point("shop.customer.test")
    await partner.post("shop.customer.test")
    base = "/domains/shop.customer.test"
    assert (await partner.call("POST", f"{base}/recheck")).status == 202
    assert (await other.call("POST", f"{base}/recheck")).status == 404
    assert (await partner.call("POST", f"{base}/renew")).status == 202  # its first order runs, which is as good
    assert (await other.call("POST", f"{base}/renew")).status == 409


@pytest.mark.parametrize("action", ["renew", "recheck"])
async def test_what_waits_for_a_monitor_says_so(service: Service, partner: Partner, action: str) -> None:
    service.point("shop.customer.test")
    await partner.post("shop.customer.test")
    assert "code" not in (await partner.call("POST", f"/domains/shop.customer.test/{action}")).body
    await end_monitors(service.database)
    waiting = await partner.call("POST", f"/domains/shop.customer.test/{action}")
    assert (waiting.status, waiting.body["code"]) == (202, "no_monitor")


async def test_an_application_is_deleted_by_its_name(service: Service, partner: Partner) -> None:
    service.point("shop.customer.test")
    await partner.post("shop.customer.test")
    owner = await owner_of(service, partner)
    delete = partial(owner.call, "DELETE", "/application", application=partner.id)
    assert (await delete(json={"name": "Another"})).status == 400
    assert (await delete(json={"name": "A partner"})).status == 202
    assert (await partner.call("GET", "/application")).status == 401
    await until(lambda: gone(service, partner), "the application is still there")


async def test_two_processes_that_delete_one_application_take_turns(service: Service, partner: Partner) -> None:
    for number in range(60):
        async with service.database.transaction() as connection:
            await domains.power(
                connection, f"shop-{number}.customer.test", partner.id, DomainSettings("https://origin.test", ())
            )
    async with service.database.transaction() as connection:
        await application_removal.begin(connection, partner.id)
    removed = await asyncio.gather(*(application_removal.remove_all(service.database, partner.id) for _ in range(3)))
    assert sum(each["domains"] for each in removed) == 60
    assert await gone(service, partner)


async def test_a_deletion_under_way_is_left_to_its_process(service: Service, partner: Partner) -> None:
    async with service.database.transaction() as connection:
        await application_removal.begin(connection, partner.id)
        assert await application_removal.list_interrupted(connection) == [partner.id]
        async with service.database.connection() as other:
            assert await application_removal.list_interrupted(other) == []


async def test_a_deletion_that_another_process_continues_names_the_request_that_asked_for_it(
    service: Service, partner: Partner
) -> None:
    service.point("shop.customer.test")
    await partner.post("shop.customer.test")
    async with service.database.transaction() as connection:
        with acting(Actor("api", partner.id, "asked-for-it")):
            await application_changes.begin_removal(connection, partner.id)
    await application_removal.remove_all(service.database, partner.id)  # without the actor: another process
    async with service.database.connection() as connection:
        changes = await connection.fetch(
            "select kind, request_id from changes where deleted and kind in ('application', 'route')"
        )
    assert {row["kind"]: row["request_id"] for row in changes} == {
        "application": "asked-for-it",
        "route": "asked-for-it",
    }


async def gone(service: Service, partner: Partner) -> bool:
    async with service.database.connection() as connection:
        return await get_application(connection, partner.id) is None


async def test_a_deletion_that_ended_with_its_process_is_continued_by_another(service: Service) -> None:
    partner, earlier = await service.partner(), await service.partner()
    service.point("shop.customer.test")
    await partner.post("shop.customer.test")
    removals = Removals(service.database, look_seconds=0.01)  # of an API that runs already
    async with service.database.transaction() as connection:
        await application_removal.begin(connection, earlier.id)
    await removals.resume()
    await until(lambda: gone(service, earlier), "the deletion before the start is not continued")
    async with service.database.transaction() as connection:
        await application_removal.begin(connection, partner.id)
    try:
        await until(lambda: gone(service, partner), "the application is still there")
    finally:
        await removals.close()


async def test_a_deletion_that_fails_is_tried_again(
    service: Service, partner: Partner, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = AsyncMock(side_effect=[DatabaseUnavailable("away"), {}])
    monkeypatch.setattr("api.services.removals.application_removal.remove_all", failing)
    removals = Removals(service.database, first_pause_seconds=0.0)
    removals.begin(partner.id)
    await until(lambda: not removals.is_running(partner.id), "the deletion is still under way")
    assert failing.await_count == 2


async def test_a_response_policy_is_set_shown_and_taken_away(partner: Partner) -> None:
    wanted = {"hsts": {"maxAge": 60}, "nosniff": True, "compression": "on", "fields": {"X-Own": "a"}}
    assert (await partner.call("PUT", "/application", json={"responsePolicy": wanted})).status == 200
    assert (await partner.call("GET", "/application")).body["responsePolicy"] == {
        "hsts": {"maxAge": 60, "includeSubDomains": False, "preload": False},
        "nosniff": True,
        "referrerPolicy": None,
        "compression": "on",
        "fields": {"X-Own": "a"},
    }
    for wrong in (
        {"hsts": {"maxAge": 60, "includeSubDomains": True}},
        {"hsts": {"maxAge": -1}},
        {"fields": {"Set-Cookie": "a=b"}},
        {"referrerPolicy": "anywhere"},
        {"noSniff": True},
        {"compression": "gzip"},
    ):
        refused = await partner.call("PUT", "/application", json={"responsePolicy": wrong})
        assert (refused.status, refused.message) == (400, "Invalid 'responsePolicy' parameter"), wrong
    assert (await partner.call("PUT", "/application", json={"responsePolicy": {}})).status == 200
    assert (await partner.call("GET", "/application")).body["responsePolicy"] is None
